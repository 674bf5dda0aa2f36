// What `npm pack` runs before and after it: the package is JavaScript with types, while the checkout has TypeScript only.
// `prepare` compiles src into this folder and lets package.json name the results; `restore` undoes both. What a pack that
// was killed has left behind is removed by the next one.
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, globSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

const FOLDER = import.meta.dirname
const MANIFEST = join(FOLDER, 'package.json')
/** The manifest of the checkout, while `npm pack` reads another. */
const MANIFEST_KEPT = join(FOLDER, 'package.json.kept')
const LICENSE = join(FOLDER, 'LICENSE')

type Manifest = { exports: Record<string, unknown>; scripts?: unknown; devDependencies?: unknown }

const [what] = process.argv.slice(2)
if (what === 'prepare') prepare()
else if (what === 'restore') restore()
else {
  console.error('npm pack -w sdk')
  process.exitCode = 2
}

function prepare(): void {
  restore()
  execFileSync('tsc', ['-p', join(FOLDER, 'tsconfig.package.json')], { stdio: 'inherit' })
  for (const file of listBuilt('*.d.ts')) {
    const text = readFileSync(file, 'utf8')
    writeFileSync(file, text.replaceAll(/(from '\.\/[\w-]+)\.ts'/g, "$1.js'"))
  }
  copyFileSync(join(FOLDER, '..', 'LICENSE'), LICENSE)
  const manifest = packedManifest(JSON.parse(readFileSync(MANIFEST, 'utf8')) as Manifest)
  renameSync(MANIFEST, MANIFEST_KEPT)
  writeFileSync(MANIFEST, `${JSON.stringify(manifest, null, 2)}\n`)
  const bytes = gzipSync(
    listBuilt('*.js')
      .map((file) => readFileSync(file, 'utf8'))
      .join('\n'),
  ).length
  console.error(`musterhost-sdk: ${(bytes / 1024).toFixed(1)} KB of JavaScript, gzipped`)
}

function restore(): void {
  if (existsSync(MANIFEST_KEPT)) renameSync(MANIFEST_KEPT, MANIFEST)
  for (const file of [...listBuilt('*.js'), ...listBuilt('*.d.ts'), LICENSE]) rmSync(file, { force: true })
}

/** The same package, in which each export leads to what was compiled. */
function packedManifest({ scripts: _scripts, devDependencies: _devDependencies, ...rest }: Manifest): Manifest {
  const names = Object.keys(rest.exports).map((path) => path.slice('./'.length))
  const targets = names.map((name) => [`./${name}`, { types: `./${name}.d.ts`, default: `./${name}.js` }])
  return { ...rest, exports: Object.fromEntries(targets) as Manifest['exports'] }
}

function listBuilt(pattern: string): string[] {
  return globSync(pattern, { cwd: FOLDER }).map((name) => join(FOLDER, name))
}
