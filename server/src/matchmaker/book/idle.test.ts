import assert from 'node:assert'
import { test } from 'node:test'
import {
  at,
  expireAll,
  grantIn,
  idSource,
  lobbyPlan,
  runningLobby,
  START_MS,
} from '../../../test/matchmaker/plain-requests.ts'
import type { LobbyPlan } from './commands.ts'
import * as decide from './decide.ts'
import { setConnections, setIdleRules, setReported } from './evolve.ts'
import { NONE_REPORTED_MS } from './idle.ts'
import { changeOwn } from './own-lobby.ts'
import { Book } from './state.ts'

const GRACE_MS = 15_000
const SEAT_MS = 120_000
const EXPIRED_MS = START_MS + SEAT_MS
/** Far behind every deadline of these tests. */
const LATE_MS = START_MS + 3_600_000

/** A book that waits for the edges' reports. */
const newBook = (): Book => new Book({ reported_ms: NONE_REPORTED_MS })

/** A lobby whose server has said nothing of its one player. */
const silentLobby = (book: Book, ids = idSource(), plan: Partial<LobbyPlan> = {}) =>
  runningLobby(book, ids, START_MS, { plan })

test('a lobby whose server never reports players is idle from when its last connection was closed', () => {
  const book = newBook()
  const { lobby_id, player_id } = silentLobby(book)
  setConnections(book, lobby_id, 2, START_MS)
  setReported(book, START_MS, LATE_MS)
  expireAll(book, LATE_MS)
  assert.equal(book.players.get(player_id)!.remove_reason, 'expired')
  assert.equal(book.lobbies.get(lobby_id)!.stop_reason, null)
  setConnections(book, lobby_id, 1, LATE_MS)
  assert.equal(book.nextDueMs(), null)

  setConnections(book, lobby_id, 0, LATE_MS)
  assert.equal(book.nextDueMs(), null, 'no report is from after its grace yet')
  setReported(book, START_MS, LATE_MS + GRACE_MS - 1)
  assert.equal(decide.expire(book, LATE_MS + GRACE_MS), null)
  setReported(book, START_MS, LATE_MS + GRACE_MS)
  assert.deepEqual(decide.expire(book, LATE_MS + GRACE_MS), {
    kind: 'lobby_stopped',
    lobby_id,
    ms: LATE_MS + GRACE_MS,
    reason: 'idle',
  })
})

test('a lobby that its server keeps outlives its grace and its version, waits for no players, and ends after that time', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id, player_id, ...seat } = runningLobby(book, ids, START_MS)
  grantIn(book, changeOwn(book, { lobby_id, keep_ms: 3_600_000 }, START_MS))
  grantIn(book, decide.connected(book, { ...seat, lobby_id, player_id, connect_key: null }, START_MS))
  grantIn(book, decide.disconnected(book, { lobby_id, player_id, disconnect_key: null }, START_MS))
  setIdleRules(book, { version_id: 'another', idle_max: () => 1 })
  assert.deepEqual(expireAll(book, LATE_MS - 1), [])
  const { version_id, region, game_mode } = book.lobby(lobby_id)
  assert.equal(book.idle.count({ version_id, region, game_mode }), 0)
  const decision = changeOwn(book, { lobby_id }, LATE_MS - 1)
  assert.deepEqual(decision, { changes: [], result: { keep_until_ms: LATE_MS } })
  assert.equal(expireAll(book, LATE_MS).length, 1)
  assert.deepEqual(changeOwn(book, { lobby_id, keep_ms: 1 }, LATE_MS), { refused: 'MATCHMAKER_LOBBY_STOPPED' })
})

test('a lobby that its server no longer keeps is idle as any other', () => {
  const book = new Book()
  const { lobby_id, player_id } = runningLobby(book, idSource(), START_MS)
  grantIn(book, changeOwn(book, { lobby_id, keep_ms: 3_600_000 }, START_MS))
  grantIn(book, decide.release(book, player_id, START_MS))
  grantIn(book, changeOwn(book, { lobby_id, keep_ms: 0 }, START_MS))
  assert.deepEqual(expireAll(book, START_MS + GRACE_MS - 1), [])
  assert.equal(expireAll(book, START_MS + GRACE_MS).length, 1)
})

test('a missing report ends no lobby whose server never reports players, and keeps no other', () => {
  const book = newBook()
  const ids = idSource()
  const silent = silentLobby(book, ids)
  const reporting = runningLobby(book, ids, START_MS, { plan: { game_mode: 'other' } })
  grantIn(book, decide.connected(book, { ...reporting, connect_key: null }, START_MS))
  grantIn(book, decide.disconnected(book, { ...reporting, disconnect_key: null }, START_MS))
  setConnections(book, reporting.lobby_id, 1, START_MS)
  expireAll(book, LATE_MS)
  assert.equal(book.lobbies.get(reporting.lobby_id)!.stop_reason, 'idle', 'a stranger keeps no lobby')
  const much_later_ms = 2 * LATE_MS
  expireAll(book, much_later_ms)
  assert.equal(book.lobbies.get(silent.lobby_id)!.stop_reason, null)
  setReported(book, START_MS, LATE_MS)
  expireAll(book, much_later_ms)
  assert.equal(book.lobbies.get(silent.lobby_id)!.stop_reason, null, 'the report is from its grace')
  setReported(book, START_MS, LATE_MS + GRACE_MS)
  expireAll(book, much_later_ms)
  assert.equal(book.lobbies.get(silent.lobby_id)!.stop_reason, 'idle')
})

