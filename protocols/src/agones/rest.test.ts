// REST of the Agones SDK, to the letter of its gateway.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { type TestContext, test } from 'node:test'
import { WebSocket } from 'ws'
import { LobbyError } from '../lobby.ts'
import { FACTS, TestLobby } from '../test-lobby.ts'
import { startEndpoint, until } from './test-endpoint.ts'

type Line = { result: { object_meta: { uid: string; resource_version: string }; status: { state: string } } }

async function request(url: string, route: string, body?: string) {
  const [method, path] = route.split(' ') as [string, string]
  const response = await fetch(`${url}${path}`, { method, ...(body !== undefined && { body }) })
  assert.equal(response.headers.get('content-type'), 'application/json')
  return { status: response.status, body: (await response.json()) as unknown }
}

/** The lines of a watch as they come. */
async function watchLines(t: TestContext, url: string): Promise<AsyncGenerator<Line>> {
  const gone = new AbortController()
  t.after(() => gone.abort())
  const response = await fetch(`${url}/watch/gameserver`, { signal: gone.signal })
  assert.equal(response.status, 200)
  return (async function* () {
    let text = ''
    for await (const part of response.body!.pipeThrough(new TextDecoderStream())) {
      text += part
      for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
        yield JSON.parse(text.slice(0, end)) as Line
        text = text.slice(end + 1)
      }
    }
  })()
}

async function next(lines: AsyncGenerator<Line>): Promise<Line['result']> {
  return (await lines.next()).value.result
}

test('the object has all its members, in snake_case, with int64 as strings', async (t) => {
  const { url, lobby } = await startEndpoint(t)
  const { status, body } = await request(url, 'GET /gameserver')
  assert.equal(status, 200)
  assert.deepEqual(body, {
    object_meta: {
      name: `lobby-${FACTS.lobby_id}`,
      namespace: FACTS.namespace_id,
      uid: FACTS.lobby_id,
      resource_version: '1',
      generation: '1',
      creation_timestamp: String(Math.floor(lobby.facts.start_ts / 1000)),
      deletion_timestamp: '0',
      annotations: { 'muster.dev/tags': '{}', 'muster.dev/config': 'null' },
      labels: {
        'muster.dev/lobby-id': FACTS.lobby_id,
        'muster.dev/game-mode': 'default',
        'muster.dev/region': 'local',
      },
    },
    spec: {
      health: { disabled: false, period_seconds: 5, failure_threshold: 3, initial_delay_seconds: 5 },
    },
    status: {
      state: 'Scheduled',
      address: 'play.example.com',
      ports: [{ name: 'game', port: 20_005 }],
      players: null,
      counters: { rooms: { count: '1', capacity: '10' } },
      lists: { players: { capacity: '100', values: ['test0', 'test1', 'test2'] } },
      addresses: [{ type: 'ExternalDNS', address: 'play.example.com' }],
    },
  })
})

test('an address of a lobby without ports is empty, and a range of ports is left out', async (t) => {
  const game = { name: 'game', protocol: 'udp', listening: 7777 } as const
  const ports = [
    { ...game, public: { hostname: '192.0.2.1', port: null, url: 'udp://192.0.2.1' } },
    { ...game, name: 'range', listening: null, public: { hostname: '192.0.2.1', port: null, url: '' } },
  ]
  const status = async (facts: object) => {
    const { url } = await startEndpoint(t, { options: {}, facts })
    return ((await request(url, 'GET /gameserver')).body as { status: object }).status
  }
  const rest = { state: 'Scheduled', players: null, counters: {}, lists: {} }
  assert.deepEqual(await status({ ports: [] }), { ...rest, address: '', addresses: [], ports: [] })
  assert.deepEqual(await status({ ports }), {
    ...rest,
    address: '192.0.2.1',
    addresses: [{ type: 'ExternalIP', address: '192.0.2.1' }],
    ports: [{ name: 'game', port: 7777 }],
  })
})

