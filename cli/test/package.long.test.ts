// The packages as a stranger gets them: packed from the checkout, installed into an empty folder without install scripts and
// without the network, and run by the Node of the machine.
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { endProcessesOf, freeSettings, processesOf } from '../../server/test/supervisor/started.ts'
import { personsPath } from '../../server/test/support/persons-path.ts'
import { until } from '../../server/test/support/until.ts'
import { makeTemplateFiles } from '../src/templates/made-files.ts'
import { startRegistry } from './loopback-registry.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const run = promisify(execFile)
const NPM_MS_MAX = 300_000
const OUTPUT_BYTES_MAX = 4 * 1024 * 1024
const MEGABYTE = 1e6
const VERSION = readVersion(ROOT)
/** Functions of a newer Node than 20.19, which the command must run on. */
const NEWER_THAN_THE_COMMAND =
  /\b(Promise\.(withResolvers|try)|(Map|Object)\.groupBy|Array\.fromAsync|RegExp\.escape|globSync|import \{[^}]*Zstd)\b|\.(isSubsetOf|isSupersetOf|isDisjointFrom|symmetricDifference)\(|\.(keys|values|entries)\(\)\.(map|filter|take|some|find|every|toArray|reduce|flatMap|drop|forEach)\(/

test('the packed muster starts from an empty folder, serves, and leaves no process', async (t) => {
  const folder = enterableFolder(t)
  const packed = await pack(folder)
  await t.test('the packages have the templates, the hub and no TypeScript', () => requireContent(packed))

  const registry = await startRegistry(t, ROOT, [packed.command, packed.platform])
  const options = ['--no-audit', '--no-fund', '--ignore-scripts', `--registry=${registry}`]
  const install = async (name: string, ...args: string[]): Promise<string> => {
    const app = join(folder, name)
    mkdirSync(app)
    await npm(['install', ...options, ...args, `--cache=${join(folder, 'cache')}`, 'musterhost'], app)
    return app
  }
  const app = await install('app')
  const system_node = systemNode()
  const muster = join(app, 'node_modules/musterhost/dist/muster.js')

  await t.test('they are at most 60 packages and 100 MB, and the command 10 MB', (step) => {
    const modules = join(app, 'node_modules')
    const packages = globSync('{*,@*/*}/package.json', { cwd: modules })
    const bytes = { all: bytesOf(modules), command: bytesOf(join(modules, 'musterhost')) }
    step.diagnostic(`${packages.length} packages, ${JSON.stringify(bytes)} bytes`)
    assert.ok(packages.length <= 60, packages.join(' '))
    assert.ok(bytes.all <= 100 * MEGABYTE, `${bytes.all} bytes`)
    assert.ok(bytes.command <= 10 * MEGABYTE, `${bytes.command} bytes`)
  })

  await t.test(
    'its version is that of the checkout, under both names, and by the Node of the machine',
    async (step) => {
      for (const name of ['muster', 'musterhost']) {
        assert.equal(await npm(['exec', '--', name, '--version'], app), `${VERSION}\n`)
      }
      const { stdout } = await run(system_node, [muster, '--version'], { cwd: app, env: systemEnv() })
      assert.equal(stdout, `${VERSION}\n`)
      step.diagnostic(`the Node of this machine is ${execFileSync(system_node, ['--version'], { encoding: 'utf8' })}`)
    },
  )

  await t.test(
    'each of its modules loads with the Node of the machine, and uses nothing newer than Node 20.19',
    async () => {
      const dist = join(app, 'node_modules/musterhost/dist')
      const modules = readdirSync(dist).filter((name) => name.startsWith('shared-'))
      assert.ok(modules.length > 50, `${modules.length} modules`)
      // Their import of node:http would load undici, which takes 14 MB of each process.
      for (const name of modules)
        assert.doesNotMatch(readFileSync(join(dist, name), 'utf8'), /from "(node:)?http"/, name)
      const lines = modules.map((name) => `await import('${pathToFileURL(join(dist, name))}')`)
      await run(system_node, ['--input-type=module', '--eval', lines.join('\n')])
      for (const name of modules) {
        assert.doesNotMatch(readFileSync(join(dist, name), 'utf8'), NEWER_THAN_THE_COMMAND, name)
      }
    },
  )

  await t.test('muster init writes a project, with the files that npm would leave out', async () => {
    await run(system_node, [muster, 'init', '--ci', '--template', 'node-ws', 'dots'], { cwd: app, env: systemEnv() })
    const files = readdirSync(join(app, 'dots'))
    assert.deepEqual(
      ['.gitignore', 'muster.yaml', 'server', 'site'].filter((name) => !files.includes(name)),
      [],
    )
  })

  await t.test('where the platform is not installed, the command says in a sentence how to get one', async () => {
    const alone = await install('alone', '--omit=optional')
    const program = join(alone, 'node_modules/musterhost/dist/muster.js')
    assert.ok(!readdirSync(join(alone, 'node_modules')).includes('musterhost-platform'))
    await requireRefusal([program, 'start'], alone, /npm install --global musterhost --include=optional/)
    for (const [system, remedy] of [
      ['win32', /this is Windows.*In WSL2/s],
      ['darwin', /this is macOS.*docker run --publish/s],
    ] as const) {
      const preload = join(folder, `${system}.mjs`)
      writeFileSync(preload, `Object.defineProperty(process, 'platform', { value: '${system}' })\n`)
      for (const args of [['start'], ['doctor'], ['backup', 'b'], ['join', 'http://localhost', 'mj1.a']]) {
        await requireRefusal(['--import', preload, program, ...args], alone, remedy)
      }
    }
  })

  await t.test(
    'muster start becomes ready, two players get seats of a game, and Ctrl-C ends every process',
    async (step) => {
      const data = join(folder, 'data')
      step.after(() => endProcessesOf(data))
      const settings = { ...(await freeSettings(data)), XDG_CACHE_HOME: cacheWithNode(folder) }
      const started = startGroup('npm', ['exec', '--', 'muster', 'start'], { cwd: app, settings })
      await until('the packed platform to be ready', () => {
        assert.equal(started.child.exitCode, null, started.output())
        return /^ready /m.test(started.output())
      })
      const page = await fetch(`http://localhost:${settings.MUSTER_EDGE_HTTP_PORT}/`)
      const [, script = ''] = /<script type="module"[^>]* src="(\/hub-assets\/[^"]+)"/.exec(await page.text()) ?? []
      const asset = await fetch(new URL(script, page.url))
      assert.match(asset.headers.get('content-type') ?? '', /^text\/javascript/, 'the hub is in the package')
      await asset.body?.cancel()

      // An older Node starts this command again under a newer one.
      const { stdout } = await run(system_node, [muster, 'admin-token'], { cwd: app, env: systemEnv(settings) })
      assert.equal(stdout, readFileSync(join(data, 'admin-token'), 'utf8'))
      const second = run(system_node, [muster, 'start'], { cwd: app, env: systemEnv(settings) })
      await assert.rejects(second, (error: { code: number; stdout: string }) => {
        assert.match(error.stdout, /Another Muster runs on the data folder/)
        return error.code === 1
      })

      const address = `http://localhost:${settings.MUSTER_EDGE_HTTP_PORT}`
      const env = systemEnv({ MUSTER_URL: address, MUSTER_TOKEN: stdout.trim(), npm_config_registry: registry })
      await run(system_node, [muster, 'deploy', '--ci'], { cwd: join(app, 'dots'), env })
      const [one, two] = [await findSeat(address, 'dots'), await findSeat(address, 'dots')]
      assert.equal(one.lobby_id, two.lobby_id)
      assert.notEqual(one.token, two.token)

      // As docs/first-game.md says for other machines.
      const prefix = join(folder, 'global')
      await npm(['install', ...options, '--global', `--prefix=${prefix}`, `${address}/cli.tgz`], folder)
      assert.equal((await run(join(prefix, 'bin/muster'), ['--version'], { env: systemEnv() })).stdout, `${VERSION}\n`)

      process.kill(-started.child.pid!, 'SIGINT')
      await once(started.child, 'close')
      assert.deepEqual(processesOf(data), [])
      assert.match(started.output(), /everything has ended/)
    },
  )
})

