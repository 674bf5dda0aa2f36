// The official SDK of Node, unchanged, against the endpoint.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import AgonesSDK from '@google-cloud/agones-sdk'
import { LobbyError } from '../lobby.ts'
import { FACTS } from '../test-lobby.ts'
import { agones } from './agones.ts'
import { startEndpoint, until } from './test-endpoint.ts'

type Endpoint = Parameters<typeof startEndpoint>[1]
type Entries = [string, string][]

/** The types of the package leave out most of its members. */
type Sdk = Record<'connect' | 'ready' | 'allocate' | 'shutdown', () => Promise<unknown>> & {
  close(): void
  health(): void
  reserve(seconds: number): Promise<unknown>
  setLabel(key: string, value: string): Promise<unknown>
  setAnnotation(key: string, value: string): Promise<unknown>
  getGameServer(): Promise<GameServer>
  watchGameServer(listener: (object: GameServer) => void, onError: () => void): void
  alpha: Record<string, (argument?: string | number) => Promise<unknown>>
  beta: Record<string, (name: string, argument?: string | number) => Promise<unknown>>
}
type GameServer = {
  objectMeta: {
    name: string
    namespace: string
    uid: string
    creationTimestamp: number
    labelsMap: Entries
    annotationsMap: Entries
  }
  spec: { health: object }
  status: { state: string; address: string; portsList: object[] }
}

/** The end of a stream, when a test is over. */
const ignore = () => undefined

/** The SDK reads its port from the environment, and always connects to localhost. */
async function startWithSdk(t: TestContext, more?: Endpoint) {
  const started = await startEndpoint(t, more)
  process.env.AGONES_SDK_GRPC_PORT = String(started.port)
  const sdk = new (AgonesSDK as unknown as new () => Sdk)()
  t.after(() => sdk.close())
  await sdk.connect()
  return { ...started, sdk }
}

test('a server of the SDK becomes ready, is allocated by its first seat, and is ready again', async (t) => {
  const { sdk, lobby } = await startWithSdk(t)
  const states: string[] = []
  sdk.watchGameServer(({ status }) => states.push(status.state), ignore)
  await until('the first object', () => states.length === 1)

  await sdk.ready()
  assert.deepEqual(lobby.calls, ['ready'])
  lobby.seat('anna')
  await until('Allocated', () => states.at(-1) === 'Allocated')
  await lobby.connected('token-anna')

  await sdk.ready()
  assert.deepEqual(
    lobby.calls.filter((call) => call !== 'setState'),
    ['ready', 'connected token-anna', 'setPlayers ', 'setClosed false', 'keep 0'],
  )
  assert.deepEqual(lobby.view.seats, [])

  await sdk.shutdown()
  await until('Shutdown', () => states.at(-1) === 'Shutdown')
  assert.deepEqual(states, ['Scheduled', 'Ready', 'Allocated', 'Ready', 'Shutdown'])
  assert.equal(lobby.calls.at(-1), 'stop')
  assert.deepEqual(
    lobby.reports.map(({ state }) => state),
    states,
  )
})

test('the object of the SDK has what the lobby is and how players reach it', async (t) => {
  const { sdk, lobby } = await startWithSdk(t, { facts: { tags: { mode: 'duel' }, config: { map: 'x' } } })
  lobby.change({ is_draining: true })
  const { objectMeta, spec, status } = await sdk.getGameServer()
  assert.equal(objectMeta.name, `lobby-${FACTS.lobby_id}`)
  assert.equal(objectMeta.namespace, FACTS.namespace_id)
  assert.equal(objectMeta.uid, FACTS.lobby_id)
  assert.equal(objectMeta.creationTimestamp, Math.floor(lobby.facts.start_ts / 1000))
  assert.deepEqual(Object.fromEntries(objectMeta.labelsMap), {
    'muster.dev/lobby-id': FACTS.lobby_id,
    'muster.dev/game-mode': 'default',
    'muster.dev/region': 'local',
    'muster.dev/draining': 'true',
  })
  assert.deepEqual(Object.fromEntries(objectMeta.annotationsMap), {
    'muster.dev/tags': '{"mode":"duel"}',
    'muster.dev/config': '{"map":"x"}',
  })
  assert.deepEqual(spec.health, { disabled: false, periodSeconds: 5, failureThreshold: 3, initialDelaySeconds: 5 })
  assert.equal(status.address, 'play.example.com')
  assert.deepEqual(status.portsList, [{ name: 'game', port: 20_005 }])
})

