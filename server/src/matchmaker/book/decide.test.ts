// The commands for seats and players: limits, deadlines, tokens and repeated keys.
import assert from 'node:assert'
import { test } from 'node:test'
import {
  at,
  expireAll,
  findRequest,
  grantIn,
  idOf,
  idSource,
  lobbyPlan,
  requestedSeat,
  runningLobby,
  START_MS,
} from '../../../test/matchmaker/plain-requests.ts'
import * as decide from './decide.ts'
import { apply } from './evolve.ts'
import { Book, MEMORY_MS } from './state.ts'

const refused = (code: string) => ({ refused: code })
const NO_ROOM = refused('MATCHMAKER_NO_AVAILABLE_LOBBIES')
const SECOND = 1_000

test('join is bounded by the direct limit, find by the normal one', () => {
  const book = new Book()
  const ids = idSource()
  const plan = { max_players_normal: 2, max_players_direct: 3, max_players_party: 1 }
  const { lobby_id } = runningLobby(book, ids, START_MS, { plan, players: 2 })
  assert.deepEqual(decide.find(book, findRequest(), ids(), at(START_MS)), NO_ROOM)
  grantIn(book, decide.join(book, { ...requestedSeat(), lobby_id }, ids(), START_MS))
  assert.deepEqual(
    decide.join(book, { ...requestedSeat(), lobby_id }, ids(), START_MS),
    refused('MATCHMAKER_LOBBY_FULL'),
  )
})

test('an allocation is one decision with all its seats, none beyond a limit, and is given back whole', () => {
  const book = new Book()
  const ids = idSource()
  const client = { client_ip: '192.0.2.1', client_key: '192.0.2.1', identity_id: null }
  const stranger = { client_ip: null, client_key: null, identity_id: null }
  const allocate = (players: (typeof client | typeof stranger)[], players_max: number, now_ms = START_MS) => {
    const request = {
      ...requestedSeat({ seat_key: 'a', party: { playersMaxOf: () => players_max } }),
      plan: lobbyPlan(),
    }
    const member_ids = players.slice(1).map(() => ids().player_id)
    return decide.allocate(book, { ...request, players }, { ...ids(), member_ids }, at(now_ms))
  }
  assert.deepEqual(allocate([client, stranger, client], 1), refused('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE'))
  const decision = allocate([client, stranger, stranger], 1)
  assert.deepEqual('changes' in decision && decision.changes.map(({ kind }) => kind), [
    'lobby_created',
    ...Array.from({ length: 3 }, () => 'player_reserved'),
  ])
  const seat = grantIn(book, decision)
  assert.equal(book.lobby(seat.lobby_id).players.size, 3)
  assert.deepEqual(allocate([client, stranger, stranger], 1), { changes: [], result: seat }, 'the same key')
  grantIn(book, decide.release(book, seat.player_id, START_MS))
  assert.equal(book.lobby(seat.lobby_id).players.size, 0)
  assert.equal(book.client_players.size, 0)
})

test('a client has at most as many players as its limit, over all lobbies, and 0 blocks it', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id } = runningLobby(book, ids, START_MS)
  const full = refused('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
  const mine = { client_key: '198.51.100.7', client_players_max: 2 }
  const first = grantIn(book, decide.find(book, findRequest(mine), ids(), at(START_MS)))
  grantIn(book, decide.create(book, { ...requestedSeat(mine), plan: lobbyPlan() }, ids(), at(START_MS)))
  assert.deepEqual(decide.find(book, findRequest(mine), ids(), at(START_MS)), full)
  assert.deepEqual(decide.join(book, { ...requestedSeat(mine), lobby_id }, ids(), START_MS), full)
  assert.deepEqual(decide.create(book, { ...requestedSeat(mine), plan: lobbyPlan() }, ids(), at(START_MS)), full)
  grantIn(
    book,
    decide.find(book, findRequest({ client_key: '198.51.100.8', client_players_max: 1 }), ids(), at(START_MS)),
  )
  grantIn(book, decide.release(book, first.player_id, START_MS))
  grantIn(book, decide.find(book, findRequest(mine), ids(), at(START_MS)))
  assert.deepEqual(
    decide.find(book, findRequest({ client_key: '203.0.113.1', client_players_max: 0 }), ids(), at(START_MS)),
    full,
  )
})

