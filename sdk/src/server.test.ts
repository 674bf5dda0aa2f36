import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { type Lobby, MusterError, openLobby } from './server.ts'
import { refusal, startTestPlatform, type TestPlatform } from './test-platform.ts'

async function hosted(t: TestContext): Promise<{ platform: TestPlatform; lobby: Lobby }> {
  const platform = await startTestPlatform(t)
  const environment = {
    PLATFORM_API_URL: platform.url,
    PLATFORM_TOKEN: 'lobby.token',
    PLATFORM_LOBBY_ID: 'the-lobby',
    PLATFORM_MAX_PLAYERS_NORMAL: '8',
    PLATFORM_LOBBY_TAGS: '{"map":"dust"}',
    PORT_GAME: '4000',
    PORT_VOICE_CHAT: '4001',
  }
  return { platform, lobby: openLobby({ environment }) }
}

const hasCode = (code: string) => (error: unknown) => error instanceof MusterError && error.code === code

test('the environment becomes a typed object', async (t) => {
  const { lobby } = await hosted(t)
  assert.equal(lobby.is_hosted, true)
  assert.equal(lobby.id, 'the-lobby')
  assert.equal(lobby.max_players, 8)
  assert.deepEqual(lobby.tags, { map: 'dust' })
  assert.equal(lobby.config, null)
  assert.equal(lobby.port('game'), 4000)
  assert.equal(lobby.port('voice-chat'), 4001)
  assert.throws(() => lobby.port('other'), hasCode('NOT_A_LOBBY'))
})

test('every call speaks the documented words, with the lobby token', async (t) => {
  const { platform, lobby } = await hosted(t)
  await lobby.ready()
  await lobby.connected('p1')
  await lobby.disconnected('p1')
  await lobby.disconnected('p2', { hold_ms: 30_000 })
  await lobby.setClosed(true)
  await lobby.setState({ map: 'dust' })
  const result = { teams: [['p1'], ['p2']], ranks: [1, 2] }
  await lobby.reportResult(result)
  assert.deepEqual(
    platform.asked.map(({ method, path, body }) => [method, path, body]),
    [
      ['POST', '/matchmaker/lobbies/ready', {}],
      ['POST', '/matchmaker/players/connected', { player_token: 'p1' }],
      ['POST', '/matchmaker/players/disconnected', { player_token: 'p1' }],
      ['POST', '/matchmaker/players/disconnected', { player_token: 'p2', hold_ms: 30_000 }],
      ['PUT', '/matchmaker/lobbies/closed', { is_closed: true }],
      ['PUT', '/matchmaker/lobbies/state', { map: 'dust' }],
      ['POST', '/matchmaker/lobbies/result', result],
    ],
  )
  for (const { headers } of platform.asked) assert.equal(headers.authorization, 'Bearer lobby.token')
})

test('connected says who is a spectator', async (t) => {
  const { platform, lobby } = await hosted(t)
  platform.answer({ status: 200, body: { role: 'spectator' } })
  assert.deepEqual(await lobby.connected('p1'), { role: 'spectator' })
  assert.deepEqual(await lobby.connected('p2'), {})
})

test('calls one after the other share a connection', async (t) => {
  const { platform, lobby } = await hosted(t)
  await lobby.ready()
  await lobby.connected('p1')
  assert.equal(new Set(platform.asked.map((asked) => asked.connection)).size, 1)
})

test('a restart of the platform is waited out, with one key per call', async (t) => {
  const { platform, lobby } = await hosted(t)
  platform.answer('hang up', refusal(503, 'API_NOT_AVAILABLE'), { status: 502, text: '<html>' })
  await lobby.connected('p1')
  await lobby.connected('p2')
  const keys = platform.asked.map((asked) => asked.headers['idempotency-key'])
  assert.equal(keys.length, 5)
  assert.equal(new Set(keys.slice(0, 4)).size, 1)
  assert.match(String(keys[0]), /^[0-9a-f-]{36}$/)
  assert.notEqual(keys[4], keys[0])
})

