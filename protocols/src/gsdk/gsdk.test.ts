import assert from 'node:assert/strict'
import { isIPv4 } from 'node:net'
import { type TestContext, test } from 'node:test'
import { FACTS, TestLobby } from '../test-lobby.ts'
import { randomJson, seededRandom, serveForTest, until } from '../test-server.ts'
import { GsdkEndpoint, gsdk } from './gsdk.ts'

const SECRET = 'secret-of/lobby'
const GUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const ENDPOINTS = { agent: { host: '127.0.0.1', port: 56_001 } }

type Answer = { status: number; text: string; body: Record<string, unknown> }
type State = 'Initializing' | 'StandingBy' | 'Active' | 'Terminating' | 'Terminated'

/**
 * A server with a GSDK, as strict as the strictest of them: no empty body, an interval in each response, a GUID as session
 * id, `Active` once, and member names as C++, C#, Java and Unity read them.
 */
class StrictServer {
  readonly #base: string
  readonly #id: string
  state: State = 'Initializing'
  session: { sessionId: string; sessionCookie: string; initialPlayers: string[]; metadata: object } | null = null
  maintenance: Record<string, unknown> | null = null
  is_camel = false
  path = ''
  method = 'PATCH'

  constructor(port: number, id = SECRET) {
    this.#base = `http://127.0.0.1:${port}`
    this.#id = encodeURIComponent(id)
  }

  async send(path: string, method: string, body: string): Promise<Answer> {
    const response = await fetch(`${this.#base}${path}`, {
      method,
      ...(method === 'GET' ? {} : { body }),
      headers: { 'content-type': 'application/json' },
    })
    const text = await response.text()
    assert.notEqual(text, '', 'an empty body stops the heartbeats of Unity for ever')
    assert.ok(response.status < 500, `status ${response.status}`)
    return { status: response.status, text, body: JSON.parse(text) }
  }

  info(): Promise<Answer> {
    return this.send(`/v1/metrics/${this.#id}/gsdkinfo`, 'POST', '{"Flavor":"CSharp","Version":"0.11"}')
  }

  raw(body: unknown): Promise<Answer> {
    return this.send(`/v1/sessionHosts/${this.#id}${this.path}`, this.method, JSON.stringify(body))
  }

  /** One heartbeat, and what the SDK does with the response. Returns the operation. */
  async beat(players: string[] | null = null, health: 'Healthy' | 'Unhealthy' | '' = 'Healthy'): Promise<unknown> {
    const list = players?.map((id) => (this.is_camel ? { playerId: id } : { PlayerId: id })) ?? null
    const { status, body } = await this.raw(
      this.is_camel
        ? { currentGameState: this.state, currentGameHealth: health, currentPlayers: list }
        : { CurrentGameState: this.state, CurrentGameHealth: health, CurrentPlayers: list },
    )
    assert.equal(status, 200)
    assert.ok(Number.isInteger(body.nextHeartbeatIntervalMs), 'Java ends the process without an interval')
    assert.ok((body.nextHeartbeatIntervalMs as number) >= 1_000, 'C++ takes no shorter interval')
    this.#read(body)
    return body.operation
  }

  #read(body: Record<string, unknown>): void {
    if (body.sessionConfig !== undefined) {
      const session = body.sessionConfig as NonNullable<StrictServer['session']>
      assert.match(session.sessionId, GUID, 'C# cannot read another session id')
      assert.equal(typeof session.sessionCookie, 'string')
      assert.ok(Array.isArray(session.initialPlayers) && session.initialPlayers.every((id) => typeof id === 'string'))
      assert.ok(Object.values(session.metadata).every((value) => typeof value === 'string'))
      this.session ??= session
    }
    if (body.maintenanceSchedule !== undefined) {
      this.maintenance = body.maintenanceSchedule as Record<string, unknown>
      assert.equal(new Date(body.nextScheduledMaintenanceUtc as string).toISOString(), body.nextScheduledMaintenanceUtc)
    }
    if (body.operation === 'Active') {
      assert.equal(this.state, 'StandingBy', 'Unity throws at a second Active')
      this.state = 'Active'
    } else if (body.operation === 'Terminate') {
      this.state = 'Terminating'
    } else assert.equal(body.operation, 'Continue')
  }
}

async function start(t: TestContext, lobby = new TestLobby(), look_ms?: number) {
  const endpoint = new GsdkEndpoint(lobby, SECRET, look_ms)
  const port = await serveForTest(t, endpoint)
  return { lobby, endpoint, port, server: new StrictServer(port) }
}

