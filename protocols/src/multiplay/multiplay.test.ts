import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import Centrifuge from 'centrifuge'
import { WebSocket } from 'ws'
import { FACTS, TestLobby } from '../test-lobby.ts'
import { randomJson, seededRandom, serveForTest, until } from '../test-server.ts'
import { MultiplayEndpoint, multiplay } from './multiplay.ts'

const SECRET = 'secret-of-the-lobby'
const GUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const ENDPOINTS = { proxy: { host: '127.0.0.1', port: 8086 } }

function serverJson(facts = FACTS, metadata: Record<string, string> = {}): Record<string, string> {
  const { files } = multiplay.additions(facts, ENDPOINTS, { metadata }, SECRET)
  return JSON.parse(files.find(({ path }) => path === 'server.json')?.content ?? '')
}

const SERVER_ID = serverJson().serverID ?? ''
const CHANNEL = `server#${SERVER_ID}`

type Reply = { id?: number; result?: Record<string, unknown> | null; error?: { code: number } }
type Event = { EventType: string; EventID: string; ServerID: number; AllocationID: string }

/** The event subscription of an SDK, written from the table: several commands a frame, a result in each reply. */
class StrictEvents {
  readonly socket: WebSocket
  readonly replies: Reply[] = []
  readonly events: Event[] = []
  is_closed = false

  constructor(port: number, agent = 'unity') {
    const url = `ws://127.0.0.1:${port}/v1/connection/websocket`
    this.socket = new WebSocket(url, { headers: { 'user-agent': agent } })
    this.socket.on('error', () => undefined)
    this.socket.on('close', (code) => {
      assert.ok(![3002, 3003].includes(code) && code < 3500, 'the SDK never returns after this code')
      this.is_closed = true
    })
    this.socket.on('message', (data, is_binary) => {
      assert.equal(is_binary, false)
      for (const line of String(data).split('\n')) this.#read(JSON.parse(line))
    })
  }

  #read(reply: Reply): void {
    if (reply.id !== undefined) {
      assert.ok(Number.isInteger(reply.id) && reply.id > 0)
      assert.ok(reply.error !== undefined || (typeof reply.result === 'object' && reply.result !== null))
      this.replies.push(reply)
      return
    }
    const { channel, data, type } = reply.result as {
      channel: string
      data: { data: Event; offset: number }
      type?: number
    }
    assert.equal(channel, CHANNEL)
    assert.equal(type ?? 0, 0)
    assert.equal(data.offset, 0)
    assert.ok(!('payload' in data.data), 'Unity would take the event for an envelope')
    assert.equal(typeof data.data.ServerID, 'number')
    assert.match(data.data.EventID, GUID)
    assert.match(data.data.AllocationID, GUID)
    this.events.push(data.data)
  }

  open(): Promise<void> {
    return until('the connection', () => this.socket.readyState === WebSocket.OPEN)
  }

  /** Sends the commands as one frame, and returns the reply to the last one. */
  async send(...commands: { id: number; method?: number; params?: object }[]): Promise<Reply> {
    this.socket.send(commands.map((command) => JSON.stringify(command)).join('\n'))
    const id = commands.at(-1)?.id
    await until('the reply', () => this.replies.some((reply) => reply.id === id))
    return this.replies.find((reply) => reply.id === id) ?? {}
  }

  subscribe(): Promise<Reply> {
    return this.send(
      { id: 1, method: 0, params: { token: 'fixed' } },
      { id: 2, method: 1, params: { channel: CHANNEL, token: 't' } },
    )
  }
}

async function start(t: TestContext, lobby = new TestLobby()) {
  const endpoint = new MultiplayEndpoint(lobby, {}, SECRET)
  const port = await serveForTest(t, endpoint)
  const connect = async (agent?: string) => {
    const events = new StrictEvents(port, agent)
    t.after(() => events.socket.terminate())
    await events.open()
    return events
  }
  /** As the SDKs: a body only with 200. */
  const call = async (method: string, path: string, body?: unknown) => {
    const init = body === undefined ? { method } : { method, body: JSON.stringify(body) }
    const response = await fetch(`http://127.0.0.1:${port}${path}`, init)
    const text = await response.text()
    assert.equal(text === '', response.status === 204)
    return { status: response.status, body: text === '' ? null : JSON.parse(text) }
  }
  return { lobby, port, connect, call }
}