test('a platform that is not there yet is waited for', async () => {
  // The port was free a moment ago: nothing listens there until the first attempt has failed.
  const first = createServer()
  await new Promise<void>((resolve) => first.listen(0, '127.0.0.1', resolve))
  const { port } = first.address() as AddressInfo
  await new Promise((resolve) => first.close(resolve))

  const environment = { PLATFORM_API_URL: `http://127.0.0.1:${port}`, PLATFORM_TOKEN: 't' }
  const call = openLobby({ environment }).connected('p1')
  const server = createServer((_request, response) => response.end('{}'))
  setImmediate(() => server.listen(port, '127.0.0.1'))
  await call
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

test('a refusal is final and says why', async (t) => {
  const { platform, lobby } = await hosted(t)
  platform.answer(refusal(400, 'MATCHMAKER_PLAYER_ALREADY_CONNECTED'))
  await assert.rejects(lobby.connected('p1'), (error) => {
    assert.ok(error instanceof MusterError)
    assert.equal(error.code, 'MATCHMAKER_PLAYER_ALREADY_CONNECTED')
    assert.equal(error.status, 400)
    assert.equal(error.message, 'MATCHMAKER_PLAYER_ALREADY_CONNECTED in words.')
    assert.deepEqual(error.metadata, { seats: 0 })
    assert.equal(error.ray_id, 'ray-1')
    return true
  })
  assert.equal(platform.asked.length, 1)
})

test('Retry-After is respected', async (t) => {
  const { platform, lobby } = await hosted(t)
  platform.answer(refusal(503, 'API_NOT_AVAILABLE', { 'retry-after': '1' }))
  const begin_ms = performance.now()
  await lobby.connected('p1')
  assert.ok(performance.now() - begin_ms >= 990)
})

test('a platform that never answers is given up', async (t) => {
  const platform = await startTestPlatform(t)
  platform.answer('late')
  const environment = { PLATFORM_API_URL: platform.url, PLATFORM_TOKEN: 't' }
  const lobby = openLobby({ environment, retrying_ms_max: 200 })
  await assert.rejects(lobby.connected('p1'), hasCode('CONNECTION_FAILED'))
})

test('retries end, with the last refusal', async (t) => {
  const platform = await startTestPlatform(t)
  platform.answer(...Array.from({ length: 40 }, () => refusal(503, 'API_NOT_AVAILABLE', { 'retry-after': '0' })))
  const environment = { PLATFORM_API_URL: platform.url, PLATFORM_TOKEN: 't' }
  await assert.rejects(openLobby({ environment }).connected('p1'), hasCode('API_NOT_AVAILABLE'))
  assert.equal(platform.asked.length, 32)
})

test('a seat is given back also after an outage that is longer than a call is tried', async (t) => {
  const platform = await startTestPlatform(t)
  platform.answer(...Array.from({ length: 40 }, () => refusal(503, 'API_NOT_AVAILABLE', { 'retry-after': '0' })))
  const environment = { PLATFORM_API_URL: platform.url, PLATFORM_TOKEN: 't' }
  await openLobby({ environment, retrying_ms_max: 1 }).disconnected('p1')
  assert.equal(platform.asked.length, 41)
  assert.equal(new Set(platform.asked.map(({ headers }) => headers['idempotency-key'])).size, 1)
})

test('a lobby that ends does not wait for seats that cannot be given back', async () => {
  const program = `import { openLobby } from ${JSON.stringify(new URL('./server.ts', import.meta.url).href)}
    openLobby().disconnected('p1')`
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
    // Nothing listens there.
    env: { ...process.env, PLATFORM_API_URL: 'http://127.0.0.1:1', PLATFORM_TOKEN: 't' },
    timeout: 10_000,
  })
})

test('without the platform every call is allowed, and it says so', async () => {
  const lines: string[] = []
  const lobby = openLobby({ environment: { PORT_GAME: '4000' }, log: (line) => lines.push(line) })
  assert.equal(lobby.is_hosted, false)
  await lobby.ready()
  await lobby.connected('anything')
  await lobby.disconnected('anything')
  assert.equal(lobby.port('game'), 4000)
  assert.equal(lines.length, 1)
  assert.match(lines[0] ?? '', /not started by the platform/)
})

test('an idle connection does not keep the process alive', async (t) => {
  const platform = await startTestPlatform(t)
  const program = `import { openLobby } from ${JSON.stringify(new URL('./server.ts', import.meta.url).href)}
    await openLobby().ready()`
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
    env: { ...process.env, PLATFORM_API_URL: platform.url, PLATFORM_TOKEN: 't' },
    timeout: 10_000,
  })
  assert.equal(platform.asked.length, 1)
})
