// PLATFORM_API_URL, the address by which a lobby calls the platform. A real lobby, in bubblewrap where it is installed,
// calls it. The contract says which operations it must reach.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import { findLobby, isForLobbies, setLobbyReady, setupIdentity, stopOwnLobby } from '@musterhost/contract'
import { OPERATIONS } from '@musterhost/contract/operations'
import { type Answer, ask, bearer, JSON_TYPE, requireRefusal } from '../http/ask.ts'
import { LONG_MS, UNKNOWN_ID } from '../http/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import type { Seat } from '../support/platform-verbs.ts'
import { until } from '../support/until.ts'

/** The lobby's server. The body of a request describes a call of the platform; the response is the result of that call. */
const CALLER = `
const http = process.getBuiltinModule('node:http')
import { text } from 'node:stream/consumers'
const { PLATFORM_API_URL, PLATFORM_TOKEN, PORT_GAME } = process.env
const call = ({ method, path, headers, body }) => new Promise((resolve, reject) => {
  const request = http.request(PLATFORM_API_URL + path, { method, headers: { authorization: 'Bearer ' + PLATFORM_TOKEN, ...headers } })
  request.on('error', reject)
  request.on('response', async (response) =>
    resolve({ status: response.statusCode, headers: response.headers, text: await text(response) }))
  request.end(body)
})
const server = http.createServer(async (request, response) => {
  const result = await call(JSON.parse(await text(request))).catch((error) => ({ error: error.code ?? error.message }))
  response.end(JSON.stringify(result))
})
server.listen(Number(PORT_GAME), '127.0.0.1', () => call({ method: 'POST', path: '/matchmaker/lobbies/ready' }))
process.on('SIGTERM', () => process.exit(0))
`

const CHUNKED = { 'transfer-encoding': 'chunked' }

type LobbyCall = { method: string; path: string; headers?: Record<string, string>; body?: string }
type CallerFixture = {
  platform: Platform
  game: TestGame
  seats: readonly [Seat, Seat]
  call: (call: LobbyCall) => Promise<Answer>
}

async function startCaller(t: TestContext): Promise<CallerFixture> {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner', has_sandboxes: true })
  const game = await platform.game({
    matchmaker: { game_modes: { default: { idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS, ratings: {} } } },
    files: { 'server.mjs': CALLER },
  })
  const { identity_token } = await game.player.call(setupIdentity, { body: {} })
  const seat = await platform.as(identity_token).call(findLobby, { body: { game_modes: ['default'] } })
  const other_seat = await game.find()
  const { lobby_id } = seat.lobby
  const run = await platform.ctx.db
    .selectFrom('lobby_runs')
    .where('lobby_id', '=', lobby_id)
    .select('ports')
    .executeTakeFirstOrThrow()
  const { hostname, port } = run.ports.game!
  return {
    platform,
    game,
    seats: [seat, other_seat],
    async call(call) {
      const { text } = await ask(`http://${hostname}:${port}/`, { method: 'POST', body: JSON.stringify(call) })
      const response = JSON.parse(text) as Answer | { error: string }
      if ('error' in response) throw new Error(`${call.method} ${call.path} from the lobby: ${response.error}`)
      return response
    },
  }
}

/** The call of each operation that a lobby's token may call, in the order of a lobby's life. */
function lobbyCalls([{ player }, other]: CallerFixture['seats']): Record<
  string,
  { path_end?: string; body?: unknown }
> {
  const [key, batch_key] = ['players/ada', 'players/bob']
  const one = `?key=${encodeURIComponent(key)}`
  const some = `?keys=${encodeURIComponent(batch_key)}`
  return {
    'lobbies.ready': { body: {} },
    'lobbies.setClosed': { body: { is_closed: false } },
    'lobbies.setState': { body: { map: 'caves' } },
    'lobbies.getState': {},
    'lobbies.watchOwn': {},
    'lobbies.setPlayers': { body: { player_ids: [] } },
    'lobbies.changeOwn': { body: { keep_ms: 1000 } },
    'players.connected': { body: { player_token: player.token } },
    'players.disconnected': { body: { player_token: player.token } },
    'kv.put': { body: { key, value: { score: 7 } } },
    'kv.get': { path_end: one },
    'kv.putBatch': { body: { entries: [{ key: batch_key, value: [1] }] } },
    'kv.getBatch': { path_end: some },
    'kv.list': { path_end: '?directory=players' },
    'kv.deleteBatch': { path_end: some },
    'kv.delete': { path_end: one },
    'lobbies.result': { body: { teams: [[player.token], [other.player.token]], ranks: [1, 2] } },
    'ratings.getPlayers': { path_end: `?players=${encodeURIComponent(player.token)}` },
    'ratings.list': { path_end: '?game_mode=default' },
  }
}

