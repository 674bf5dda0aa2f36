// Servers that know nothing of the platform, each a process of its own that is started with --import. The test speaks to
// them as the platform's proxy does.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { WebSocket } from 'ws'
import { freePorts } from '../../server/test/support/free-ports.ts'
import { until } from '../../server/test/support/until.ts'
import { refusal, startTestPlatform, type TestPlatform } from './test-platform.ts'

const ATTACH = import.meta.resolve('./attach.ts')
const WS = import.meta.resolve('ws')

/** Prints a line for each thing that reaches it: `request PATH`, `connection PATH`, and what a WebSocket sends. */
const GAME = `
  const http = createServer((request, response) => {
    console.log('request ' + request.url.split('?')[0])
    response.end('welcome')
  })
  const sockets = new WebSocketServer({ server: http })
  sockets.on('connection', (socket, request) => {
    console.log('connection ' + request.url.split('?')[0])
    socket.on('message', (message) => socket.send('echo ' + message))
  })
  http.listen(process.env.PORT, () => console.log('listening ' + http.address().address))`
const GAME_ESM = `import { createServer } from 'node:http'; import { WebSocketServer } from '${WS}'; ${GAME}`
const GAME_CJS = `const { createServer } = require('http'); const { WebSocketServer } = require('${new URL('index.js', WS).pathname}'); ${GAME}`

type Attached = {
  platform: TestPlatform
  url: string
  port: number
  /** What the server printed, a line each. */
  lines: () => string[]
  errors: () => string
  ended: Promise<number | null>
  /** The paths that the platform was asked for. */
  asked: () => string[]
}

async function attached(
  t: TestContext,
  {
    source = GAME_ESM,
    name = 'server.mjs',
    env = {},
  }: { source?: string; name?: string; env?: Record<string, string> },
): Promise<Attached> {
  const platform = await startTestPlatform(t)
  const [port] = (await freePorts(1)) as [number]
  const folder = mkdtempSync(join(tmpdir(), 'muster-attach-'))
  writeFileSync(join(folder, name), source)
  const child = spawn(process.execPath, ['--import', ATTACH, name], {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      PLATFORM_API_URL: platform.url,
      PLATFORM_TOKEN: 'lobby.token',
      PORT_GAME: String(port),
      ...env,
    },
  })
  const ended = once(child, 'close').then(([code]) => code as number | null)
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true })
  })
  const output = { stdout: '', stderr: '' }
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      output[stream] += text
    })
  }
  return {
    platform,
    url: `http://127.0.0.1:${port}`,
    port,
    lines: () => output.stdout.split('\n').slice(0, -1),
    errors: () => output.stderr,
    ended,
    asked: () => platform.asked.map(({ path }) => path.replace('/matchmaker/', '')),
  }
}

/** Resolves once the lobby has called ready. */
async function ready(t: TestContext, options: Parameters<typeof attached>[1] = {}): Promise<Attached> {
  const server = await attached(t, options)
  await until('ready to be called', () => server.asked().includes('lobbies/ready'))
  return server
}

/** The status with which an upgrade was refused, and the code that says why. */
async function refusedUpgrade(url: string): Promise<[number | undefined, string]> {
  const socket = new WebSocket(url.replace('http', 'ws'))
  const [, response] = await once(socket, 'unexpected-response')
  let text = ''
  for await (const part of response.setEncoding('utf8')) text += part
  return [response.statusCode, (JSON.parse(text) as { code: string }).code]
}

async function openSocket(t: TestContext, url: string): Promise<WebSocket> {
  const socket = new WebSocket(url.replace('http', 'ws'))
  t.after(() => socket.terminate())
  await once(socket, 'open')
  return socket
}

for (const [name, source] of [
  ['server.mjs', GAME_ESM],
  ['server.cjs', GAME_CJS],
] as const) {
  test(`an unchanged ${name} gets its port, is reported ready once it listens, and is reached through the platform only`, async (t) => {
    const server = await ready(t, { source, name })
    assert.deepEqual(server.lines(), ['listening 127.0.0.1'])
    assert.deepEqual(server.asked(), ['lobbies/ready'])
    const addresses = Object.values(networkInterfaces()).flatMap((those) => those ?? [])
    for (const { address, family, internal } of addresses) {
      if (internal || family !== 'IPv4') continue
      await assert.rejects(fetch(`http://${address}:${server.port}/`), `reached at ${address}`)
    }
  })
}