test('a namespace never has more lobbies than lobby_count_max; beyond it, and with 0, find only fills what is there', () => {
  const book = new Book()
  const ids = idSource()
  const request = (lobby_count_max: number) =>
    findRequest({ lobby_count_max, plan: lobbyPlan({ max_players_normal: 1 }) })
  const too_many = refused('MATCHMAKER_TOO_MANY_LOBBIES')
  assert.deepEqual(decide.find(book, request(0), ids(), at(START_MS)), too_many)
  const first = grantIn(book, decide.find(book, request(2), ids(), at(START_MS)))
  grantIn(book, decide.find(book, request(2), ids(), at(START_MS)))
  assert.deepEqual(decide.find(book, request(2), ids(), at(START_MS)), too_many)
  assert.deepEqual(decide.create(book, { ...request(2), plan: lobbyPlan() }, ids(), at(START_MS)), too_many)
  grantIn(book, decide.release(book, first.player_id, START_MS))
  assert.equal(grantIn(book, decide.find(book, request(0), ids(), at(START_MS))).lobby_id, first.lobby_id)
  grantIn(book, decide.stop(book, first.lobby_id, 'exited', START_MS))
  grantIn(book, decide.find(book, request(2), ids(), at(START_MS)))
  assert.deepEqual(decide.find(book, request(2), ids(), at(START_MS)), too_many)
})

test('a burst of finds fills the lobby that is starting, and starts the next one only when it is full', () => {
  const book = new Book()
  const ids = idSource()
  const seats = Array.from({ length: 10 }, () =>
    grantIn(book, decide.find(book, findRequest({ plan: lobbyPlan() }), ids(), at(START_MS))),
  )
  assert.deepEqual(
    [...book.lobbies.values()].map((lobby) => lobby.players.size),
    [4, 4, 2],
  )
  assert.ok(seats.every((seat) => !seat.is_ready))
})

test('a reservation that runs out frees its seat exactly once, at its millisecond and not before', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id, player_id } = runningLobby(book, ids, START_MS, { plan: { max_players_normal: 1 } })
  const deadline_ms = START_MS + 120 * SECOND
  assert.equal(decide.expire(book, deadline_ms - 1), null)
  assert.equal(book.players.get(player_id)!.remove_ms, null)
  assert.equal(expireAll(book, deadline_ms).length, 1)
  assert.equal(decide.expire(book, deadline_ms), null)
  assert.equal(book.lobbies.get(lobby_id)!.players.size, 0)
  grantIn(book, decide.find(book, findRequest(), ids(), at(deadline_ms)))
  assert.deepEqual(decide.find(book, findRequest(), ids(), at(deadline_ms)), NO_ROOM)
  assert.deepEqual(
    decide.connected(book, { player_id, lobby_id, connect_key: null }, deadline_ms),
    refused('MATCHMAKER_PLAYER_REGISTRATION_EXPIRED'),
  )
})

test('in the millisecond in which a reservation runs out it is either connected or freed, never both', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id, player_id } = runningLobby(book, ids, START_MS)
  const deadline_ms = START_MS + 120 * SECOND
  const call = { player_id, lobby_id, connect_key: null }
  assert.deepEqual(decide.connected(book, call, deadline_ms), refused('MATCHMAKER_PLAYER_REGISTRATION_EXPIRED'))
  grantIn(book, decide.connected(book, call, deadline_ms - 1))
  assert.equal(decide.expire(book, deadline_ms), null)
})

test('ready gives those who waited for it their full time to connect, and takes no time from anybody', () => {
  const book = new Book()
  const ids = idSource()
  const request = findRequest({ plan: lobbyPlan({ player_deadline_ms: 60 * SECOND }) })
  const early = grantIn(book, decide.find(book, request, ids(), at(START_MS)))
  const ready_ms = START_MS + 50 * SECOND
  const late = grantIn(book, decide.find(book, request, ids(), at(ready_ms)))
  grantIn(book, decide.ready(book, early.lobby_id, ready_ms))
  assert.equal(book.players.get(early.player_id)!.deadline_ms, ready_ms + 60 * SECOND)
  assert.equal(book.players.get(late.player_id)!.deadline_ms, ready_ms + 60 * SECOND)
  assert.equal(decide.expire(book, ready_ms + 60 * SECOND - 1), null)
  assert.deepEqual(
    decide.ready(book, early.lobby_id, ready_ms + SECOND),
    { changes: [], result: null },
    'ready is said once',
  )
})

