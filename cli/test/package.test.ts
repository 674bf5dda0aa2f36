// The package as a stranger gets it: packed from a copy of the checkout, installed into an empty folder without install
// scripts and without the network, and run by the Node of the machine.
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, delimiter, dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { endProcessesOf, freeSettings, processesOf } from '../../server/test/supervisor/started.ts'
import { until } from '../../server/test/until.ts'
import { startRegistry } from './loopback-registry.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const run = promisify(execFile)
const NPM_MS_MAX = 300_000
const OUTPUT_BYTES_MAX = 4 * 1024 * 1024

test('the packed muster starts from an empty folder, serves, and leaves no process', async (t) => {
  const folder = enterableFolder(t)
  const packed = await pack(folder)
  await t.test('it has the templates and no TypeScript', () => requireContent(packed))

  const app = join(folder, 'app')
  mkdirSync(app)
  const registry = await startRegistry(t, ROOT)
  const npm_options = ['--no-audit', '--no-fund', '--ignore-scripts', `--registry=${registry}`]
  await npm(['install', ...npm_options, `--cache=${join(folder, 'cache')}`, packed], app)

  const version = readVersion(join(ROOT, 'cli'))
  const system_node = systemNode()
  const muster = join(app, 'node_modules/musterhost/dist/cli/src/main.js')
  await t.test('its version is that of the checkout, by npx and by the Node of the machine', async (step) => {
    assert.equal(await npm(['exec', '--', 'muster', '--version'], app), `${version}\n`)
    const { stdout } = await run(system_node, [muster, '--version'], { cwd: app, env: systemEnv() })
    assert.equal(stdout, `${version}\n`)
    step.diagnostic(`the Node of this machine is ${execFileSync(system_node, ['--version'], { encoding: 'utf8' })}`)
  })

  await t.test('muster init writes a project, with the files that npm would leave out', async () => {
    await run(system_node, [muster, 'init', '--ci', '--template', 'node-ws', 'dots'], { cwd: app, env: systemEnv() })
    const files = readdirSync(join(app, 'dots'))
    assert.deepEqual(
      ['.gitignore', 'muster.yaml', 'server', 'site'].filter((name) => !files.includes(name)),
      [],
    )
  })

  await t.test('muster start becomes ready and serves, and Ctrl-C ends every process', async (step) => {
    const data = join(folder, 'data')
    step.after(() => endProcessesOf(data))
    const settings = await freeSettings(data)
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

    // An older Node starts this command again under the Node of the package.
    const { stdout } = await run(system_node, [muster, 'admin-token'], { cwd: app, env: systemEnv(settings) })
    assert.equal(stdout, readFileSync(join(data, 'admin-token'), 'utf8'))
    const second = run(system_node, [muster, 'start'], { cwd: app, env: systemEnv(settings) })
    await assert.rejects(second, (error: { code: number; stdout: string }) => {
      assert.match(error.stdout, /Another Muster runs on the data folder/)
      return error.code === 1
    })

    process.kill(-started.child.pid!, 'SIGINT')
    await once(started.child, 'close')
    assert.deepEqual(processesOf(data), [])
    assert.match(started.output(), /everything has ended/)
  })
})

test('a pack that was killed is undone by the next one', async (t) => {
  const checkout = copyOfCheckout(enterableFolder(t))
  const manifest = readFileSync(join(checkout, 'package.json'), 'utf8')
  const script = join(ROOT, 'scripts/pack.ts')
  await run(process.execPath, [script, 'prepare'], { cwd: checkout })
  assert.notEqual(readFileSync(join(checkout, 'package.json'), 'utf8'), manifest)
  const left = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as { scripts: Record<string, string> }
  assert.ok(left.scripts.prepack, 'npm pack can run again')
  await run(process.execPath, [script, 'prepare'], { cwd: checkout })
  await run(process.execPath, [script, 'restore'], { cwd: checkout })
  assert.equal(readFileSync(join(checkout, 'package.json'), 'utf8'), manifest)
  assert.ok(!readdirSync(checkout).includes('dist'))
})

/** PostgreSQL and lobbies run as other users, so they must be able to enter it. */
function enterableFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'muster-package-'))
  chmodSync(folder, 0o755)
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** `npm pack` replaces package.json for a moment, which other tests must not see. */
function copyOfCheckout(folder: string): string {
  const checkout = join(folder, 'checkout')
  mkdirSync(checkout)
  // npm packs no links.
  for (const name of ['package.json', 'package-lock.json', 'LICENSE', 'README.md']) {
    copyFileSync(join(ROOT, name), join(checkout, name))
  }
  for (const name of ['contract', 'server', 'sdk', 'cli', 'hub', 'docs', 'scripts', 'node_modules']) {
    symlinkSync(join(ROOT, name), join(checkout, name))
  }
  return checkout
}

/** Resolves to the path of the package. */
async function pack(folder: string): Promise<string> {
  const checkout = copyOfCheckout(folder)
  const manifest = readFileSync(join(checkout, 'package.json'), 'utf8')
  const names = readdirSync(checkout)
  await npm(['pack', '--pack-destination', folder], checkout)
  assert.equal(readFileSync(join(checkout, 'package.json'), 'utf8'), manifest, 'the checkout is as it was')
  assert.deepEqual(readdirSync(checkout), names)
  return join(folder, `musterhost-${readVersion(ROOT)}.tgz`)
}

function requireContent(packed: string): void {
  const list = execFileSync('tar', ['--list', '--gzip', '--file', packed], { encoding: 'utf8' })
  const files = list.trim().split('\n')
  assert.ok(files.length > 500, `${files.length} files`)
  for (const file of [
    'dist/cli/src/main.js',
    'dist/contract/openapi.json',
    'dist/NOTICE.md',
    'dist/hub/dist/index.html',
    'LICENSE',
  ]) {
    assert.ok(files.includes(`package/${file}`), file)
  }
  const templates = globSync('cli/templates/**/*', { cwd: ROOT, withFileTypes: true }).filter((entry) => entry.isFile())
  for (const entry of templates) {
    const folder = entry.parentPath.slice(ROOT.length)
    const name = basename(entry.name).replace(/^\.(?=(?:gitignore|npmignore|npmrc)$)/, '_')
    assert.ok(files.includes(`package/dist/${join(folder, name)}`), entry.name)
  }
  const sources = files.filter((file) => file.endsWith('.ts') && !file.includes('/templates/'))
  assert.deepEqual(sources, [])
}

async function npm(args: string[], cwd: string): Promise<string> {
  const options = { cwd, env: systemEnv(), timeout: NPM_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX }
  return (await run('npm', args, options)).stdout
}

/** The environment of a stranger: without the folders that npm adds for scripts of this checkout. */
function systemEnv(settings: Record<string, string> = {}): Record<string, string> {
  const { PATH = '', HOME = '' } = process.env
  const folders = PATH.split(delimiter).filter(
    (path) => !path.includes('node_modules') && path !== dirname(process.execPath),
  )
  return { PATH: folders.join(delimiter), HOME, npm_config_update_notifier: 'false', ...settings }
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