test('labels and annotations are in the object, in the watch and in the state of the lobby', async (t) => {
  const { sdk, lobby } = await startWithSdk(t)
  let watched: GameServer | undefined
  sdk.watchGameServer((object) => {
    watched = object
  }, ignore)
  await until('the first object', () => watched !== undefined)
  const { objectMeta } = await sdk.getGameServer()
  await sdk.setLabel('test-label', String(objectMeta.creationTimestamp))
  await sdk.setAnnotation('test-annotation', watched!.objectMeta.uid)

  const after = (await sdk.getGameServer()).objectMeta
  const label = new Map(after.labelsMap).get('agones.dev/sdk-test-label')
  assert.equal(label, String(objectMeta.creationTimestamp))
  assert.equal(new Map(after.annotationsMap).get('agones.dev/sdk-test-annotation'), FACTS.lobby_id)
  await until('the watch', () => new Map(watched!.objectMeta.labelsMap).has('agones.dev/sdk-test-label'))
  await until('the state', () => 'agones.dev/sdk-test-annotation' in Object(Object(lobby.state).annotations))
  assert.deepEqual(lobby.state, {
    labels: { 'agones.dev/sdk-test-label': label },
    annotations: { 'agones.dev/sdk-test-annotation': FACTS.lobby_id },
    counters: { rooms: { count: 1, capacity: 10 } },
    // Players may be listed by their tokens, so the list stays out of it.
    lists: {},
  })
})

