// Builds the programs of this checkout into dist/programs: `muster`, and what the platform starts as processes. With `--when-stale` it
// builds only when a source has changed since the last build: the scripts `start` and `muster` call it so. Sources are compared
// by size and time, which takes a tenth of what reading them takes.
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFolder } from './built-folder.ts'

const ROOT = join(import.meta.dirname, '..')
const DIST = join(ROOT, 'dist/programs')
/** The hash of the sources of the last build. */
const BUILT_FROM = 'built-from.txt'
const SOURCES = [
  '{cli,contract,server}/src/**/*',
  'examples/arena/*.ts',
  'scripts/package/*.ts',
  '{cli,contract,server}/package.json',
  'package-lock.json',
]

const began = new Date()
const sources = hashOfSources()
const built_from = join(DIST, BUILT_FROM)
const is_stale = !existsSync(built_from) || readFileSync(built_from, 'utf8') !== sources
if (is_stale || !process.argv.includes('--when-stale'))
  await replaceFolder(DIST, { what: 'The programs', write: buildPrograms })

async function buildPrograms(made: string): Promise<string> {
  const { writePrograms } = await import('./package/packages.ts')
  await writePrograms(ROOT, made)
  const finished = join(made, 'dist')
  writeFileSync(join(finished, BUILT_FROM), sources)
  // A source that is written from now on is newer, for cli/muster.js.
  utimesSync(join(finished, BUILT_FROM), began, began)
  return finished
}

/** With the place of the checkout, because the programs contain it. */
function hashOfSources(): string {
  const hash = createHash('sha256').update(ROOT)
  for (const path of SOURCES.flatMap((pattern) => globSync(pattern, { cwd: ROOT })).sort()) {
    const { size, mtimeMs } = statSync(join(ROOT, path))
    hash.update(`${path} ${size} ${mtimeMs}\n`)
  }
  return hash.digest('hex')
}