test('server.json has each member as text, an id of digits and an allocation from the start', () => {
  const server = serverJson({ ...FACTS }, { map: 'ice', serverID: 'x', queryType: 'a2s' })
  assert.deepEqual(server, {
    serverID: SERVER_ID,
    allocatedUUID: FACTS.lobby_id,
    port: '7777',
    queryPort: '7777',
    queryType: 'a2s',
    ip: 'play.example.com',
    ipv6: '',
    serverLogDir: '/scratch',
    machineID: '1',
    fleetID: FACTS.version_id,
    regionID: 'local',
    regionName: 'local',
    localProxyUrl: 'http://127.0.0.1:8086',
    matchmakerUrl: 'http://127.0.0.1:8086',
    enableBackfill: 'false',
    map: 'ice',
  })
  assert.match(SERVER_ID, /^[1-9]\d*$/)
  assert.ok(Number.isSafeInteger(Number(SERVER_ID)))
  assert.notEqual(serverJson({ ...FACTS, lobby_id: FACTS.version_id }).serverID, SERVER_ID)
  const query = { ...FACTS.ports[0]!, name: 'query', listening: 7778 }
  assert.equal(serverJson({ ...FACTS, ports: [...FACTS.ports, query] }).queryPort, '7778')
})

test('a server that subscribes gets its allocation once', async (t) => {
  const { connect } = await start(t)
  const events = await connect()
  assert.deepEqual((await events.subscribe()).result, {})
  const { client, version } = events.replies[0]?.result ?? {}
  assert.match(String(client), GUID)
  assert.equal(typeof version, 'string')
  await until('the event', () => events.events.length > 0)
  const [event] = events.events
  assert.equal(event?.EventType, 'AllocateEventType')
  assert.equal(String(event?.ServerID), SERVER_ID)
  assert.equal(event?.AllocationID, FACTS.lobby_id)
  assert.deepEqual((await events.send({ id: 3, method: 7 })).result, {})
  assert.equal(events.events.length, 1)
})

test('several commands share a frame, and each with an id has a reply', async (t) => {
  const { connect } = await start(t)
  const events = await connect()
  await events.send(
    { id: 1, params: {} },
    { id: 0, method: 7 },
    { id: 2, method: 7 },
    { id: 3, method: 7 },
    { id: 4, method: 2, params: {} },
  )
  assert.deepEqual(
    events.replies.map(({ id }) => id),
    [1, 2, 3, 4],
  )
})

test('the channel of another server and an unknown method are refused, and the connection stays', async (t) => {
  const { connect } = await start(t)
  const events = await connect()
  const other = await events.send({ id: 1, method: 1, params: { channel: 'server#1' } })
  assert.equal(other.error?.code, 103)
  assert.equal((await events.send({ id: 2, method: 99 })).error?.code, 104)
  await events.subscribe()
  assert.equal(events.is_closed, false)
})

test('the SDK for Go, which reads the allocation of the file, does not get it again', async (t) => {
  const { lobby, connect } = await start(t)
  const events = await connect('Go-http-client/1.1')
  await events.subscribe()
  lobby.change({ is_draining: true })
  await until('the end', () => events.events.length > 0)
  assert.deepEqual(
    events.events.map(({ EventType }) => EventType),
    ['DeallocateEventType'],
  )
})

test('a lobby that drains is deallocated once on each connection', async (t) => {
  const { lobby, connect } = await start(t)
  const events = await connect()
  await events.subscribe()
  lobby.change({ is_draining: true })
  lobby.seat('a')
  await until('the end', () => events.events.length > 1)
  await events.send({ id: 5, method: 7 })
  assert.deepEqual(
    events.events.map(({ EventType }) => EventType),
    ['AllocateEventType', 'DeallocateEventType'],
  )
})

test('a new connection repeats the allocation until the server is ready, with the same id', async (t) => {
  const { connect, call } = await start(t)
  const first = await connect()
  await first.subscribe()
  await until('the event', () => first.events.length > 0)
  first.socket.terminate()
  const second = await connect()
  await second.subscribe()
  await until('the event', () => second.events.length > 0)
  assert.equal(second.events[0]?.EventID, first.events[0]?.EventID)
  await call('POST', `/v1/server/${SERVER_ID}/allocation/${FACTS.lobby_id}/ready-for-players`)
  const third = await connect()
  await third.subscribe()
  await third.send({ id: 3, method: 7 })
  assert.deepEqual(third.events, [])
})