/** As the page of the game asks for it. */
async function findSeat(platform: string, game: string): Promise<{ lobby_id: string; token: string }> {
  const page = new URL(platform)
  page.hostname = `${game}.cdn.${page.hostname}`
  const response = await fetch(`${platform}/matchmaker/lobbies/find`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: page.origin },
    body: JSON.stringify({ game_modes: ['default'] }),
  })
  assert.equal(response.status, 200, await response.clone().text())
  const { lobby, player } = (await response.json()) as { lobby: { lobby_id: string }; player: { token: string } }
  return { lobby_id: lobby.lobby_id, token: player.token }
}

/** PostgreSQL and lobbies run as other users, so they must be able to enter it. */
function enterableFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'muster-package-'))
  chmodSync(folder, 0o755)
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

type Packed = { command: string; platform: string }

/** Resolves to the paths of the packages. */
async function pack(folder: string): Promise<Packed> {
  const to = join(folder, 'packed')
  await run(process.execPath, [join(ROOT, 'scripts/pack.ts'), to], { timeout: NPM_MS_MAX })
  return {
    command: join(to, `musterhost-${VERSION}.tgz`),
    platform: join(to, `musterhost-platform-${VERSION}.tgz`),
  }
}

function requireContent({ command, platform }: Packed): void {
  const files = { command: filesOf(command), platform: filesOf(platform) }
  for (const name of ['dist/muster.js', 'LICENSE', 'README.md', 'THIRD-PARTY-LICENSES.txt']) {
    assert.ok(files.command.includes(`package/${name}`), name)
  }
  for (const name of [
    'dist/role.js',
    'data/contract/openapi.json',
    'NOTICE.md',
    'hub/index.html',
    'as-numbers.bin',
    'LICENSE',
  ]) {
    assert.ok(files.platform.includes(`package/${name}`), name)
  }
  const templates = globSync('cli/templates/**/*', { cwd: ROOT, withFileTypes: true }).filter((entry) => entry.isFile())
  assert.ok(templates.length > 20, `${templates.length} files of templates`)
  for (const entry of templates) {
    const folder = entry.parentPath.slice(join(ROOT, 'cli/').length)
    const name = basename(entry.name).replace(/^\.(?=(?:gitignore|npmignore|npmrc)$)/, '_')
    assert.ok(files.command.includes(`package/${join(folder, name)}`), entry.name)
  }
  const made = [...makeTemplateFiles().keys()]
  assert.ok(made.length >= 10, `${made.length} made files of templates`)
  for (const path of made) assert.ok(files.command.includes(`package/templates/${path}`), path)
  const sources = [...files.command, ...files.platform].filter((file) => file.endsWith('.ts'))
  assert.deepEqual(
    sources.filter((file) => !file.startsWith('package/templates/')),
    [],
  )
}

