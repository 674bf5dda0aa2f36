// What `npm pack` runs before and after it. `prepare` writes the package into dist/ as JavaScript and puts the package's
// manifest in place of the checkout's; `restore` undoes both. A pack that was killed leaves them, and the next one restores
// them first. The working folder is the checkout, as npm sets it.
import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { compileWorkspaces } from './package/compile.ts'
import { type Manifest, packedManifest } from './package/manifest.ts'

const ROOT = process.cwd()
const DIST = 'dist'
const MANIFEST = join(ROOT, 'package.json')
/** The manifest of the checkout, while `npm pack` reads another. */
const MANIFEST_KEPT = join(ROOT, 'package.json.kept')
const WORKSPACES = ['contract', 'server', 'sdk', 'cli']
/** Read at run time beside the code: the API reference, the schema of muster.yaml, what `muster init` copies, and the hub. */
const DATA = ['contract/openapi.json', 'contract/muster.schema.json', 'cli/templates', 'hub/dist']
/** npm leaves files of these names out of every package, or obeys them. `muster init` gives them their names back. */
const RENAMED = ['.gitignore', '.npmignore', '.npmrc']

const [what] = process.argv.slice(2)
if (what === 'prepare') prepare()
else if (what === 'restore') restore()
else {
  console.error('npm pack')
  process.exitCode = 2
}

function prepare(): void {
  restore()
  execFileSync(process.execPath, [join(ROOT, 'hub/build.ts'), '--when-stale'], { stdio: 'inherit' })
  const to = join(ROOT, DIST)
  const count = compileWorkspaces(ROOT, to, WORKSPACES)
  for (const name of WORKSPACES) writeVersion(to, name)
  for (const path of DATA.filter((candidate) => existsSync(join(ROOT, candidate)))) {
    const filter = (file: string): boolean => basename(file) !== 'node_modules'
    cpSync(join(ROOT, path), join(to, path), { recursive: true, filter })
  }
  renameDotFiles(join(to, 'cli/templates'))
  copyFileSync(join(ROOT, 'docs/NOTICE.md'), join(to, 'NOTICE.md'))

  const own = JSON.parse(readFileSync(MANIFEST, 'utf8')) as Manifest
  const bin = `${DIST}/cli/src/main.js`
  const manifest = packedManifest(ROOT, own, { workspaces: WORKSPACES, bin, files: [DIST] })
  renameSync(MANIFEST, MANIFEST_KEPT)
  writeFileSync(MANIFEST, `${JSON.stringify(manifest, null, 2)}\n`)
  console.error(`${own.name}: ${count} modules, ${kilobytes(to)} KB of JavaScript, gzipped`)
}

function restore(): void {
  if (existsSync(MANIFEST_KEPT)) renameSync(MANIFEST_KEPT, MANIFEST)
  rmSync(join(ROOT, DIST), { recursive: true, force: true })
}

/** The programs read their version from here. Node reads the kind of module. */
function writeVersion(to: string, name: string): void {
  const { version, type } = JSON.parse(readFileSync(join(ROOT, name, 'package.json'), 'utf8')) as Manifest
  mkdirSync(join(to, name), { recursive: true })
  writeFileSync(join(to, name, 'package.json'), `${JSON.stringify({ version, type })}\n`)
}

function renameDotFiles(folder: string): void {
  for (const file of globSync(`**/{${RENAMED.join(',')}}`, { cwd: folder })) {
    const path = join(folder, file)
    renameSync(path, join(dirname(path), `_${basename(path).slice(1)}`))
  }
}

function kilobytes(folder: string): string {
  const texts = globSync('**/*.js', { cwd: folder }).map((file) => readFileSync(join(folder, file), 'utf8'))
  return (gzipSync(texts.join('\n')).length / 1024).toFixed(0)
}