/** Lets the clock run in steps of half a second, each seen by the endpoint. */
async function pass(lobby: TestLobby, endpoint: GsdkEndpoint, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 500) {
    lobby.clock_ms = lobby.now() + 500
    endpoint.look()
  }
}

test('the config file has every map and each port as text', () => {
  const ports = [
    ...FACTS.ports,
    { name: 'voice', protocol: 'udp' as const, listening: null, public: { hostname: 'h', port: null, url: 'udp://h' } },
  ]
  const { env, files } = gsdk.additions({ ...FACTS, ports }, ENDPOINTS, { metadata: { map: 'ice' } }, SECRET)
  const config = JSON.parse(files.find(({ path }) => `${FACTS.home}/${path}` === env.GSDK_CONFIG_FILE)?.content ?? '')
  assert.equal(config.heartbeatEndpoint, '127.0.0.1:56001')
  assert.equal(config.sessionHostId, SECRET)
  assert.deepEqual(config.gameCertificates, {})
  assert.deepEqual(config.buildMetadata, { map: 'ice' })
  assert.deepEqual(config.gamePorts, { game: '7777' })
  assert.deepEqual(config.gameServerConnectionInfo, {
    publicIpV4Adress: 'play.example.com',
    publicIpV4Address: 'play.example.com',
    gamePortsConfiguration: [{ name: 'game', serverListeningPort: 7777, clientConnectionPort: 20_005 }],
  })
  for (const name of ['vmId', 'fullyQualifiedDomainName', 'publicIpV4Address'])
    assert.equal(typeof config[name], 'string')
  assert.ok(isIPv4(config.heartbeatEndpoint.split(':')[0]))
})

test('each folder that the config names is made for the user of the lobby', () => {
  const { env, files } = gsdk.additions(FACTS, ENDPOINTS, {}, SECRET)
  const config = JSON.parse(files[0]?.content ?? '')
  const made = files.map(({ path }) => `${FACTS.home}/${path}`.replace(/\/[^/]+$/, ''))
  for (const folder of [config.logFolder, config.certificateFolder, config.sharedContentFolder]) {
    assert.ok(made.includes(folder), folder)
  }
  assert.equal(env.PF_SERVER_LOG_DIRECTORY, config.logFolder)
  assert.ok(made.includes(env.PF_SERVER_DUMP_DIRECTORY ?? ''))
  assert.equal(env.CERTIFICATE_FOLDER, config.certificateFolder)
  assert.equal(env.PF_SHARED_CONTENT_FOLDER, config.sharedContentFolder)
  assert.equal(env.PF_SERVER_INSTANCE_NUMBER, '1')
})

test('a server passes from Initializing to Active, and is ready once', async (t) => {
  const { lobby, server } = await start(t, new TestLobby({ config: { map: 'ice' }, tags: { mode: 'duel' } }))
  assert.equal((await server.info()).status, 200)
  assert.deepEqual(lobby.lines, ['GSDK: CSharp 0.11'])
  assert.equal(await server.beat(), 'Continue')
  assert.deepEqual(lobby.calls, [])
  server.state = 'StandingBy'
  assert.equal(await server.beat(), 'Continue')
  assert.equal(await server.beat(), 'Continue')
  await until('ready', () => lobby.calls.length > 0)
  lobby.seat('a')
  lobby.seat('watcher', { role: 'spectator' })
  assert.equal(await server.beat(), 'Active')
  assert.deepEqual(server.session, {
    sessionId: FACTS.lobby_id,
    sessionCookie: '{"map":"ice"}',
    initialPlayers: ['a'],
    metadata: { mode: 'duel' },
  })
  assert.deepEqual(lobby.calls, ['ready'])
  assert.equal(lobby.reports.at(-1)?.state, 'StandingBy')
})

test('a spectator alone does not make a session', async (t) => {
  const { lobby, server } = await start(t)
  lobby.seat('watcher', { role: 'spectator' })
  server.state = 'StandingBy'
  assert.equal(await server.beat(), 'Continue')
})

test('Active and its initial players come only while the server stands by', async (t) => {
  const { lobby, server } = await start(t)
  server.state = 'StandingBy'
  lobby.seat('a')
  assert.equal(await server.beat(), 'Active')
  lobby.seat('b')
  for (let beats = 0; beats < 3; beats++) assert.equal(await server.beat(), 'Continue')
  assert.deepEqual(server.session?.initialPlayers, ['a'])
})

test('Active comes again when its response was lost', async (t) => {
  const { lobby, server } = await start(t)
  lobby.seat('a')
  const body = { CurrentGameState: 'StandingBy', CurrentGameHealth: '', CurrentPlayers: null }
  assert.equal((await server.raw(body)).body.operation, 'Active')
  assert.equal((await server.raw(body)).body.operation, 'Active')
})