function filesOf(packed: string): string[] {
  return execFileSync('tar', ['--list', '--gzip', '--file', packed], { encoding: 'utf8' }).trim().split('\n')
}

async function requireRefusal(args: string[], cwd: string, remedy: RegExp): Promise<void> {
  await assert.rejects(
    run(systemNode(), args, { cwd, env: systemEnv() }),
    (error: { code: number; stdout: string; stderr: string }) => {
      assert.match(error.stderr, remedy)
      assert.doesNotMatch(error.stderr, /^\s+at /m, 'no stack')
      return error.code === 1
    },
  )
}

/** A cache folder of muster with the Node of this checkout, as if the command had fetched it (fetched-node.test.ts). */
function cacheWithNode(folder: string): string {
  const manifest = readFileSync(join(folder, 'app/node_modules/musterhost/package.json'), 'utf8')
  const { platform_node } = JSON.parse(manifest) as { platform_node: Record<string, { name: string; version: string }> }
  const pinned = platform_node[`${process.platform}-${process.arch}`]
  assert.ok(pinned, 'the package names the Node of this system')
  const cache = join(folder, 'user-cache')
  const place = join(cache, 'muster', `${pinned.name}-${pinned.version}`)
  mkdirSync(place, { recursive: true })
  symlinkSync(process.execPath, join(place, 'node'))
  return cache
}

function bytesOf(folder: string): number {
  const entries = globSync('**/*', { cwd: folder, withFileTypes: true }).filter((entry) => entry.isFile())
  return entries.reduce((sum, entry) => sum + lstatSync(join(entry.parentPath, entry.name)).size, 0)
}

async function npm(args: string[], cwd: string): Promise<string> {
  const options = { cwd, env: systemEnv(), timeout: NPM_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX }
  return (await run('npm', args, options)).stdout
}

/** The environment of a stranger: without the folders that npm adds for scripts of this checkout. */
function systemEnv(settings: Record<string, string> = {}): Record<string, string> {
  const { HOME = '' } = process.env
  // The person who runs the tests may be logged in to a platform.
  const no_contexts = { MUSTER_CONFIG_DIR: join(tmpdir(), 'no-contexts') }
  return { PATH: personsPath(), HOME, npm_config_update_notifier: 'false', ...no_contexts, ...settings }
}

/** npm belongs to a Node that is on the PATH. */
function systemNode(): string {
  return execFileSync('sh', ['-c', 'command -v node'], { encoding: 'utf8', env: systemEnv() }).trim()
}

function startGroup(
  program: string,
  args: string[],
  { cwd, settings }: { cwd: string; settings: Record<string, string> },
): { child: ChildProcess; output: () => string } {
  const options = { cwd, env: systemEnv(settings), detached: true, stdio: ['ignore', 'pipe', 'pipe'] as const }
  const child = spawn(program, args, { ...options, stdio: [...options.stdio] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      output = (output + chunk).slice(-OUTPUT_BYTES_MAX)
    })
  }
  return { child, output: () => output }
}

function readVersion(folder: string): string {
  return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }).version
}