test('a player token is consumed once: only the same key gets the same answer again', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id, player_id } = runningLobby(book, ids, START_MS)
  const call = (connect_key: string | null) => decide.connected(book, { player_id, lobby_id, connect_key }, START_MS)
  grantIn(book, call('first'))
  assert.deepEqual(call('first'), { changes: [], result: null })
  assert.deepEqual(call('second'), refused('MATCHMAKER_PLAYER_ALREADY_CONNECTED'))
  assert.deepEqual(call(null), refused('MATCHMAKER_PLAYER_ALREADY_CONNECTED'))
  const other = grantIn(book, decide.find(book, findRequest(), ids(), at(START_MS))).player_id
  const no_key = () => decide.connected(book, { player_id: other, lobby_id, connect_key: null }, START_MS)
  grantIn(book, no_key())
  assert.deepEqual(no_key(), refused('MATCHMAKER_PLAYER_ALREADY_CONNECTED'))
})

test('a player is not connected before its lobby is ready, nor after it has stopped, and its seat is counted right', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id, player_id } = grantIn(
    book,
    decide.find(book, findRequest({ plan: lobbyPlan() }), ids(), at(START_MS)),
  )
  const call = { player_id, lobby_id, connect_key: null }
  assert.deepEqual(decide.connected(book, call, START_MS), refused('MATCHMAKER_LOBBY_NOT_STARTED'))
  assert.equal(book.lobbies.get(lobby_id)!.players.size, 1)
  grantIn(book, decide.stop(book, lobby_id, 'exited', START_MS))
  assert.deepEqual(decide.connected(book, call, START_MS), refused('MATCHMAKER_PLAYER_REMOVED'))
  assert.deepEqual(
    decide.connected(book, { ...call, player_id: idOf(999) }, START_MS),
    refused('MATCHMAKER_PLAYER_REMOVED'),
  )
  assert.equal(book.lobbies.get(lobby_id)!.players.size, 0)
  assert.deepEqual(decide.ready(book, lobby_id, START_MS), refused('MATCHMAKER_LOBBY_STOPPED'))
  assert.deepEqual(decide.setClosed(book, lobby_id, true), refused('MATCHMAKER_LOBBY_STOPPED'))
  assert.deepEqual(decide.setState(book, lobby_id, '1'), refused('MATCHMAKER_LOBBY_STOPPED'))
})

test('a lobby neither connects nor disconnects the player of another lobby', () => {
  const book = new Book()
  const ids = idSource()
  const { player_id } = runningLobby(book, ids, START_MS)
  const other = runningLobby(book, ids, START_MS)
  const wrong = refused('MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY')
  const call = { player_id, lobby_id: other.lobby_id }
  assert.deepEqual(decide.connected(book, { ...call, connect_key: 'key' }, START_MS), wrong)
  assert.deepEqual(decide.disconnected(book, { ...call, disconnect_key: null }, START_MS), wrong)
  grantIn(book, decide.release(book, player_id, START_MS))
  assert.deepEqual(decide.disconnected(book, { ...call, disconnect_key: null }, START_MS), wrong)
})

test('disconnected frees the seat once, however often and whenever it is said', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id, player_id } = runningLobby(book, ids, START_MS, { players: 2 })
  const leave = (id: string) => decide.disconnected(book, { player_id: id, lobby_id, disconnect_key: null }, START_MS)
  grantIn(book, decide.connected(book, { player_id, lobby_id, connect_key: null }, START_MS))
  grantIn(book, leave(player_id))
  assert.equal(book.lobbies.get(lobby_id)!.players.size, 1)
  assert.deepEqual(leave(player_id), { changes: [], result: null })
  const reserved = [...book.lobbies.get(lobby_id)!.players.keys()][0]!
  grantIn(book, leave(reserved))
  assert.equal(book.lobbies.get(lobby_id)!.players.size, 0, 'a reserved player is let go as well')
  grantIn(book, decide.stop(book, lobby_id, 'exited', START_MS))
  assert.deepEqual(leave(player_id), { changes: [], result: null })
  assert.deepEqual(leave(idOf(999)), { changes: [], result: null })
})