test('the calls of the conformance test of Agones have their effects', async (t) => {
  const { url, lobby } = await startEndpoint(t)
  const call = async (route: string, body?: object) => {
    const { status, body: json } = await request(url, route, body === undefined ? undefined : JSON.stringify(body))
    assert.equal(status, 200, `${route}: ${JSON.stringify(json)}`)
    return json as Record<string, unknown>
  }
  const lines = await watchLines(t, url)
  assert.deepEqual(await call('POST /ready', {}), {})
  assert.deepEqual(await call('POST /health', {}), {})
  assert.deepEqual(await call('POST /reserve', { seconds: '5' }), {})
  assert.deepEqual(await call('POST /allocate', {}), {})
  const { object_meta } = (await call('GET /gameserver')) as { object_meta: { creation_timestamp: string } }
  assert.deepEqual(
    await call('PUT /metadata/label', { key: 'creationTimestamp', value: object_meta.creation_timestamp }),
    {},
  )
  const { uid } = (await next(lines)).object_meta
  assert.deepEqual(await call('PUT /metadata/annotation', { key: 'UID', value: uid }), {})
  const { labels, annotations } = ((await call('GET /gameserver')) as { object_meta: Record<string, object> })
    .object_meta
  assert.equal(Object(labels)['agones.dev/sdk-creationTimestamp'], object_meta.creation_timestamp)
  assert.equal(Object(annotations)['agones.dev/sdk-UID'], FACTS.lobby_id)

  const rooms = '/v1beta1/counters/rooms'
  assert.deepEqual(await call(`GET ${rooms}`), { name: 'rooms', count: '1', capacity: '10' })
  assert.deepEqual(await call(`PATCH ${rooms}`, { countDiff: '-1', capacity: '42' }), {
    name: 'rooms',
    count: '0',
    capacity: '42',
  })
  assert.deepEqual(await call(`PATCH ${rooms}`, { count: 40, capacity: null }), {
    name: 'rooms',
    count: '40',
    capacity: '42',
  })

  const players = '/v1beta1/lists/players'
  assert.deepEqual(await call(`GET ${players}`), {
    name: 'players',
    capacity: '100',
    values: ['test0', 'test1', 'test2'],
  })
  assert.deepEqual(await call(`PATCH ${players}`, { capacity: '10' }), { name: '', capacity: '0', values: [] })
  assert.deepEqual(await call(`GET ${players}`), {
    name: 'players',
    capacity: '10',
    values: ['test0', 'test1', 'test2'],
  })
  await call(`PATCH ${players}`, { values: ['test123', 'test456'], name: 'another' })
  const added = await call(`POST ${players}:addValue`, { value: 'test789' })
  assert.deepEqual(added, { name: 'players', capacity: '10', values: ['test123', 'test456', 'test789'] })
  const removed = await call(`POST ${players}:removeValue`, { value: 'test456' })
  assert.deepEqual(removed, { name: 'players', capacity: '10', values: ['test123', 'test789'] })

  assert.deepEqual(await call('PUT /alpha/player/capacity', { count: '8' }), {})
  assert.deepEqual(await call('GET /alpha/player/capacity'), { count: '8' })
  assert.deepEqual(await call('POST /alpha/player/connect', { playerID: '12/34' }), { bool: true })
  assert.deepEqual(await call('POST /alpha/player/connect', { playerID: '12/34' }), { bool: false })
  assert.deepEqual(await call('GET /alpha/player/connected/12%2F34'), { bool: true })
  assert.deepEqual(await call('GET /alpha/player/connected'), { list: ['12/34'] })
  assert.deepEqual(await call('GET /alpha/player/count'), { count: '1' })
  assert.deepEqual(await call('POST /alpha/player/disconnect', { playerID: '12/34' }), { bool: true })
  assert.deepEqual(await call('POST /shutdown', {}), {})
  assert.deepEqual(
    lobby.calls.filter((one) => !/setState|setPlayers|setTags/.test(one)),
    ['ready', 'setClosed true', 'setClosed false', 'keep 86400000', 'stop'],
  )
})

test('refusals have a code, a message and their HTTP status', async (t) => {
  const { url, lobby } = await startEndpoint(t)
  const cases: [route: string, body: string | undefined, status: number, code: number, message: RegExp][] = [
    ['POST /health', undefined, 400, 3, /the body is empty; send \{\}/],
    ['POST /ready', 'ready', 400, 3, /not JSON/],
    ['POST /ready', '[]', 400, 3, /./],
    ['POST /reserve', '{"seconds":"5.5"}', 400, 3, /seconds/],
    ['POST /reserve', '{"seconds":-1}', 400, 3, /seconds must be in/],
    ['PUT /metadata/label', '{"key":"a b","value":"x"}', 400, 3, /key: 1 to 59 of the characters/],
    ['PUT /metadata/label', '{"key":"a","value":"x y"}', 400, 3, /value: a label has at most 63/],
    ['PUT /metadata/annotation', '{"value":"x"}', 400, 3, /key/],
    ['GET /nothing', undefined, 404, 5, /^Not Found$/],
    ['GET /ready', undefined, 501, 12, /^Method Not Allowed$/],
    ['GET /v1beta1/counters/halls', undefined, 404, 5, /counter not found: halls/],
    ['GET /v1beta1/lists/toString', undefined, 404, 5, /list not found: toString/],
    ['GET /v1beta1/lists/%E0', undefined, 400, 3, /percent-encoding/],
    ['PATCH /v1beta1/counters/rooms', '{}', 400, 3, /one of count, capacity and countDiff is required/],
    ['PATCH /v1beta1/counters/rooms', '{"count":"11"}', 400, 11, /count must be in \[0,10\]; found: 11/],
    ['PATCH /v1beta1/counters/rooms', 'null', 400, 3, /must be an object/],
    ['PATCH /v1beta1/lists/players', '{"capacity":1001}', 400, 11, /\[0,1000\]; found: 1001/],
    ['POST /v1beta1/lists/players:addValue', '{"value":"test0"}', 409, 6, /in the list already/],
    ['POST /v1beta1/lists/players:removeValue', '{"value":"test9"}', 404, 5, /not in the list/],
    ['POST /ready', ' '.repeat(65 * 1024), 429, 8, /longer than 65536 bytes/],
    ['PUT /metadata/annotation', JSON.stringify({ key: 'a', value: 'x'.repeat(16 * 1024) }), 429, 8, /16384 bytes/],
  ]
  for (const [route, body, status, code, message] of cases) {
    const response = await request(url, route, body)
    const error = response.body as { code: number; message: string; details: unknown }
    assert.deepEqual([response.status, error.code, error.details], [status, code, []], `${route} ${error.message}`)
    assert.match(error.message, message)
  }
  assert.deepEqual(lobby.calls, [])
  assert.equal(lobby.state, null)
})