test('a server that was Active before a restart of the platform stays Active', async (t) => {
  const { lobby, server } = await start(t)
  lobby.seat('a', { is_connected: true })
  server.state = 'Active'
  assert.equal(await server.beat(['a']), 'Continue')
  assert.equal(server.session, null)
})

test('a server that goes back is refused, and nothing is called', async (t) => {
  const { lobby, server } = await start(t)
  server.state = 'StandingBy'
  lobby.seat('a')
  await server.beat()
  await server.beat()
  const { status, body } = await server.raw({ CurrentGameState: 'StandingBy', CurrentPlayers: [{ PlayerId: 'a' }] })
  assert.equal(status, 400)
  assert.match(String(body.error), /goes back from Active to StandingBy/)
  assert.deepEqual(lobby.calls, ['ready'])
})

test('names with small letters and each address of heartbeats are read', async (t) => {
  const { lobby, server } = await start(t)
  lobby.seat('a')
  server.state = 'StandingBy'
  server.is_camel = true
  server.path = '/heartbeats'
  server.method = 'POST'
  assert.equal(await server.beat(), 'Active')
  await server.beat(['a'])
  await until('players', () => lobby.calls.includes('setPlayers a'))
})

test('a server that reports Unhealthy for ever is shown as unhealthy, and is left alone', async (t) => {
  const { lobby, server } = await start(t)
  server.state = 'StandingBy'
  for (let beats = 0; beats < 5; beats++) await server.beat([], 'Unhealthy')
  assert.equal(lobby.reports.at(-1)?.is_healthy, false)
  await server.beat([], '')
  assert.equal(lobby.reports.at(-1)?.is_healthy, true)
  assert.deepEqual(lobby.calls, ['ready'])
})

test('the list of players is reported when it changes, and never when it is absent', async (t) => {
  const { lobby, server } = await start(t)
  for (const id of ['a', 'b']) lobby.seat(id)
  server.state = 'StandingBy'
  await server.beat(null)
  await server.beat([])
  await server.beat(['b', 'a'])
  await until('two players', () => lobby.calls.includes('setPlayers a,b'))
  await server.beat(['a', 'b'])
  await server.beat(null)
  await server.beat(['b'])
  await until('one player', () => lobby.calls.includes('setPlayers b'))
  assert.deepEqual(lobby.calls, ['ready', 'setPlayers a,b', 'setPlayers b'])
  assert.deepEqual(
    lobby.view.seats.map(({ player_id, is_connected }) => [player_id, is_connected]),
    [['b', true]],
  )
})

test('a player who takes a seat after it was listed is connected', async (t) => {
  const { lobby, server } = await start(t)
  server.state = 'StandingBy'
  await server.beat(['late'])
  await until('the line', () => lobby.lines.length === 1)
  assert.match(lobby.lines[0] ?? '', /1 of CurrentPlayers have no seat: "late"/)
  await server.beat(['late'])
  lobby.seat('late')
  await server.beat(['late'])
  await until('the seat', () => lobby.view.seats[0]?.is_connected === true)
  assert.equal(lobby.calls.filter((call) => call.startsWith('setPlayers')).length, 2)
})

test('a heartbeat is responded to while the platform restarts', async (t) => {
  const { lobby, server } = await start(t)
  let resume = () => {}
  lobby.held = new Promise((resolve) => {
    resume = resolve
  })
  lobby.seat('a')
  server.state = 'StandingBy'
  for (let beats = 0; beats < 5; beats++) await server.beat(['a'])
  assert.deepEqual(lobby.calls, [])
  resume()
  await until('the calls', () => lobby.calls.length === 2)
  assert.deepEqual(lobby.calls, ['ready', 'setPlayers a'])
})

test('a lobby that drains hints at its end, and ends the server when no seat is left', async (t) => {
  const { lobby, server } = await start(t)
  lobby.seat('a')
  server.state = 'StandingBy'
  await server.beat()
  lobby.change({ is_draining: true })
  assert.equal(await server.beat(), 'Continue')
  assert.equal(server.maintenance?.documentIncarnation, '1')
  const [event] = (server.maintenance?.Events ?? []) as Record<string, unknown>[]
  assert.deepEqual(Object.keys(event ?? {}).sort(), [
    'Resources',
    'description',
    'durationInSeconds',
    'eventId',
    'eventSource',
    'eventStatus',
    'eventType',
    'notBefore',
    'resourceType',
  ])
  lobby.change({ seats: [] })
  assert.equal(await server.beat(), 'Terminate')
  assert.equal(await server.beat(), 'Continue')
  assert.ok(!lobby.calls.includes('stop'))
})

