// A game server over a lobby in memory, with a clock of the test: waits, retries, and calls beside each other.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { LobbyError, type LobbyFacts } from '../lobby.ts'
import type { ProtocolOptions } from '../protocol.ts'
import { TestLobby } from '../test-lobby.ts'
import { GameServer } from './game-server.ts'

function start(t: TestContext, options: ProtocolOptions = {}, facts: Partial<LobbyFacts> = {}) {
  const now = Date.now()
  t.mock.timers.reset()
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now })
  const lobby = new TestLobby({ start_ts: now, ...facts })
  const server = new GameServer(lobby, options)
  t.after(() => server.close())
  return { lobby, server }
}

/** Passes the time with a ping each second, and lets what it woke run. */
async function pass(t: TestContext, server: GameServer, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    t.mock.timers.tick(1000)
    server.ping()
    await settle()
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

function refuseOnce(lobby: TestLobby, call: 'setClosed' | 'setState' | 'ready' | 'setPlayers', times = 1): void {
  let left = times
  const original = lobby[call] as (argument: unknown) => Promise<unknown>
  Object.assign(lobby, {
    async [call](argument: unknown) {
      if (left-- > 0) throw new LobbyError('API_NOT_AVAILABLE', 'The platform is restarting.')
      return original.call(lobby, argument)
    },
  })
}

test('many labels at once are few writes, and the last one has them all', async (t) => {
  const { lobby, server } = start(t)
  for (let index = 0; index < 100; index++) server.setLabel('turn', String(index))
  await settle()
  assert.deepEqual(Object(lobby.state).labels, { 'agones.dev/sdk-turn': '0' })
  await pass(t, server, 2)
  assert.deepEqual(Object(lobby.state).labels, { 'agones.dev/sdk-turn': '99' })
  const tags = ['0', '99'].map((turn) => `setTags ${JSON.stringify({ turn })}`)
  assert.deepEqual(lobby.calls, ['setState', tags[0], 'setState', tags[1]])
})

test('labels are tags of the lobby beside those of its creation, where the game mode has tags', async (t) => {
  const { lobby, server } = start(t, {}, { tags: { map: 'ice', mood: 'calm' } })
  server.setLabel('map', 'sand')
  await settle()
  assert.equal(lobby.calls.at(-1), 'setTags {"map":"sand","mood":"calm"}')

  const plain = start(t)
  plain.lobby.setTags = async () => {
    plain.lobby.calls.push('setTags')
    throw new LobbyError('MATCHMAKER_TAGS_DISABLED', 'The game mode has no tags.')
  }
  for (const turn of ['1', '2', '3']) {
    plain.server.setLabel('turn', turn)
    await pass(t, plain.server, 2)
  }
  assert.equal(plain.lobby.calls.filter((call) => call === 'setTags').length, 1)
  assert.deepEqual(plain.lobby.lines, [])

  const many = start(t)
  many.lobby.setTags = async () => {
    throw new LobbyError('MATCHMAKER_TOO_MANY_TAGS', 'A lobby has at most 8 tags.')
  }
  for (const turn of ['1', '2', '3']) {
    many.server.setLabel('turn', turn)
    await pass(t, many.server, 2)
  }
  assert.deepEqual(many.lobby.lines, ['agones: labels are no longer tags: A lobby has at most 8 tags.'])
})

test('a server that allocates itself is kept until it is ready again, and longer than a day', async (t) => {
  const { lobby, server } = start(t)
  const keeps = () => lobby.calls.filter((call) => call.startsWith('keep'))
  await server.ready()
  lobby.seat('anna')
  await settle()
  assert.deepEqual(keeps(), [])
  await server.allocate()
  await settle()
  assert.deepEqual(keeps(), ['keep 86400000'])
  for (let minute = 0; minute < 13 * 60; minute++) {
    t.mock.timers.tick(60_000)
    server.ping()
  }
  await settle()
  assert.deepEqual(keeps(), ['keep 86400000', 'keep 86400000'])
  await server.ready()
  await pass(t, server, 1)
  assert.equal(keeps().at(-1), 'keep 0')
})

test('find leaves out a lobby whose counter of rooms is full, also after a reservation', async (t) => {
  const { lobby, server } = start(t, { counters: { rooms: { capacity: 2 } }, room: 'rooms' })
  const add = (diff: bigint) => server.updateCounter('rooms', { count: undefined, capacity: undefined, diff })
  await server.ready()
  add(1n)
  await pass(t, server, 1)
  assert.equal(lobby.view.is_closed, false)
  add(1n)
  await pass(t, server, 1)
  assert.equal(lobby.view.is_closed, true)
  await server.reserve(0n)
  await server.ready()
  assert.equal(lobby.view.is_closed, true)
  add(-1n)
  await pass(t, server, 1)
  assert.equal(lobby.view.is_closed, false)
  await server.reserve(0n)
  add(1n)
  add(-1n)
  await pass(t, server, 1)
  assert.equal(lobby.view.is_closed, true)
})

test('a game server goes on after a crash of the program that served it', async (t) => {
  const options = { counters: { rooms: { capacity: 2 } }, lists: { players: {}, maps: { values: ['ice'] } } }
  const { lobby, server } = start(t, options)
  await server.ready()
  server.setLabel('mode', 'duel')
  server.updateCounter('rooms', { count: undefined, capacity: 9007199254740993n, diff: 1n })
  await server.addValue('players', 'anna')
  await server.connectPlayer('bob')
  await server.allocate()
  await settle()
  server.close()

  const { remembered } = lobby
  const heir_lobby = Object.assign(new TestLobby(lobby.facts), { remembered })
  const heir = new GameServer(heir_lobby, options)
  t.after(() => heir.close())
  await settle()
  assert.equal(heir.state, 'Allocated')
  assert.deepEqual(heir.counter('rooms'), { count: 1n, capacity: 9007199254740993n })
  assert.deepEqual(heir.list('players').values, ['anna'])
  assert.deepEqual(heir.players().ids, ['bob'])
  assert.deepEqual(Object(heir.object()).objectMeta.labels['agones.dev/sdk-mode'], 'duel')
  assert.deepEqual(heir_lobby.calls, ['keep 86400000'])
  await heir.addValue('players', 'carl')
  assert.equal(heir_lobby.calls.at(-1), 'setPlayers anna,carl')
})

test('the labels and annotations of an allocation are those of the server', (t) => {
  const agones = { labels: { mode: 'duel', bad: 7 }, annotations: { map: 'ice' } }
  const { server } = start(t, {}, { config: { agones } })
  const { labels, annotations } = Object(server.object()).objectMeta
  assert.deepEqual([labels.mode, labels.bad, annotations.map], ['duel', undefined, 'ice'])
})

test('a write that failed is repeated with what has changed since', async (t) => {
  const { lobby, server } = start(t)
  refuseOnce(lobby, 'setState', 2)
  server.setAnnotation('a', '1')
  await settle()
  server.setAnnotation('b', '2')
  await pass(t, server, 11)
  assert.deepEqual(Object(lobby.state).annotations, { 'agones.dev/sdk-a': '1', 'agones.dev/sdk-b': '2' })
  assert.deepEqual(lobby.calls, ['setState'])
})

test('a write that is refused for good is not repeated, and its developer learns of it', async (t) => {
  const { lobby, server } = start(t)
  let tries = 0
  lobby.setState = async () => {
    tries++
    throw new LobbyError('VALIDATION_ERROR', 'state: too large')
  }
  server.setLabel('a', 'b')
  await pass(t, server, 60)
  assert.equal(tries, 1)
  assert.match(lobby.lines[0]!, /could not be saved: VALIDATION_ERROR: state: too large/)
})

test('a reservation whose end the platform missed ends later', async (t) => {
  const { lobby, server } = start(t)
  await server.ready()
  await server.reserve(10n)
  refuseOnce(lobby, 'setClosed', 2)
  await pass(t, server, 9)
  assert.equal(server.state, 'Reserved')
  await pass(t, server, 6)
  assert.equal(server.state, 'Reserved')
  await pass(t, server, 6)
  assert.equal(server.state, 'Ready')
  assert.equal(lobby.view.is_closed, false)
})

test('a reservation for ever has no end, and a new one replaces the time', async (t) => {
  const { server } = start(t)
  await server.reserve(5n)
  await server.reserve(0n)
  await pass(t, server, 100)
  assert.equal(server.state, 'Reserved')
  await server.reserve(3n)
  await pass(t, server, 4)
  assert.equal(server.state, 'Ready')
})

test('a reservation that failed halfway does not leave the lobby closed', async (t) => {
  const { lobby, server } = start(t)
  refuseOnce(lobby, 'ready')
  await assert.rejects(server.reserve(0n), { code: 'API_NOT_AVAILABLE' })
  assert.equal(server.state, 'Scheduled')
  await server.ready()
  assert.equal(lobby.view.is_closed, false)
})

test('seats that were given back do not allocate the server again, and new ones do', async (t) => {
  const { lobby, server } = start(t)
  await server.ready()
  lobby.seat('anna', { is_connected: true })
  await settle()
  assert.equal(server.state, 'Allocated')
  // The view of the platform is late.
  lobby.setPlayers = async () => ({ unknown: [] })
  await server.ready()
  await settle()
  assert.equal(server.state, 'Ready')
  lobby.seat('spectator', { role: 'spectator' })
  await settle()
  assert.equal(server.state, 'Ready')
  t.mock.timers.tick(1)
  lobby.seat('anna')
  await settle()
  assert.equal(server.state, 'Allocated')
})

test('a seat that was taken while the server started allocates it when it is ready', async (t) => {
  const { lobby, server } = start(t)
  lobby.seat('anna')
  await settle()
  assert.equal(server.state, 'Scheduled')
  await server.ready()
  await settle()
  assert.equal(server.state, 'Allocated')
  assert.deepEqual(lobby.calls, ['ready', 'setState'])
})

test('each allocation is noted with its time, unless the server has filled its state', async (t) => {
  const { lobby, server } = start(t)
  const noted = () => Object(lobby.state).annotations['agones.dev/last-allocated']
  await server.ready()
  lobby.seat('anna')
  await settle()
  await pass(t, server, 1)
  const first = noted()
  assert.match(first, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  await server.allocate()
  await pass(t, server, 1)
  assert.equal(Date.parse(noted()) - Date.parse(first), 1000)

  const full = start(t, {})
  full.server.setAnnotation('a', 'x'.repeat(16_000))
  full.server.setAnnotation('b', 'x'.repeat(250))
  await full.server.allocate()
  assert.equal(full.server.state, 'Allocated')
})

test('calls follow each other while the platform restarts, and too many are refused', async (t) => {
  const { lobby, server } = start(t, { lists: { players: {} } })
  let release = () => {}
  lobby.held = new Promise((resolve) => {
    release = () => resolve()
  })
  const ids = Array.from({ length: 64 }, (_, index) => `player-${index}`)
  const calls = ids.map((id) => server.addValue('players', id))
  await assert.rejects(server.addValue('players', 'one more'), { code: 8 })
  await assert.rejects(server.ready(), { code: 8 })
  server.setLabel('still', 'here')
  release()
  await Promise.all(calls)
  assert.deepEqual(server.list('players').values, ids)
  await server.ready()
})

test('the list of players is as before when the platform did not take it', async (t) => {
  const { lobby, server } = start(t, { lists: { players: { values: [], capacity: 2 } } })
  refuseOnce(lobby, 'setPlayers', 2)
  await assert.rejects(server.addValue('players', 'anna'), { code: 'API_NOT_AVAILABLE' })
  await assert.rejects(server.connectPlayer('anna'), { code: 'API_NOT_AVAILABLE' })
  assert.deepEqual(server.list('players').values, [])
  assert.deepEqual(server.players().ids, [])
  await server.addValue('players', 'anna')
})

test('a server that is unhealthy while a call waits stays unhealthy', async (t) => {
  const { lobby, server } = start(t)
  let release = () => {}
  lobby.held = new Promise((resolve) => {
    release = () => resolve()
  })
  const ready = server.ready()
  for (let second = 0; second < 25; second++) t.mock.timers.tick(1000)
  assert.equal(server.state, 'Unhealthy')
  release()
  await ready
  assert.equal(server.state, 'Unhealthy')
  assert.equal(lobby.calls.filter((call) => call.startsWith('unhealthy')).length, 1)
})

test('health is reported once a second at most, and a report follows each change of state', async (t) => {
  const { lobby, server } = start(t)
  for (let index = 0; index < 100; index++) {
    server.ping()
    t.mock.timers.tick(25)
  }
  assert.equal(lobby.reports.filter(({ is_healthy }) => is_healthy).length, 3)
  await server.shutdown()
  assert.equal(lobby.reports.at(-1)!.state, 'Shutdown')
})

test('a closed server has no timer and hears of no change', async (t) => {
  const { lobby, server } = start(t)
  await server.ready()
  server.close()
  const { length } = lobby.reports
  lobby.seat('anna')
  t.mock.timers.tick(120_000)
  await settle()
  assert.equal(lobby.reports.length, length)
  assert.deepEqual(lobby.calls, ['ready'])
})