test('a WebSocket without a good token is refused, and the server never sees it', async (t) => {
  const { url, platform, lines, asked } = await ready(t)
  assert.deepEqual(await refusedUpgrade(`${url}/none`), [401, 'NO_PLAYER_TOKEN'])
  assert.deepEqual(await refusedUpgrade(`${url}/odd?token=a%20b`), [401, 'NO_PLAYER_TOKEN'])
  assert.deepEqual(asked(), ['lobbies/ready'])
  platform.answer(refusal(400, 'MATCHMAKER_PLAYER_ALREADY_CONNECTED'))
  assert.deepEqual(await refusedUpgrade(`${url}/used?token=p1`), [401, 'MATCHMAKER_PLAYER_ALREADY_CONNECTED'])
  assert.deepEqual(lines(), ['listening 127.0.0.1'])
})

test('a player is connected before the server sees it, and gives the seat back when its WebSocket closes', async (t) => {
  const { url, platform, lines, asked } = await ready(t)
  const socket = await openSocket(t, `${url}/play?token=p1`)
  socket.send('hello')
  assert.equal(String((await once(socket, 'message'))[0]), 'echo hello')
  // The line comes over another pipe than the message.
  await until('the line of the connection', () => lines().length > 1)
  assert.deepEqual(lines().slice(1), ['connection /play'])
  assert.deepEqual(asked().slice(1), ['players/connected'])
  socket.close()
  await until('the seat to be given back', () => asked().includes('players/disconnected'))
  assert.deepEqual(platform.asked.at(-1)?.body, { player_token: 'p1' })
})

test('requests and connections of a player share one seat, wherever the token is', async (t) => {
  const { url, lines, asked } = await ready(t)
  const poll = (path: string, headers: Record<string, string> = {}) => fetch(`${url}${path}`, { headers })
  const answers = await Promise.all([
    poll('/poll?player_token=p1'),
    poll('/poll?token=p1'),
    poll('/poll?token=my-own', { authorization: 'Bearer p1' }),
    poll('/poll?player_token=p1&token=my-own'),
  ])
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 200],
  )
  const one = await openSocket(t, `${url}/play?token=p1`)
  const other = await openSocket(t, `${url}/play?token=p1`)
  await until('the lines of the requests', () => lines().filter((line) => line === 'request /poll').length === 4)
  assert.deepEqual(asked().slice(1), ['players/connected'])
  one.close()
  await once(one, 'close')
  await poll('/poll?token=p1')
  assert.deepEqual(asked().slice(1), ['players/connected'])
  other.close()
  await until('the seat to be given back', () => asked().includes('players/disconnected'))
  assert.equal(asked().length, 3)
})

test('a player who comes back is checked again, after the seat has been given back', async (t) => {
  const { url, platform, asked } = await ready(t, { env: { MUSTER_ATTACH_HOLD_MS: '30000' } })
  const socket = await openSocket(t, `${url}/?token=p1`)
  socket.close()
  await once(socket, 'close')
  await openSocket(t, `${url}/?token=p1`)
  assert.deepEqual(asked().slice(1), ['players/connected', 'players/disconnected', 'players/connected'])
  assert.deepEqual(platform.asked[2]?.body, { player_token: 'p1', hold_ms: 30_000 })
})

test('a request needs a token, but for a preflight and the paths that were opened', async (t) => {
  const { url, lines } = await ready(t, { env: { MUSTER_ATTACH_OPEN_PATHS: '/health, /static/' } })
  const status = async (path: string, init: RequestInit = {}) => (await fetch(`${url}${path}`, init)).status
  assert.equal(await status('/'), 401)
  assert.equal(await status('/', { method: 'OPTIONS' }), 401)
  const preflight = { origin: 'http://elsewhere.test', 'access-control-request-method': 'POST' }
  assert.equal(await status('/', { method: 'OPTIONS', headers: preflight }), 200)
  assert.equal(await status('/health'), 200)
  assert.equal(await status('/static/a/game.js'), 200)
  for (const path of ['/healthy', '/health/x', '/static', '/static/%2e%2e/play', '/static//play']) {
    assert.equal(await status(path), 401, path)
  }
  assert.deepEqual(await refusedUpgrade(`${url}/health`), [401, 'NO_PLAYER_TOKEN'])
  await until('the lines of the requests', () => lines().length > 3)
  assert.deepEqual(lines().slice(1), ['request /', 'request /health', 'request /static/a/game.js'])
  const refused = await fetch(`${url}/`)
  assert.equal(refused.headers.get('access-control-allow-origin'), '*')
  assert.deepEqual(Object.keys((await refused.json()) as object), ['code', 'message'])
})