test('a call that the platform cannot take now is unavailable, and one that it refuses is not tried again', async (t) => {
  const { url, lobby } = await startEndpoint(t)
  lobby.ready = async () => {
    throw new LobbyError('API_NOT_AVAILABLE', 'The platform is restarting.')
  }
  assert.deepEqual(await request(url, 'POST /ready', '{}'), {
    status: 503,
    body: { code: 14, message: 'API_NOT_AVAILABLE: The platform is restarting.', details: [] },
  })
  lobby.ready = async () => {
    throw new LobbyError('LOBBY_NOT_FOUND', 'The lobby is over.')
  }
  const refused = await request(url, 'POST /ready', '{}')
  assert.deepEqual([refused.status, Object(refused.body).code], [400, 9])
  lobby.ready = TestLobby.prototype.ready
  assert.equal((await request(url, 'POST /ready', '{}')).status, 200)
  assert.equal(lobby.reports.at(-1)!.state, 'Ready')
})

test('a watch begins with the object, has each change, and ends with the lobby', async (t) => {
  const { url, lobby, endpoint } = await startEndpoint(t)
  const lines = await watchLines(t, url)
  assert.equal((await next(lines)).status.state, 'Scheduled')
  await request(url, 'POST /ready')
  assert.equal((await next(lines)).status.state, 'Ready')
  lobby.change({ is_draining: true })
  const { object_meta } = await next(lines)
  assert.equal(Object(object_meta).labels['muster.dev/draining'], 'true')
  endpoint.close()
  assert.equal((await lines.next()).done, true)
})

test('a WebSocket watches like HTTP, one object in one message', async (t) => {
  const { url, port, endpoint } = await startEndpoint(t)
  const socket = new WebSocket(`ws://127.0.0.1:${port}/watch/gameserver`)
  const states: string[] = []
  socket.on('message', (data, is_binary) => {
    assert.equal(is_binary, false)
    states.push((JSON.parse(String(data)) as Line).result.status.state)
  })
  await until('the first object', () => states.length === 1)
  await request(url, 'POST /ready', '{}')
  await until('Ready', () => states.length === 2)
  endpoint.close()
  const [code] = await once(socket, 'close')
  assert.equal(code, 1000)
  assert.deepEqual(states, ['Scheduled', 'Ready'])

  const [error] = await once(new WebSocket(`ws://127.0.0.1:${port}/gameserver`), 'error')
  assert.match(error.message, /404/)
})

test('watches beyond the eighth are refused until one has ended', async (t) => {
  const { url, port } = await startEndpoint(t)
  const ends = Array.from({ length: 8 }, () => new AbortController())
  await Promise.all(
    ends.map(async ({ signal }) => {
      const { body } = await fetch(`${url}/watch/gameserver`, { signal })
      await body!.getReader().read()
    }),
  )
  const refused = await request(url, 'GET /watch/gameserver')
  assert.deepEqual([refused.status, Object(refused.body).code], [429, 8])
  const [error] = await once(new WebSocket(`ws://127.0.0.1:${port}/watch/gameserver`), 'error')
  assert.match(error.message, /429/)
  ends[0]!.abort()
  for (const end = Date.now() + 10_000; ; ) {
    const signal = AbortSignal.timeout(10_000)
    const { status, body } = await fetch(`${url}/watch/gameserver`, { signal })
    await body!.cancel()
    if (status === 200) break
    assert.ok(Date.now() < end, 'the end of a watch was not seen')
  }
  for (const { signal } of ends.slice(1)) assert.equal(signal.aborted, false)
  for (const end of ends.slice(1)) end.abort()
})

test('REST comes over HTTP/2 too', async (t) => {
  const { url } = await startEndpoint(t)
  const session = connectHttp2(url)
  t.after(() => session.close())
  const stream = session.request({ ':method': 'POST', ':path': '/v1beta1/lists/players:addValue' })
  stream.end('{"value":"test3"}')
  const [headers] = await once(stream, 'response')
  assert.equal(headers[':status'], 200)
  let text = ''
  for await (const part of stream.setEncoding('utf8')) text += part
  assert.equal(text, '{"name":"players","capacity":"100","values":["test0","test1","test2","test3"]}')
})