test('a lobby reaches every operation that its token may call at PLATFORM_API_URL, and no other', async (t) => {
  const { platform, game, seats, call } = await startCaller(t)
  const calls = lobbyCalls(seats)
  const callable = OPERATIONS.filter(isForLobbies)
  const called = [...Object.keys(calls), stopOwnLobby.id]
  assert.deepEqual(callable.map(({ id }) => id).sort(), called.sort(), 'each has a call above, or is the last one')

  await t.test('each operation succeeds at each of its paths', async () => {
    for (const [id, { path_end = '', body }] of Object.entries(calls)) {
      const { method, path, aliases } = callable.find((operation) => operation.id === id)!
      for (const one of [path, ...aliases]) {
        const target = `${one.replace('{lobby_id}', seats[0].lobby.lobby_id)}${path_end}`
        const sent = body === undefined ? {} : { headers: JSON_TYPE, body: JSON.stringify(body) }
        const response = await call({ method, path: target, ...sent })
        assert.equal(response.status, 200, `${id} at ${target}: ${response.text}`)
        assert.match(String(response.headers['x-ray-id']), /^[0-9a-f-]{36}$/)
        assert.equal(response.headers['x-muster-kept'], undefined)
      }
    }
  })

  await t.test('every other operation is refused, whatever the token', async () => {
    const others = OPERATIONS.filter((operation) => !isForLobbies(operation))
    assert.ok(others.length > 100, String(others.length))
    for (const token of [platform.token, game.public_token]) {
      for (const { id, method, path, aliases } of others) {
        for (const one of [path, ...aliases]) {
          const headers = bearer(token)
          const response = await call({ method, path: one.replace(/\{\w+\}/g, UNKNOWN_ID), headers })
          try {
            requireRefusal(response, 'API_FORBIDDEN')
          } catch (error) {
            throw new Error(`${id} at ${one}`, { cause: error })
          }
        }
      }
    }
    for (const path of ['/', '/kv', '/kv/entries/', '/kv%2Fentries?key=a', '/objects/x', '/docs/api', '//kv/entries']) {
      requireRefusal(await call({ method: 'GET', path }), 'API_NOT_FOUND')
    }
    requireRefusal(await call({ method: 'POST', path: '/kv/entries' }), 'API_NOT_FOUND')
  })

  await t.test('a refusal of the api arrives unchanged', async () => {
    const entries = '/kv/entries'
    requireRefusal(await call({ method: 'GET', path: `${entries}?key=` }), 'KV_KEY_VALIDATION_ERROR')
    requireRefusal(await call({ method: 'PUT', path: entries, headers: JSON_TYPE, body: '{"key":' }), 'API_BAD_BODY')
    const packed = { ...JSON_TYPE, 'content-encoding': 'gzip' }
    requireRefusal(
      await call({ method: 'PUT', path: entries, headers: packed, body: '{}' }),
      'API_UNSUPPORTED_MEDIA_TYPE',
    )
    const large = JSON.stringify({ key: 'large', value: 'x'.repeat(5 * 1024 * 1024) })
    requireRefusal(await call({ method: 'PUT', path: entries, headers: JSON_TYPE, body: large }), 'API_BODY_TOO_LARGE')
    const value = 'é'.repeat(100_000)
    const body = JSON.stringify({ key: 'long', value })
    const put = await call({ method: 'PUT', path: entries, headers: { ...JSON_TYPE, ...CHUNKED }, body })
    assert.equal(put.status, 200, put.text)
    const got = await call({ method: 'GET', path: `${entries}?key=long` })
    assert.equal((JSON.parse(got.text) as { value: string }).value, value)
  })

  await t.test('a body of an operation without one does not become a request to the api', async () => {
    const smuggled = `PUT /kv/entries HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n`
    const path = '/kv/entries?key=long'
    const framings: Record<string, string>[] = [CHUNKED, { 'content-length': String(smuggled.length) }]
    for (const headers of framings) {
      const response = await call({ method: 'DELETE', path, headers: { ...JSON_TYPE, ...headers }, body: smuggled })
      requireRefusal(response, 'API_BAD_BODY')
    }
    for (let count = 0; count < 4; count++) assert.equal((await call({ method: 'GET', path })).status, 200)
  })

  await t.test('a lobby waits for an entry to change', async () => {
    const path = '/kv/entries?key=watched'
    const { watch } = JSON.parse((await call({ method: 'GET', path })).text) as { watch: { index: string } }
    const watching = call({ method: 'GET', path: `${path}&watch_index=${encodeURIComponent(watch.index)}` })
    const body = JSON.stringify({ key: 'watched', value: 2 })
    assert.equal((await call({ method: 'PUT', path: '/kv/entries', headers: JSON_TYPE, body })).status, 200)
    assert.equal((JSON.parse((await watching).text) as { value: number }).value, 2)
  })

  await t.test('the lobby ends at its own request', async () => {
    const { method, path } = stopOwnLobby
    assert.equal((await call({ method, path })).status, 200)
    await platform.stopReasonOf(seats[0].lobby.lobby_id)
  })
})