test('a lobby that is older than the reports has its grace from the moment at which they began', () => {
  const book = newBook()
  const { lobby_id } = silentLobby(book)
  expireAll(book, EXPIRED_MS)
  setReported(book, LATE_MS, LATE_MS)
  assert.equal(decide.expire(book, LATE_MS + GRACE_MS), null)
  setReported(book, LATE_MS, LATE_MS + GRACE_MS)
  expireAll(book, LATE_MS + GRACE_MS)
  assert.equal(book.lobbies.get(lobby_id)!.stop_reason, 'idle')
})

test('a version that is not deployed keeps a silent lobby while it has connections, and not for its grace', () => {
  const book = newBook()
  const { lobby_id } = silentLobby(book)
  setConnections(book, lobby_id, 1, START_MS)
  setReported(book, START_MS, LATE_MS)
  setIdleRules(book, { version_id: 'another', idle_max: () => 0 })
  expireAll(book, LATE_MS)
  assert.equal(book.lobbies.get(lobby_id)!.stop_reason, null)
  setConnections(book, lobby_id, 0, LATE_MS)
  expireAll(book, LATE_MS)
  assert.equal(book.lobbies.get(lobby_id)!.stop_reason, 'outdated')
})

test('the version of a roll-out keeps its lobbies beside the deployed one, and loses them at its end', () => {
  const book = newBook()
  const { lobby_id } = silentLobby(book)
  const { version_id } = book.lobby(lobby_id)
  setReported(book, START_MS, LATE_MS)
  setIdleRules(book, { version_id: 'another', rollout_version_id: version_id, idle_max: () => 1 })
  expireAll(book, LATE_MS)
  assert.equal(book.lobbies.get(lobby_id)!.stop_reason, null)
  setIdleRules(book, { version_id: 'another', idle_max: () => 1 })
  expireAll(book, LATE_MS)
  assert.equal(book.lobbies.get(lobby_id)!.stop_reason, 'outdated')
})

test('silent lobbies and others that wait for players are counted together, and the one that waited longest goes', () => {
  const book = newBook()
  const ids = idSource()
  const prepare = (ms: number): string => {
    const { lobby_id } = ids()
    const request = { plan: lobbyPlan(), idle_min: 2, lobby_count_max: 10 }
    assert.ok(grantIn(book, decide.prepare(book, request, lobby_id, at(ms))))
    grantIn(book, decide.ready(book, lobby_id, ms))
    return lobby_id
  }
  setIdleRules(book, { version_id: null, idle_max: () => 1 })
  const silent = prepare(START_MS)
  const reporting = runningLobby(book, ids, START_MS + 1)
  grantIn(book, decide.connected(book, { ...reporting, connect_key: null }, START_MS + 1))
  grantIn(book, decide.disconnected(book, { ...reporting, disconnect_key: null }, START_MS + 1))
  const both_are_there = { plan: lobbyPlan(), idle_min: 2, lobby_count_max: 10 }
  assert.equal(grantIn(book, decide.prepare(book, both_are_there, ids().lobby_id, at(START_MS + 1))), false)
  setReported(book, START_MS, LATE_MS)
  expireAll(book, LATE_MS)
  assert.equal(book.lobbies.get(silent)!.stop_reason, 'idle')
  assert.equal(book.lobbies.get(reporting.lobby_id)!.stop_reason, null)
})

test('connections that were open when a seat expired or a lobby was stopped are in the journal, and an exit has none', () => {
  const book = newBook()
  const ids = idSource()
  const [one, other] = [silentLobby(book, ids), silentLobby(book, ids)]
  for (const { lobby_id } of [one, other]) setConnections(book, lobby_id, 3, START_MS)
  assert.deepEqual(decide.expire(book, EXPIRED_MS), {
    kind: 'player_removed',
    player_id: one.player_id,
    ms: EXPIRED_MS,
    reason: 'expired',
    disconnect_key: null,
    open_connections: 3,
  })
  expireAll(book, EXPIRED_MS)
  grantIn(book, decide.stop(book, one.lobby_id, 'requested', EXPIRED_MS))
  grantIn(book, decide.stop(book, other.lobby_id, 'exited', EXPIRED_MS))
  const facts = [one, other].map(({ lobby_id }) => {
    const { seats_expired_while_connected, connections_at_stop } = book.lobbies.get(lobby_id)!
    return [seats_expired_while_connected, connections_at_stop]
  })
  assert.deepEqual(facts, [
    [1, 3],
    [1, null],
  ])
})
