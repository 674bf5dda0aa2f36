// Builds the programs of this checkout into dist/programs: `muster`, and what the platform starts as processes. With `--when-stale` it
// builds only when a source has changed since the last build: the scripts `start` and `muster` call it so. Sources are compared
// by size and time, which takes a tenth of what reading them takes.
import { createHash } from 'node:crypto'
import {
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'

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
/** What this user, this file system or its size does not allow, with the remedy. */
const OBSTACLES: Readonly<Record<string, string>> = {
  EACCES: 'run this once as the owner of the checkout, or make the folder writable',
  EROFS: 'run this once where the checkout can be written',
  ENOSPC: 'make room on its disk',
}
if (is_stale || !process.argv.includes('--when-stale')) await build().catch(reportObstacle)

/** The finished folder replaces the old one at once, so a program that starts meanwhile finds a whole one. */
async function build(): Promise<void> {
  const { writePrograms } = await import('./package/packages.ts')
  const made = `${DIST}-${process.pid}`
  const replaced = `${made}-replaced`
  mkdirSync(made, { recursive: true })
  await writePrograms(ROOT, made)
  writeFileSync(join(made, 'dist', BUILT_FROM), sources)
  // A source that is written from now on is newer, for cli/muster.js.
  utimesSync(join(made, 'dist', BUILT_FROM), began, began)
  if (existsSync(DIST)) renameSync(DIST, replaced)
  renameSync(join(made, 'dist'), DIST)
  for (const folder of [made, replaced]) rmSync(folder, { recursive: true, force: true })
}

/** Ends the program with a sentence where the folder cannot be written. */
function reportObstacle(error: NodeJS.ErrnoException): never {
  const remedy = OBSTACLES[error.code ?? '']
  if (remedy === undefined) throw error
  console.error(`The programs must be built into ${DIST}, which cannot be written (${error.code}): ${remedy}.`)
  process.exit(1)
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
