// Writes cli/dist/cli.tgz, the command that a platform of this checkout serves. With `--when-stale` only when a source has
// changed: the platform calls it so, at the first request.
import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const DIST = join(ROOT, 'cli/dist')
const SOURCES = [
  '{cli,contract}/src/**/*.ts',
  'cli/templates/**/*',
  // What templates are made of.
  'sdk/{compiled.ts,src/*.ts}',
  'examples/godot-client/muster.gd',
  'scripts/template-files.ts',
  'scripts/package/*.ts',
  '{package,package-lock,cli/package}.json',
  'README.md',
]
/** The hash of the sources of the last file. */
const BUILT_FROM = join(DIST, 'built-from.txt')

const sources = hashOfSources()
const is_stale = !existsSync(BUILT_FROM) || readFileSync(BUILT_FROM, 'utf8') !== sources
if (is_stale || !process.argv.includes('--when-stale')) {
  const { writeCommandFile } = await import('./package/command-file.ts')
  mkdirSync(DIST, { recursive: true })
  await writeCommandFile(ROOT, join(DIST, 'cli.tgz'))
  writeFileSync(BUILT_FROM, sources)
}

function hashOfSources(): string {
  const hash = createHash('sha256')
  for (const path of SOURCES.flatMap((pattern) => globSync(pattern, { cwd: ROOT })).sort()) {
    const file = join(ROOT, path)
    if (!statSync(file).isFile() || path.endsWith('.test.ts') || path.includes('node_modules')) continue
    hash.update(path).update('\0').update(readFileSync(file))
  }
  return hash.digest('hex')
}