test('without an api, seat calls succeed and entry calls are refused as unavailable', async (t) => {
  const platform = await startPlatform(t, { roles: 'matchmaker' })
  const base = `http://127.0.0.1:${platform.ctx.config.lobby_api_port}`
  const lobby = { lobby_id: UNKNOWN_ID, namespace_id: UNKNOWN_ID }
  const headers = bearer(platform.lobbyToken(lobby))
  const entries = ask(`${base}/kv/entries?key=a`, { headers })
  const ready = await ask(`${base}${setLobbyReady.path}`, { method: 'POST', headers })
  requireRefusal(ready, 'MATCHMAKER_LOBBY_STOPPED')
  requireRefusal(await entries, 'API_NOT_AVAILABLE')
  requireRefusal(await ask(`${base}/kv/entries?key=a`), 'API_UNAUTHORIZED')
})

test('a call waits for an api that is being started, and ends when the lobby or the api hangs up', async (t) => {
  const platform = await startPlatform(t, { roles: 'matchmaker' })
  const { lobby_api_port, api_port } = platform.ctx.config
  const url = `http://127.0.0.1:${lobby_api_port}/kv/entries?key=a`
  const headers = bearer(platform.lobbyToken({ lobby_id: UNKNOWN_ID, namespace_id: UNKNOWN_ID }))
  const waiting = ask(url, { headers: { ...headers, cookie: 'secret', 'x-forwarded-for': '203.0.113.7' } })
  // A server in place of the api, which responds when the test wants it.
  const received: { request: IncomingMessage; response: ServerResponse }[] = []
  const api = createServer((request, response) => void received.push({ request, response }))
  await once(api.listen(api_port, '127.0.0.1'), 'listening')
  t.after(() => api.close())
  t.after(() => api.closeAllConnections())

  const first = await until('the call', () => received.shift())
  assert.equal(first.request.headers['x-forwarded-for'], '127.0.0.1')
  assert.equal(first.request.headers.authorization, headers.authorization)
  assert.equal(first.request.headers.cookie, undefined)
  first.response
    .writeHead(418, { 'x-muster-kept': 'nobody', 'content-type': 'text/plain', 'retry-after': '7' })
    .end('tea')
  const response = await waiting
  assert.deepEqual([response.status, response.text, response.headers['retry-after']], [418, 'tea', '7'])
  assert.equal(response.headers['x-muster-kept'], undefined)

  const lobby = request(url, { headers }).end()
  const hung_up = once(lobby, 'error')
  const second = await until('the second call', () => received.shift())
  const gone = once(second.response, 'close')
  lobby.destroy()
  await Promise.all([gone, hung_up])

  const refused = ask(url, { headers })
  const third = await until('the third call', () => received.shift())
  third.request.socket.destroy()
  requireRefusal(await refused, 'API_NOT_AVAILABLE')

  const broken = ask(url, { headers })
  const fourth = await until('the fourth call', () => received.shift())
  fourth.response.writeHead(200, { 'content-length': '10' }).write('half')
  fourth.response.socket!.end()
  await assert.rejects(broken, /aborted|hang up|terminated/)
})
