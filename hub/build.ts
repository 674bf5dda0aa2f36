// Builds the hub into hub/dist, with a Brotli and a gzip form of each file beside it. With `--when-stale` it builds only when a
// source has changed since the last build: `npm start` in a checkout calls it so, with `--quiet`, beside the platform's start.
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { brotliCompressSync, gzipSync, constants as zlib } from 'node:zlib'
import { replaceFolder } from '../scripts/built-folder.ts'

const HUB = import.meta.dirname
const ROOT = join(HUB, '..')
const DIST = join(HUB, 'dist')
/** The hash of the sources of the last build. */
const BUILT_FROM = 'built-from.txt'
const SOURCES = [
  'hub/{index.html,build.ts,vite.config.ts,package.json}',
  'hub/src/**/*',
  'hub/public/*',
  'contract/src/**/*.ts',
  'package-lock.json',
]
/** Smaller files gain nothing. */
const COMPRESSED_BYTES_MIN = 512
const COMPRESSED_KINDS = /\.(js|css|html|svg)$/

const sources = hashOfSources()
const built_from = join(DIST, BUILT_FROM)
const is_stale = !existsSync(built_from) || readFileSync(built_from, 'utf8') !== sources
if (is_stale || !process.argv.includes('--when-stale')) await replaceFolder(DIST, { what: 'The hub', write: buildHub })

async function buildHub(made: string): Promise<string> {
  const started = performance.now()
  say('The hub is being built.')
  const { build } = await import('vite')
  await build({
    root: HUB,
    configFile: join(HUB, 'vite.config.ts'),
    logLevel: 'warn',
    build: { outDir: made, emptyOutDir: true },
  })
  const bytes = compressFiles(made)
  writeFileSync(join(made, BUILT_FROM), sources)
  const seconds = ((performance.now() - started) / 1_000).toFixed(1)
  say(`The hub was built in ${seconds} s: ${(bytes / 1_000).toFixed(0)} KB gzipped in all, loaded in parts.`)
  return made
}

function say(line: string): void {
  if (!process.argv.includes('--quiet')) console.error(line)
}

/** Returns the bytes of all gzipped files together. */
function compressFiles(folder: string): number {
  let sum = 0
  for (const name of globSync('**/*', { cwd: folder })) {
    const path = join(folder, name)
    if (!statSync(path).isFile() || !COMPRESSED_KINDS.test(name)) continue
    const bytes = readFileSync(path)
    const gzipped = gzipSync(bytes, { level: 9 })
    sum += gzipped.length
    if (bytes.length < COMPRESSED_BYTES_MIN || name.endsWith('.html')) continue
    writeFileSync(`${path}.gz`, gzipped)
    writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params: { [zlib.BROTLI_PARAM_QUALITY]: 9 } }))
  }
  return sum
}

function hashOfSources(): string {
  const hash = createHash('sha256')
  for (const path of SOURCES.flatMap((pattern) => globSync(pattern, { cwd: ROOT })).sort()) {
    const file = join(ROOT, path)
    if (!statSync(file).isFile() || /\.test\.tsx?$/.test(path)) continue
    hash.update(path).update('\0').update(readFileSync(file))
  }
  return hash.digest('hex')
}