test('the npm client of the protocol connects, subscribes and receives the allocation', async (t) => {
  const { port } = await start(t)
  const client = new Centrifuge(`ws://127.0.0.1:${port}/v1/connection/websocket`, { websocket: WebSocket })
  t.after(() => client.disconnect())
  const received: Event[] = []
  client.subscribe(CHANNEL, ({ data }: { data: Event }) => received.push(data))
  client.connect()
  await until('the allocation', () => received.length > 0)
  assert.equal(received[0]?.AllocationID, FACTS.lobby_id)
  assert.equal(client.isConnected(), true)
})

test('Unity reports that it is ready and unready', async (t) => {
  const { lobby, call } = await start(t)
  const ready = `/v1/server/${SERVER_ID}/allocation/${FACTS.lobby_id}/ready-for-players`
  assert.equal((await call('POST', ready)).status, 200)
  assert.equal(lobby.reports.at(-1)?.state, 'Ready')
  assert.equal((await call('POST', `/v1/server/${SERVER_ID}/unready`)).status, 200)
  assert.equal(lobby.reports.at(-1)?.state, 'Unready')
  assert.equal((await call('POST', ready)).status, 200)
  assert.deepEqual(lobby.calls, ['ready', 'setClosed true', 'ready', 'setClosed false'])
})

test('Go reports that it is ready and unready, with no body in the response', async (t) => {
  const { lobby, call } = await start(t)
  const path = `/v1/servers/${SERVER_ID}/allocations/${FACTS.lobby_id}`
  assert.equal((await call('PATCH', path, { ready: true })).status, 204)
  assert.equal((await call('PATCH', path, { ready: false })).status, 204)
  assert.equal((await call('PATCH', path, { ready: 'yes' })).status, 400)
  assert.deepEqual(lobby.calls, ['ready', 'setClosed true'])
})

test('a server that is ready again is opened before the view shows that it was closed', async (t) => {
  const { lobby, call } = await start(t)
  lobby.change = () => undefined
  const path = `/v1/servers/${SERVER_ID}/allocations/${FACTS.lobby_id}`
  for (const ready of [false, true, true]) assert.equal((await call('PATCH', path, { ready })).status, 204)
  assert.deepEqual(lobby.calls, ['setClosed true', 'ready', 'setClosed false', 'ready'])
})

test('a hold lasts as long as its duration says, and ends when it is deleted', async (t) => {
  const { lobby, call } = await start(t)
  lobby.clock_ms = 1_000_000
  const path = `/v1/servers/${SERVER_ID}/hold`
  assert.deepEqual((await call('GET', path)).body, { expiresAt: 0, held: false })
  assert.deepEqual(await call('POST', path, { timeout: '2m' }), { status: 200, body: { expiresAt: 1_120, held: true } })
  lobby.clock_ms += 119_000
  assert.deepEqual((await call('GET', path)).body, { expiresAt: 1_120, held: true })
  lobby.clock_ms += 2_000
  assert.deepEqual((await call('GET', path)).body, { expiresAt: 0, held: false })
  await call('POST', path, { timeout: '1h' })
  assert.equal((await call('DELETE', path)).status, 204)
  assert.deepEqual((await call('GET', path)).body, { expiresAt: 0, held: false })
  assert.equal((await call('DELETE', path)).status, 204)
  assert.deepEqual(lobby.calls, ['keep 120000', 'keep 3600000', 'keep 0'])
  for (const timeout of ['25h', '2 minutes', 120]) assert.equal((await call('POST', path, { timeout })).status, 400)
})

test('a reservation is the lobby itself', async (t) => {
  const { call } = await start(t)
  const path = `/v1/servers/${SERVER_ID}/reservations`
  const { status, body } = await call('POST', path, {})
  assert.equal(status, 200)
  assert.equal(body.reservationId, FACTS.lobby_id)
  for (const time of [body.created, body.requested, body.fulfilled]) assert.equal(new Date(time).toISOString(), time)
  assert.ok(Number.isInteger(body.gamePort) && Number.isInteger(body.buildConfigurationId))
  assert.equal((await call('DELETE', path)).status, 204)
})