test('what the platform cannot decide is not let in, and the seat is given back', async (t) => {
  const { url, platform, lines, asked } = await ready(t)
  platform.answer(refusal(500, 'INTERNAL_ERROR'))
  assert.deepEqual(await refusedUpgrade(`${url}/?token=p1`), [503, 'INTERNAL_ERROR'])
  await until('the seat to be given back', () => asked().includes('players/disconnected'))
  assert.deepEqual(lines(), ['listening 127.0.0.1'])
})

test('a player who leaves while the platform is asked gives the seat back, unseen', async (t) => {
  const { url, platform, lines, asked } = await ready(t)
  platform.answer(refusal(503, 'API_NOT_AVAILABLE', { 'retry-after': '1' }))
  const socket = new WebSocket(`${url.replace('http', 'ws')}/?token=p1`)
  socket.on('error', () => {})
  await until('the platform to be asked', () => asked().includes('players/connected'))
  socket.terminate()
  await until('the seat to be given back', () => asked().includes('players/disconnected'))
  assert.deepEqual(asked().slice(1), ['players/connected', 'players/connected', 'players/disconnected'])
  assert.deepEqual(lines(), ['listening 127.0.0.1'])
})

test('a server of another port is not checked, and the log says that players do not reach it', async (t) => {
  const [admin] = (await freePorts(1)) as [number]
  const { errors, lines } = await attached(t, { source: GAME_ESM.replace('process.env.PORT', String(admin)) })
  await until('the server to listen', () => lines().length === 1)
  assert.equal((await fetch(`http://127.0.0.1:${admin}/`)).status, 200)
  assert.match(errors(), new RegExp(`listens on port ${admin}\\. .*process\\.env\\.PORT`))
})

test('of several ports the settings name one, and a mistake ends the start with its remedy', async (t) => {
  const [voice] = (await freePorts(1)) as [number]
  const ports = { PORT_VOICE_CHAT: String(voice), PORT_RANGE_MIN_OTHER: '1' }
  await ready(t, { env: { ...ports, MUSTER_ATTACH_PORT: 'game' } })
  for (const [env, message] of [
    [ports, /several ports \(PORT_GAME,PORT_VOICE_CHAT\): set MUSTER_ATTACH_PORT/],
    [{ MUSTER_ATTACH_PORT: 'other' }, /MUSTER_ATTACH_PORT is other, but the lobby's ports are PORT_GAME/],
    [{ MUSTER_ATTACH_HOLD_MS: '1e9' }, /MUSTER_ATTACH_HOLD_MS must be/],
    [{ MUSTER_ATTACH_OPEN_PATHS: 'health' }, /MUSTER_ATTACH_OPEN_PATHS must be/],
  ] as const) {
    const { ended, errors, lines } = await attached(t, { env })
    assert.equal(await ended, 1)
    assert.match(errors(), message)
    assert.deepEqual(lines(), [])
  }
})

test('without the platform a server runs as if nothing were attached, and one line says so', async (t) => {
  const [own] = (await freePorts(1)) as [number]
  const folder = mkdtempSync(join(tmpdir(), 'muster-attach-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'server.mjs'), GAME_ESM)
  const child = spawn(process.execPath, ['--import', ATTACH, 'server.mjs'], {
    cwd: folder,
    env: { PATH: process.env.PATH, PORT: String(own) },
  })
  t.after(() => child.kill('SIGKILL'))
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  await once(child.stdout, 'data')
  await openSocket(t, `http://127.0.0.1:${own}/`)
  assert.match(errors, /^muster attach: not started by the platform.*\n$/)
})
