// The package as a stranger gets it: packed from a copy of the checkout, so that nobody else sees it half made, installed
// into an empty folder that knows nothing of ours, and used from there.
import assert from 'node:assert/strict'
import { type ExecFileException, execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { json as readJson } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openBrowser, openPage } from '../../server/test/end-to-end/browser.ts'
import { startTestPlatform } from './test-platform.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const run = promisify(execFile)
const NPM_MS_MAX = 120_000

const SERVER_TS = `
import { type Lobby, MusterError, openLobby } from 'musterhost-sdk/server'
const lobby: Lobby = openLobby({ environment: { PORT_GAME: '7777' }, log: () => {} })
const port: number = lobby.port('game')
export const wait = async (): Promise<string | null> => {
  try {
    await lobby.disconnected('token', { hold_ms: 1_000 })
  } catch (error) {
    if (error instanceof MusterError) return error.ray_id
  }
  // @ts-expect-error: a port has a name.
  lobby.port(port)
  return null
}
import 'musterhost-sdk/attach'
`
const PAGE_TS = `
import { createClient, type Seat, socketUrl } from 'musterhost-sdk/browser'
import { openPlayer, type Party } from 'musterhost-sdk/player'
const seat: Seat = await createClient().find({ game_modes: ['default'] })
const party: Party | null = await (await openPlayer()).party()
export const url: string = socketUrl(seat.ports.game, '/', { token: seat.player.token, party: party?.code ?? '' })
// @ts-expect-error: a find names its game modes.
await createClient().find({})
`
const PROGRAM_JS = `
import { openLobby } from 'musterhost-sdk/server'
import { createRequire } from 'node:module'
const lobby = openLobby({ environment: { PORT_GAME: '7777' }, log: () => {} })
await lobby.connected('anybody')
const { MusterError } = createRequire(import.meta.url)('musterhost-sdk/server')
console.log(process.env.PORT, lobby.port('game'), MusterError.name)
`

let folder = ''

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'muster-stranger-'))
  const checkout = join(folder, 'checkout')
  mkdirSync(checkout)
  for (const name of ['sdk', 'tsconfig.json', 'LICENSE'])
    cpSync(join(ROOT, name), join(checkout, name), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(checkout, 'node_modules'))
  const manifest = readFileSync(join(checkout, 'sdk/package.json'), 'utf8')
  await npm(['pack', '--pack-destination', folder], join(checkout, 'sdk'))
  assert.equal(readFileSync(join(checkout, 'sdk/package.json'), 'utf8'), manifest, 'the checkout is as it was')
  assert.deepEqual(readdirSync(join(checkout, 'sdk')), readdirSync(join(ROOT, 'sdk')))

  const [packed] = readdirSync(folder).filter((name) => name.endsWith('.tgz'))
  writeFileSync(join(folder, 'package.json'), '{ "name": "stranger", "private": true, "type": "module" }')
  await npm(['install', '--offline', `./${packed}`], folder)
  rmSync(checkout, { recursive: true })
})

after(() => rmSync(folder, { recursive: true, force: true }))

async function npm(args: string[], cwd: string): Promise<void> {
  const env = {
    ...process.env,
    npm_config_update_notifier: 'false',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
  }
  await shown(run('npm', args, { cwd, env, timeout: NPM_MS_MAX }))
}

/** A program that fails has said why. */
async function shown(running: Promise<{ stdout: string; stderr: string }>): Promise<string> {
  try {
    return (await running).stdout
  } catch (error) {
    const { message, stdout, stderr } = error as ExecFileException
    throw new Error(`${message}\n${stdout}\n${stderr}`)
  }
}

for (const [module, moduleResolution] of [
  ['nodenext', 'nodenext'],
  ['esnext', 'bundler'],
] as const) {
  test(`a stranger's strict project is type-checked with moduleResolution ${moduleResolution}`, async () => {
    writeFileSync(join(folder, 'server.ts'), SERVER_TS)
    writeFileSync(join(folder, 'page.ts'), PAGE_TS)
    const compilerOptions = { module, moduleResolution, target: 'es2022', strict: true, noEmit: true, types: [] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['server.ts', 'page.ts'] }))
    await shown(run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder]))
  })
}

for (const node of nodes()) {
  test(`a stranger's JavaScript runs with it, attached by name and by path, on Node ${node.version}`, async (t) => {
    const platform = await startTestPlatform(t)
    writeFileSync(join(folder, 'program.js'), PROGRAM_JS)
    const env = { PLATFORM_API_URL: platform.url, PLATFORM_TOKEN: 't', PORT_GAME: '4000' }
    for (const attach of ['musterhost-sdk/attach', './node_modules/musterhost-sdk/attach.js']) {
      const printed = await shown(run(node.path, ['--import', attach, 'program.js'], { cwd: folder, env }))
      assert.equal(printed, '4000 7777 MusterError\n')
    }
  })
}

test('a page imports the files as they are', async (t) => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const seat = { ports: { game: { url: 'http://lobby.test/' } }, player: { token: 'p1' } }
  const page_text = `<!doctype html><p></p><script type="module">
    import { createClient, socketUrl } from './sdk/browser.js'
    import './sdk/player.js'
    const { ports, player } = await createClient().find({ game_modes: ['default'] })
    document.querySelector('p').textContent = socketUrl(ports.game, '/', { token: player.token })
  </script>`
  const found: unknown[] = []
  const server = createServer(async (request, response) => {
    const path = request.url ?? ''
    const json = (value: unknown) => response.setHeader('content-type', 'application/json').end(JSON.stringify(value))
    if (path === '/.well-known/muster.json')
      json({ matchmaker_url: `http://${request.headers.host}`, version_id: 'v1' })
    else if (path === '/matchmaker/lobbies/find') {
      found.push(await readJson(request))
      json(seat)
    } else if (/^\/sdk\/\w+\.js$/.test(path)) {
      const text = readFileSync(join(folder, 'node_modules', path.replace('/sdk/', 'musterhost-sdk/')), 'utf8')
      response.setHeader('content-type', 'text/javascript').end(text)
    } else response.setHeader('content-type', 'text/html').end(page_text)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const page = await openPage(browser, `http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  await page.locator('p:text("ws://")').waitFor()
  assert.equal(await page.locator('p').textContent(), 'ws://lobby.test/?token=p1')
  assert.deepEqual(
    found,
    [{ game_modes: ['default'], version_id: 'v1' }],
    'the version where the page itself names none',
  )
})

/** Each Node of this machine that the package is for: ours, and the one that runs npm. */
function nodes(): { path: string; version: string }[] {
  const found = new Map<string, string>([[process.version, process.execPath]])
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder, 'node')
    try {
      const version = execFileSync(path, ['--version'], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }).trim()
      const [major = 0, minor = 0] = version.slice(1).split('.').map(Number)
      if (major > 20 || (major === 20 && minor >= 19)) found.set(version, path)
    } catch {
      // There is no Node in this folder.
    }
  }
  return [...found].map(([version, path]) => ({ version, path }))
}