test('the payload has teams and players of the match, and the configuration of the lobby', async (t) => {
  const { lobby, call } = await start(t, new TestLobby({ config: { map: 'ice' } }))
  lobby.seat('a', { team: 'red', attributes: { skill: 3 } })
  lobby.seat('b', { team: 'blue' })
  lobby.seat('watcher', { role: 'spectator' })
  const { body } = await call('GET', `/v1/payload/allocations/${FACTS.lobby_id}`)
  assert.equal(body.map, 'ice')
  assert.equal(body.MatchId, FACTS.lobby_id)
  assert.deepEqual(body.MatchProperties.Teams, [
    { TeamName: 'red', TeamId: 'red', PlayerIds: ['a'] },
    { TeamName: 'blue', TeamId: 'blue', PlayerIds: ['b'] },
  ])
  assert.deepEqual(body.MatchProperties.Players[0], { Id: 'a', CustomData: { skill: 3 }, QosResults: [] })
  assert.deepEqual((await call('GET', `/payload/${FACTS.lobby_id}`)).body, body)
})

test('both addresses of the token return one of three parts', async (t) => {
  const { call } = await start(t)
  for (const path of ['/token', '/v4/token']) {
    const { status, body } = await call('GET', path)
    assert.equal(status, 200)
    assert.equal(body.error, '')
    assert.match(body.token, /^[\w-]+\.[\w-]+\.[\w-]+$/)
    assert.equal(JSON.parse(Buffer.from(body.token.split('.')[1], 'base64url').toString()).sub, FACTS.lobby_id)
  }
})

test('backfill approvals are accepted, and nothing is called', async (t) => {
  const { lobby, call } = await start(t)
  assert.deepEqual(await call('POST', `/v2/backfill/${FACTS.lobby_id}/approvals`, {}), { status: 200, body: {} })
  assert.deepEqual(lobby.calls, [])
})

test('another server, another allocation and unknown paths are refused with a reason', async (t) => {
  const { lobby, port, call } = await start(t)
  const paths = [
    `/v1/server/1/allocation/${FACTS.lobby_id}/ready-for-players`,
    `/v1/server/${SERVER_ID}/allocation/${FACTS.version_id}/ready-for-players`,
    '/v1/server/{server}/allocation/%7Ballocation%7D/x',
    '/',
    '/v1/%zz',
  ]
  for (const path of paths) {
    const { status, body } = await call('POST', path)
    assert.equal(status, 404)
    assert.match(body.detail, /server\.json/)
  }
  const elsewhere = new WebSocket(`ws://127.0.0.1:${port}/v1/other`)
  await new Promise((resolve) => elsewhere.once('error', resolve))
  assert.deepEqual(lobby.calls, [])
})

test('a thousand random frames and requests neither end the process nor call what they did not ask for', async (t) => {
  const { lobby, port, connect, call } = await start(t)
  const random = seededRandom(5)
  const names = ['id', 'method', 'params', 'channel', 'token', CHANNEL, 'timeout', 'ready', '2m']
  const hostile = new WebSocket(`ws://127.0.0.1:${port}/v1/connection/websocket`)
  t.after(() => hostile.terminate())
  await until('the connection', () => hostile.readyState === WebSocket.OPEN)
  for (let count = 0; count < 800; count++) {
    const value = randomJson(random, names)
    const almost = { id: value, method: random(13), params: random(2) === 0 ? value : { channel: value } }
    const text = [value, almost, { ...almost, id: 1 }].map((one) => JSON.stringify(one)).join('\n')
    hostile.send(random(4) === 0 ? Buffer.from(text.slice(0, random(text.length + 1))) : text)
  }
  const paths = [
    `/v1/servers/${SERVER_ID}/hold`,
    `/v1/servers/${SERVER_ID}/allocations/${FACTS.lobby_id}`,
    '/%00/{server}',
    '/v1/connection/websocket',
  ]
  for (let batch = 0; batch < 10; batch++) {
    await Promise.all(
      Array.from({ length: 20 }, () => {
        const method = ['POST', 'PATCH', 'DELETE'][random(3)] ?? ''
        return call(method, paths[random(paths.length)] ?? '', randomJson(random, names) ?? undefined)
      }),
    )
  }
  const long = await connect()
  long.socket.send('x'.repeat(70_000))
  await until('the end', () => long.is_closed)
  const events = await connect()
  await events.subscribe()
  assert.deepEqual(
    lobby.calls.filter((one) => one !== 'ready' && !one.startsWith('setClosed')),
    [],
  )
})