test('a seat that is given back is free, unless its player has connected meanwhile', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id, player_id } = runningLobby(book, ids, START_MS)
  grantIn(book, decide.connected(book, { player_id, lobby_id, connect_key: null }, START_MS))
  assert.deepEqual(decide.release(book, player_id, START_MS), { changes: [], result: null })
  const other = grantIn(book, decide.find(book, findRequest(), ids(), at(START_MS)))
  grantIn(book, decide.release(book, other.player_id, START_MS))
  assert.deepEqual(decide.release(book, other.player_id, START_MS), { changes: [], result: null })
  assert.equal(book.lobbies.get(lobby_id)!.players.size, 1)
})

test('the same key gets the same seat for ten minutes, and no second one', () => {
  const book = new Book()
  const ids = idSource()
  const request = findRequest({ seat_key: 'find a', client_players_max: 1, plan: lobbyPlan() })
  const seat = grantIn(book, decide.find(book, request, ids(), at(START_MS)))
  grantIn(book, decide.ready(book, seat.lobby_id, START_MS))
  const again = { changes: [], result: { ...seat, is_ready: true } }
  assert.deepEqual(
    decide.find(book, request, ids(), at(START_MS)),
    again,
    'neither the limit nor a full lobby is in its way',
  )
  grantIn(book, decide.connected(book, { ...seat, connect_key: null }, START_MS + 1))
  assert.deepEqual(decide.find(book, request, ids(), at(START_MS + MEMORY_MS)), again)
  const later = START_MS + MEMORY_MS + 1
  const second = grantIn(book, decide.find(book, { ...request, client_players_max: 2 }, ids(), at(later)))
  assert.notEqual(second.player_id, seat.player_id)
  assert.deepEqual(decide.find(book, request, ids(), at(later)), { changes: [], result: { ...second, is_ready: true } })
})

test('the key of a seat that was answered is answered so again after the player has left', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id } = runningLobby(book, ids, START_MS)
  const request = { ...requestedSeat({ seat_key: 'join a' }), lobby_id }
  const seat = grantIn(book, decide.join(book, request, ids(), START_MS))
  grantIn(book, decide.disconnected(book, { ...seat, disconnect_key: null }, START_MS + 1))
  assert.deepEqual(decide.join(book, request, ids(), START_MS + 2), { changes: [], result: seat })
  grantIn(book, decide.stop(book, lobby_id, 'exited', START_MS + 3))
  assert.deepEqual(decide.join(book, request, ids(), START_MS + 4), { changes: [], result: seat })
})

test('the key of a find whose lobby died while it started chooses again', () => {
  const book = new Book()
  const ids = idSource()
  const request = findRequest({ seat_key: 'find a', plan: lobbyPlan() })
  const first = grantIn(book, decide.find(book, request, ids(), at(START_MS)))
  grantIn(book, decide.stop(book, first.lobby_id, 'exited', START_MS + 1))
  const second = grantIn(book, decide.find(book, request, ids(), at(START_MS + 2)))
  assert.notEqual(second.lobby_id, first.lobby_id)
  grantIn(book, decide.release(book, second.player_id, START_MS + 3))
  grantIn(book, decide.ready(book, second.lobby_id, START_MS + 4))
  const third = grantIn(book, decide.find(book, request, ids(), at(START_MS + 5)))
  assert.notEqual(third.player_id, second.player_id, 'a seat that was given back is nobody’s answer')
})

test('what is undone does not take a key from the seat that had it', () => {
  const book = new Book()
  const ids = idSource()
  const request = findRequest({ seat_key: 'find a', plan: lobbyPlan() })
  const first = grantIn(book, decide.find(book, request, ids(), at(START_MS)))
  const released = decide.release(book, first.player_id, START_MS)
  assert.ok('changes' in released)
  const undos = released.changes.map((change) => apply(book, change))
  const second = decide.find(book, request, ids(), at(START_MS))
  assert.ok('changes' in second)
  undos.push(...second.changes.map((change) => apply(book, change)))
  for (const undo of undos.reverse()) undo()
  assert.deepEqual(decide.find(book, request, ids(), at(START_MS)), { changes: [], result: first })
})