test('a server that ends without having been asked to stops its lobby once', async (t) => {
  const { lobby, server } = await start(t)
  server.state = 'Terminating'
  await server.beat()
  server.state = 'Terminated'
  await server.beat()
  await until('stop', () => lobby.calls.length > 0)
  assert.deepEqual(lobby.calls, ['stop'])
})

test('silence for five seconds after a heartbeat is reported once, and again after the next heartbeat', async (t) => {
  const { lobby, endpoint, server } = await start(t, new TestLobby(), 3_600_000)
  lobby.clock_ms = 1_000_000
  await server.beat()
  await pass(lobby, endpoint, 5_000)
  assert.deepEqual(lobby.calls, [])
  await pass(lobby, endpoint, 30_000)
  assert.deepEqual(lobby.calls, ['unhealthy GSDK: no heartbeat for 5 s.'])
  await server.beat()
  await pass(lobby, endpoint, 6_000)
  assert.equal(lobby.calls.length, 2)
})

test('a first heartbeat has sixty seconds', async (t) => {
  const lobby = new TestLobby()
  lobby.clock_ms = 1_000_000
  const { endpoint } = await start(t, lobby, 3_600_000)
  await pass(lobby, endpoint, 60_000)
  assert.deepEqual(lobby.calls, [])
  await pass(lobby, endpoint, 1_000)
  assert.deepEqual(lobby.calls, ['unhealthy GSDK: no first heartbeat for 60 s.'])
})

test('a machine that was suspended blames no server', async (t) => {
  const { lobby, endpoint, server } = await start(t, new TestLobby(), 3_600_000)
  lobby.clock_ms = 1_000_000
  await server.beat()
  lobby.clock_ms += 3_600_000
  endpoint.look()
  await server.beat()
  await pass(lobby, endpoint, 4_000)
  assert.deepEqual(lobby.calls, [])
})

test('another id, a long body and what is not JSON are refused with a reason', async (t) => {
  const { lobby, port, server } = await start(t)
  const other = new StrictServer(port, FACTS.lobby_id)
  assert.equal((await other.raw({ CurrentGameState: 'StandingBy' })).status, 404)
  const path = `/v1/sessionHosts/${encodeURIComponent(SECRET)}`
  assert.equal((await server.send(path, 'PATCH', 'x'.repeat(70_000))).status, 413)
  assert.equal((await server.send(path, 'PATCH', '{"CurrentGameState"')).status, 400)
  assert.equal((await server.send(path, 'PATCH', '')).status, 400)
  assert.equal((await server.send('/v1/%zz', 'POST', '')).status, 404)
  assert.match(String((await server.raw({ CurrentGameState: 'Idle' })).body.error), /CurrentGameState is one of/)
  assert.deepEqual(lobby.calls, [])
})

test('a thousand random requests neither end the process nor call what they did not ask for', async (t) => {
  const { lobby, server } = await start(t)
  const random = seededRandom(7)
  const words = ['CurrentGameState', 'CurrentPlayers', 'CurrentGameHealth', 'PlayerId', 'Unhealthy', 'StandingBy', 'a']
  const paths = [
    `/v1/sessionHosts/${encodeURIComponent(SECRET)}`,
    '/v1/metrics/x/gsdkinfo',
    '/',
    '//',
    '/v1/sessionHosts/%00',
  ]
  for (let batch = 0; batch < 40; batch++) {
    await Promise.all(
      Array.from({ length: 25 }, () => {
        const value = randomJson(random, words)
        const almost = {
          CurrentGameState: 'StandingBy',
          CurrentGameHealth: value,
          CurrentPlayers: [{ PlayerId: value }],
        }
        const body = JSON.stringify(random(3) === 0 ? almost : value)
        const cut = random(3) === 0 ? body.slice(0, random(body.length + 1)) : body
        const method = ['PATCH', 'POST', 'GET', 'DELETE'][random(4)] ?? ''
        return server.send(`${paths[random(paths.length)]}${['', '/heartbeats', '/x'][random(3)]}`, method, cut)
      }),
    )
  }
  const unexpected = lobby.calls.filter((call) => call !== 'ready' && !call.startsWith('setPlayers'))
  assert.deepEqual(unexpected, [])
  assert.ok(lobby.calls.includes('ready'), 'some of the requests were valid')
  server.state = 'StandingBy'
  assert.equal(await server.beat(), 'Continue')
})