test('a reservation closes the lobby for its seconds', async (t) => {
  const { sdk, lobby } = await startWithSdk(t)
  await sdk.ready()
  await sdk.reserve(1)
  assert.equal((await sdk.getGameServer()).status.state, 'Reserved')
  assert.equal(lobby.view.is_closed, true)
  await until('the lobby is open', () => !lobby.view.is_closed)
  await until('Ready', () => lobby.reports.at(-1)!.state === 'Ready')
  await sdk.reserve(0)
  await sdk.allocate()
  assert.deepEqual(
    lobby.calls.filter((call) => call !== 'setState'),
    ['ready', 'setClosed true', 'setClosed false', 'setClosed true', 'setClosed false', 'keep 86400000'],
  )
  const { annotationsMap } = (await sdk.getGameServer()).objectMeta
  assert.match(new Map(annotationsMap).get('agones.dev/last-allocated')!, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
})

test('counters and lists of the SDK obey their capacities', async (t) => {
  const { sdk, lobby } = await startWithSdk(t)
  const { beta } = sdk
  assert.equal(await beta.getCounterCount!('rooms'), 1)
  await beta.incrementCounter!('rooms', 1)
  await beta.decrementCounter!('rooms', 2)
  assert.equal(await beta.getCounterCount!('rooms'), 0)
  await beta.setCounterCount!('rooms', 10)
  await beta.setCounterCapacity!('rooms', 12)
  assert.equal(await beta.getCounterCapacity!('rooms'), 12)
  await assert.rejects(beta.incrementCounter!('rooms', 3), { code: 11 })
  await assert.rejects(beta.getCounterCount!('halls'), { code: 5 })
  assert.equal(await beta.getCounterCount!('rooms'), 10)

  assert.deepEqual(await beta.getListValues!('players'), ['test0', 'test1', 'test2'])
  assert.equal(await beta.getListLength!('players'), 3)
  await beta.appendListValue!('players', 'test3')
  await assert.rejects(beta.appendListValue!('players', 'test3'), { code: 6 })
  await beta.deleteListValue!('players', 'test0')
  await assert.rejects(beta.deleteListValue!('players', 'test0'), { code: 5 })
  assert.equal(await beta.listContains!('players', 'test3'), true)
  // The mask of this call is empty in the SDK.
  await beta.setListCapacity!('players', 2)
  assert.equal(await beta.getListCapacity!('players'), 2)
  await assert.rejects(beta.appendListValue!('players', 'test4'), { code: 11 })
  assert.deepEqual(await beta.getListValues!('players'), ['test1', 'test2'])
  assert.deepEqual(
    lobby.calls.filter((call) => call !== 'setState'),
    ['setPlayers test0,test1,test2,test3', 'setPlayers test1,test2,test3', 'setPlayers test1,test2'],
  )
})

test('the list of players and player tracking say who is in the game', async (t) => {
  const { sdk, lobby } = await startWithSdk(t, { options: { lists: { players: {} } } })
  lobby.seat('anna')
  await sdk.beta.appendListValue!('players', 'anna')
  assert.equal(lobby.view.seats[0]!.is_connected, true)
  await sdk.beta.deleteListValue!('players', 'anna')
  assert.equal(lobby.view.seats.length, 0)

  lobby.seat('ben')
  const { alpha } = sdk
  assert.equal(await alpha.getPlayerCapacity!(), 4)
  await alpha.setPlayerCapacity!(1)
  assert.equal(await alpha.playerConnect!('ben'), true)
  assert.equal(await alpha.playerConnect!('ben'), false)
  await assert.rejects(alpha.playerConnect!('carla'), { code: 11 })
  assert.equal(lobby.view.seats[0]!.is_connected, true)
  assert.deepEqual(await alpha.getConnectedPlayers!(), ['ben'])
  assert.equal(await alpha.getPlayerCount!(), 1)
  assert.equal(await alpha.isPlayerConnected!('ben'), true)
  assert.equal(await alpha.playerDisconnect!('ben'), true)
  assert.equal(await alpha.playerDisconnect!('ben'), false)
  assert.deepEqual(lobby.view.seats, [])
})

test('refusals have the codes of gRPC', async (t) => {
  const { sdk, lobby } = await startWithSdk(t)
  lobby.ready = async () => {
    throw new LobbyError('API_NOT_AVAILABLE', 'The platform is restarting.')
  }
  await assert.rejects(sdk.ready(), { code: 14, details: /The platform is restarting\./ })
  await assert.rejects(sdk.setLabel('a b', 'x'), { code: 3 })
  await assert.rejects(sdk.reserve(-1), { code: 3 })
  await assert.rejects(sdk.setAnnotation('a', 'x'.repeat(17_000)), { code: 8 })
  await assert.rejects(sdk.setAnnotation('a', 'x'.repeat(70_000)), { code: 8 })
  assert.equal((await sdk.getGameServer()).status.state, 'Scheduled')
})

test('the developer learns of a player in the list without a seat', async (t) => {
  const { sdk, lobby } = await startWithSdk(t)
  await sdk.beta.appendListValue!('players', 'stranger')
  assert.match(lobby.lines[0]!, /4 players without a seat in this lobby: "test0", /)
})

test('a server that stops its pings is unhealthy once, and stays so', async (t) => {
  const rules = { initial_delay_ms: 50, period_ms: 50, failure_threshold: 3 }
  const { sdk, lobby } = await startWithSdk(t, { rules })
  sdk.health()
  await until('a ping', () => lobby.reports.at(-1)?.is_healthy === true)
  await until('Unhealthy', () => lobby.reports.at(-1)!.state === 'Unhealthy')
  await sdk.ready()
  await sdk.shutdown()
  assert.equal((await sdk.getGameServer()).status.state, 'Unhealthy')
  assert.deepEqual(lobby.calls, ['unhealthy The server sent no health ping 3 times in a row.'])
  assert.equal(lobby.reports.at(-1)!.is_healthy, false)
})

test('a server that pings stays healthy', async (t) => {
  const rules = { initial_delay_ms: 100, period_ms: 100, failure_threshold: 3 }
  const { sdk, lobby } = await startWithSdk(t, { rules })
  const pings = setInterval(() => sdk.health(), 20)
  t.after(() => clearInterval(pings))
  await until('a report of health after many periods', () => lobby.reports.filter((one) => one.health_ts).length >= 2)
  assert.equal(lobby.reports.at(-1)!.state, 'Scheduled')
  assert.equal(lobby.reports.at(-1)!.is_healthy, true)
})

test('the program learns where its endpoints are', () => {
  const endpoints = { grpc: { host: '127.0.0.1', port: 9357 }, http: { host: '127.0.0.1', port: 9358 } }
  assert.deepEqual(agones.additions(FACTS, endpoints, {}, 'secret'), {
    env: {
      AGONES_SDK_GRPC_HOST: '127.0.0.1',
      AGONES_SDK_GRPC_PORT: '9357',
      AGONES_SDK_HTTP_HOST: '127.0.0.1',
      AGONES_SDK_HTTP_PORT: '9358',
    },
    files: [],
  })
})
