import assert from 'node:assert'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  at,
  expireAll,
  findRequest,
  grantIn,
  idOf,
  idSource,
  lobbyPlan,
  PLACE,
  requestedSeat,
  runningLobby,
  START_MS,
  VERSION,
} from '../../../test/matchmaker/plain-requests.ts'
import type { Decision, Undo } from './commands.ts'
import * as decide from './decide.ts'
import { CONNECTED_MS_MAX } from './decide.ts'
import { apply, dropHolds, forget, load, postpone, setIdleRules } from './evolve.ts'
import { BrokenLaw } from './laws.ts'
import { TAG_CANDIDATES_MAX } from './open-lobbies.ts'
import { Book, LIST_PAGE_MAX, MEMORY_MS } from './state.ts'

const refused = (code: string) => ({ refused: code })
const NO_ROOM = refused('MATCHMAKER_NO_AVAILABLE_LOBBIES')
const SECOND = 1_000

/** Everything about a book that its methods tell. */
function stateOf(book: Book): unknown {
  return structuredClone({
    lobbies: [...book.lobbies.values()],
    players: book.players,
    live_lobby_count: book.live_lobby_count,
    due_ms: book.nextDueMs(),
    chosen: decide.find(book, findRequest(), { lobby_id: 'none', player_id: 'none' }, at(START_MS)),
  })
}

test('find takes the fullest lobby, whatever the order in which they filled', () => {
  const book = new Book()
  const ids = idSource()
  for (const players of [1, 3, 2]) runningLobby(book, ids, START_MS, { players })
  const fullest = [...book.lobbies.values()][1]!
  assert.equal(grantIn(book, decide.find(book, findRequest(), ids(), at(START_MS))).lobby_id, fullest.lobby_id)
  const next = grantIn(book, decide.find(book, findRequest(), ids(), at(START_MS)))
  assert.equal(next.lobby_id, [...book.lobbies.values()][2]!.lobby_id, 'the fullest is full now')
})

test('fullest is what has the fewest free places, not the most players', () => {
  const book = new Book()
  const ids = idSource()
  runningLobby(book, ids, START_MS, { players: 5, plan: { max_players_normal: 32, max_players_direct: 32 } })
  const small = runningLobby(book, ids, START_MS, { players: 1, plan: { max_players_normal: 2 } })
  assert.equal(grantIn(book, decide.find(book, findRequest(), ids(), at(START_MS))).lobby_id, small.lobby_id)
})

test('of equally full lobbies find takes the oldest, and of the same millisecond the one with the lower id', () => {
  const book = new Book()
  for (const [number, ms] of [
    [5, 30],
    [9, 10],
    [7, 10],
    [1, 20],
  ] as const) {
    const plan = lobbyPlan()
    const ids = { lobby_id: idOf(number), player_id: idOf(100 + number) }
    grantIn(book, decide.create(book, { ...requestedSeat(), plan }, ids, at(START_MS + ms)))
  }
  const ids = idSource()
  const order = Array.from(
    { length: 12 },
    () => grantIn(book, decide.find(book, findRequest(), ids(), at(START_MS))).lobby_id,
  )
  assert.deepEqual([...new Set(order)], [7, 9, 1, 5].map(idOf))
})

test('a find among several game modes and regions takes the fullest of all of them, and of no other', () => {
  const book = new Book()
  const ids = idSource()
  const solo = { ...PLACE, game_mode: 'solo' }
  const far = { ...PLACE, region: 'far' }
  runningLobby(book, ids, START_MS, { players: 1 })
  const in_solo = runningLobby(book, ids, START_MS, { players: 2, plan: solo })
  runningLobby(book, ids, START_MS, { players: 3, plan: far })
  runningLobby(book, ids, START_MS, { players: 3, plan: { version_id: idOf(999_999) } })
  assert.equal(
    grantIn(book, decide.find(book, findRequest({ places: [PLACE, solo] }), ids(), at(START_MS))).lobby_id,
    in_solo.lobby_id,
  )
  assert.deepEqual(
    decide.find(book, findRequest({ places: [{ ...PLACE, game_mode: 'other' }] }), ids(), at(START_MS)),
    NO_ROOM,
  )
  assert.deepEqual(decide.find(book, findRequest({ places: [] }), ids(), at(START_MS)), NO_ROOM)
})

test('find by tags takes a lobby that has them all, and it may have more', () => {
  const book = new Book()
  const ids = idSource()
  runningLobby(book, ids, START_MS, { players: 3 })
  runningLobby(book, ids, START_MS, { players: 3, plan: { tags: { mood: 'calm' } } })
  const both = runningLobby(book, ids, START_MS, { players: 1, plan: { tags: { mood: 'calm', map: 'ice' } } })
  const find = (tags: Record<string, string>) =>
    decide.find(book, findRequest({ tags: Object.entries(tags) }), ids(), at(START_MS + 1))
  assert.equal(grantIn(book, find({ map: 'ice', mood: 'calm' })).lobby_id, both.lobby_id)
  assert.equal(grantIn(book, find({ map: 'ice' })).lobby_id, both.lobby_id)
  assert.deepEqual(find({ map: 'ice', mood: 'wild' }), NO_ROOM)
  assert.deepEqual(find({ map: 'calm' }), NO_ROOM)
  assert.deepEqual(find({ constructor: 'x' }), NO_ROOM)
})

test('a lobby with tags that was full or closed is found by its tags again when it is open again', () => {
  const book = new Book()
  const ids = idSource()
  const lobby = runningLobby(book, ids, START_MS, { players: 4, plan: { tags: { map: 'ice' } } })
  const find = () => decide.find(book, findRequest({ tags: [['map', 'ice']] }), ids(), at(START_MS))
  assert.deepEqual(find(), NO_ROOM)
  grantIn(book, decide.release(book, lobby.player_id, START_MS))
  grantIn(book, decide.setClosed(book, lobby.lobby_id, true))
  assert.deepEqual(find(), NO_ROOM)
  grantIn(book, decide.setClosed(book, lobby.lobby_id, false))
  assert.equal(grantIn(book, find()).lobby_id, lobby.lobby_id)
})

test('a closed lobby is not found, but joined', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id } = runningLobby(book, ids, START_MS)
  grantIn(book, decide.setClosed(book, lobby_id, true))
  assert.deepEqual(decide.find(book, findRequest(), ids(), at(START_MS)), NO_ROOM)
  assert.equal(grantIn(book, decide.join(book, { ...requestedSeat(), lobby_id }, ids(), START_MS)).lobby_id, lobby_id)
  grantIn(book, decide.setClosed(book, lobby_id, false))
  assert.equal(grantIn(book, decide.find(book, findRequest(), ids(), at(START_MS))).lobby_id, lobby_id)
})

test('a private lobby is never found nor listed, but joined', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id } = runningLobby(book, ids, START_MS, { plan: { publicity: 'private' } })
  assert.deepEqual(decide.find(book, findRequest(), ids(), at(START_MS)), NO_ROOM)
  const request = { version_id: VERSION, game_modes: new Set([PLACE.game_mode]), after: null }
  assert.deepEqual(book.list(request), { lobbies: [], more: false })
  assert.equal(grantIn(book, decide.join(book, { ...requestedSeat(), lobby_id }, ids(), START_MS)).lobby_id, lobby_id)
})

test('a list names the public lobbies of its version and game modes once each, page by page, oldest first', () => {
  const book = new Book()
  const ids = idSource()
  const listed: string[] = []
  for (let count = 0; count < 2 * LIST_PAGE_MAX + 5; count++) {
    listed.push(runningLobby(book, ids, START_MS).lobby_id)
    runningLobby(book, ids, START_MS, { plan: { game_mode: 'other' } })
    const stopped = runningLobby(book, ids, START_MS)
    grantIn(book, decide.stop(book, stopped.lobby_id, 'requested', START_MS))
  }
  runningLobby(book, ids, START_MS, { plan: { version_id: idOf(999_999) } })
  const request = { version_id: VERSION, game_modes: new Set([PLACE.game_mode]) }
  const seen: string[] = []
  for (let after: string | null = null, pages = 1; ; pages++) {
    const page = book.list({ ...request, after })
    seen.push(...page.lobbies.map((lobby) => lobby.lobby_id))
    after = seen.at(-1)!
    assert.equal(page.more, pages < 3)
    if (!page.more) break
  }
  assert.deepEqual(seen, listed)
})

test('a lobby that nobody is in is listed only when it is the only one of its game mode', () => {
  const book = new Book()
  const ids = idSource()
  const request = { version_id: VERSION, game_modes: new Set([PLACE.game_mode, 'other']), after: null }
  const listed = () => book.list(request).lobbies.map((lobby) => lobby.lobby_id)
  const leave = ({ lobby_id, player_id }: { lobby_id: string; player_id: string }) =>
    grantIn(book, decide.disconnected(book, { lobby_id, player_id, disconnect_key: null }, START_MS))
  const first = runningLobby(book, ids, START_MS)
  const other = runningLobby(book, ids, START_MS, { plan: { game_mode: 'other' } })
  leave(first)
  leave(other)
  assert.deepEqual(listed(), [first.lobby_id, other.lobby_id])
  const second = runningLobby(book, ids, START_MS)
  assert.deepEqual(listed(), [other.lobby_id, second.lobby_id])
  leave(second)
  assert.deepEqual(listed(), [other.lobby_id])
  grantIn(book, decide.stop(book, second.lobby_id, 'idle', START_MS))
  assert.deepEqual(listed(), [first.lobby_id, other.lobby_id])
})

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

test('a client has at most as many players as its limit, over all lobbies, and 0 blocks it', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id } = runningLobby(book, ids, START_MS)
  const full = refused('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
  const mine = { client: '198.51.100.7', client_players_max: 2 }
  const first = grantIn(book, decide.find(book, findRequest(mine), ids(), at(START_MS)))
  grantIn(book, decide.create(book, { ...requestedSeat(mine), plan: lobbyPlan() }, ids(), at(START_MS)))
  assert.deepEqual(decide.find(book, findRequest(mine), ids(), at(START_MS)), full)
  assert.deepEqual(decide.join(book, { ...requestedSeat(mine), lobby_id }, ids(), START_MS), full)
  assert.deepEqual(decide.create(book, { ...requestedSeat(mine), plan: lobbyPlan() }, ids(), at(START_MS)), full)
  grantIn(book, decide.find(book, findRequest({ client: '198.51.100.8', client_players_max: 1 }), ids(), at(START_MS)))
  grantIn(book, decide.release(book, first.player_id, START_MS))
  grantIn(book, decide.find(book, findRequest(mine), ids(), at(START_MS)))
  assert.deepEqual(
    decide.find(book, findRequest({ client: '203.0.113.1', client_players_max: 0 }), ids(), at(START_MS)),
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

test('a lobby without players is stopped after its grace and not before; a new player keeps it', () => {
  const book = new Book()
  const ids = idSource()
  const seat = runningLobby(book, ids, START_MS)
  grantIn(book, decide.disconnected(book, { ...seat, disconnect_key: null }, START_MS))
  assert.equal(decide.expire(book, START_MS + 15 * SECOND - 1), null)
  const next = grantIn(book, decide.find(book, findRequest(), ids(), at(START_MS + 15 * SECOND - 1)))
  assert.equal(next.lobby_id, seat.lobby_id)
  assert.equal(decide.expire(book, START_MS + 60 * SECOND), null)
  const left_ms = START_MS + 60 * SECOND
  grantIn(book, decide.disconnected(book, { ...next, disconnect_key: null }, left_ms))
  assert.deepEqual(decide.expire(book, left_ms + 15 * SECOND), {
    kind: 'lobby_stopped',
    lobby_id: seat.lobby_id,
    ms: left_ms + 15 * SECOND,
    reason: 'idle',
  })
})

test('a lobby that does not become ready in time is stopped, and frees all its seats', () => {
  const book = new Book()
  const ids = idSource()
  const request = findRequest({ plan: lobbyPlan({ ready_within_ms: 60 * SECOND }) })
  const seats = [1, 2, 3].map(() => grantIn(book, decide.find(book, request, ids(), at(START_MS))))
  assert.equal(decide.expire(book, START_MS + 60 * SECOND - 1), null)
  expireAll(book, START_MS + 60 * SECOND)
  const lobby = book.lobbies.get(seats[0]!.lobby_id)!
  assert.equal(lobby.stop_reason, 'never_ready')
  for (const { player_id } of seats) assert.equal(book.players.get(player_id)!.remove_reason, 'lobby_stopped')
})

test('a lobby that has stopped frees its place, its seats and its clients, and is not stopped twice', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id } = runningLobby(book, ids, START_MS, { players: 3 })
  grantIn(book, decide.stop(book, lobby_id, 'exited', START_MS))
  assert.equal(book.live_lobby_count, 0)
  assert.equal(book.lobbies.get(lobby_id)!.players.size, 0)
  assert.deepEqual(decide.stop(book, lobby_id, 'requested', START_MS), { changes: [], result: false })
  assert.deepEqual(
    decide.join(book, { ...requestedSeat(), lobby_id }, ids(), START_MS),
    refused('MATCHMAKER_LOBBY_STOPPED'),
  )
  const one = findRequest({ client_players_max: 1, lobby_count_max: 1, plan: lobbyPlan() })
  assert.notEqual(grantIn(book, decide.find(book, one, ids(), at(START_MS))).lobby_id, lobby_id)
})

test('a player whose lobby never reports it gone is taken out after eight hours', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id, player_id } = runningLobby(book, ids, START_MS)
  grantIn(book, decide.connected(book, { player_id, lobby_id, connect_key: null }, START_MS))
  assert.equal(decide.expire(book, START_MS + CONNECTED_MS_MAX - 1), null)
  expireAll(book, START_MS + CONNECTED_MS_MAX)
  assert.equal(book.players.get(player_id)!.remove_reason, 'too_long')
})

test('what is over is forgotten ten minutes after its end, and not while it may still be undone', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id, player_id } = runningLobby(book, ids, START_MS)
  grantIn(book, decide.stop(book, lobby_id, 'exited', START_MS))
  expireAll(book, START_MS + 100 * MEMORY_MS)
  forget(book, START_MS + MEMORY_MS - 1)
  assert.ok(book.players.has(player_id) && book.lobbies.has(lobby_id))
  forget(book, START_MS + MEMORY_MS)
  assert.equal(book.players.size + book.lobbies.size, 0)
  const unknown = refused('MATCHMAKER_LOBBY_NOT_FOUND')
  assert.deepEqual(decide.join(book, { ...requestedSeat(), lobby_id }, ids(), START_MS), unknown)
})

test('nothing that is due hides behind something that is due later, whoever leaves whichever lobby before', () => {
  const seconds = fc.integer({ min: 1, max: 1_000 }).map((count) => count * SECOND)
  const lobby = fc.record({ ready_within_ms: seconds, player_deadline_ms: seconds, idle_grace_ms: seconds })
  fc.assert(
    fc.property(fc.array(lobby, { minLength: 30, maxLength: 30 }), fc.infiniteStream(fc.nat()), (plans, random) => {
      const book = new Book()
      const ids = idSource()
      const soonest = (): number => {
        const lobbies = [...book.lobbies.values()].filter((one) => one.stop_ms === null)
        const players = [...book.players.values()].filter((one) => one.remove_ms === null)
        const idle = lobbies.map((one) => one.idle_ms ?? Number.POSITIVE_INFINITY)
        const ends = [...lobbies.map((one) => one.ready_deadline_ms), ...players.map((one) => one.deadline_ms)]
        return Math.min(...idle, ...ends)
      }
      for (const plan of plans)
        grantIn(book, decide.create(book, { ...requestedSeat(), plan: lobbyPlan(plan) }, ids(), at(START_MS)))
      const waiting = [...book.players.keys()]
      while (waiting.length > plans.length / 2) {
        const [player_id] = waiting.splice(random.next().value % waiting.length, 1)
        grantIn(book, decide.release(book, player_id!, START_MS))
        assert.equal(book.nextDueMs(), soonest())
      }
      for (let due_ms = book.nextDueMs(); due_ms !== null; due_ms = book.nextDueMs()) {
        assert.equal(due_ms, soonest())
        expireAll(book, due_ms)
      }
      assert.equal(book.live_lobby_count, 0)
    }),
    { numRuns: 300 },
  )
})

test('the time in which the platform was away moves every deadline by itself, and by nothing more', () => {
  const book = new Book()
  const ids = idSource()
  const reserved = runningLobby(book, ids, START_MS)
  const starting = grantIn(book, decide.create(book, { ...requestedSeat(), plan: lobbyPlan() }, ids(), at(START_MS)))
  const empty = runningLobby(book, ids, START_MS)
  grantIn(book, decide.release(book, empty.player_id, START_MS))
  const deadlines = () => ({
    seat: book.players.get(reserved.player_id)!.deadline_ms,
    idle: book.lobbies.get(empty.lobby_id)!.idle_ms!,
    ready: book.lobbies.get(starting.lobby_id)!.ready_deadline_ms,
  })
  const before = deadlines()
  const due_ms = book.nextDueMs()!
  for (const away_ms of [7 * SECOND, 3_600 * SECOND]) postpone(book, away_ms)
  const moved_ms = 3_607 * SECOND
  assert.deepEqual(deadlines(), {
    seat: before.seat + moved_ms,
    idle: before.idle + moved_ms,
    ready: before.ready + moved_ms,
  })
  assert.equal(book.nextDueMs(), due_ms + moved_ms)
  assert.equal(decide.expire(book, due_ms + moved_ms - 1), null)
})

test('a load without the lobby of a player loses that player and nobody else', () => {
  const book = new Book()
  const ids = idSource()
  const kept = runningLobby(book, ids, START_MS)
  const lost = runningLobby(book, ids, START_MS)
  const loaded = new Book()
  load(loaded, {
    lobbies: [...book.lobbies.values()].filter((lobby) => lobby.lobby_id === kept.lobby_id),
    players: [...book.players.values()],
  })
  assert.deepEqual([...loaded.players.keys()], [kept.player_id])
  assert.deepEqual(decide.disconnected(loaded, { ...lost, disconnect_key: null }, START_MS), {
    changes: [],
    result: null,
  })
})

test('an undo restores exactly what was there, for every kind of change', () => {
  const book = new Book()
  const ids = idSource()
  const seat = runningLobby(book, ids, START_MS, { players: 2 })
  const starting = grantIn(book, decide.create(book, { ...requestedSeat(), plan: lobbyPlan() }, ids(), at(START_MS)))
  const decisions = [
    decide.find(book, findRequest(), ids(), at(START_MS + 1)),
    decide.create(book, { ...requestedSeat({ seat_key: 'create a' }), plan: lobbyPlan() }, ids(), at(START_MS + 1)),
    decide.ready(book, starting.lobby_id, START_MS + 1),
    decide.setClosed(book, seat.lobby_id, true),
    decide.setStalled(book, seat.lobby_id, true, START_MS + 1),
    decide.setState(book, seat.lobby_id, '{}'),
    decide.connected(book, { ...seat, connect_key: 'key' }, START_MS + 1),
    decide.disconnected(book, { ...seat, disconnect_key: 'key' }, START_MS + 1),
    decide.release(book, starting.player_id, START_MS + 1),
    decide.stop(book, seat.lobby_id, 'requested', START_MS + 1),
  ]
  const before = stateOf(book)
  for (const decision of decisions) {
    assert.ok('changes' in decision && decision.changes.length > 0)
    const undos = decision.changes.map((change) => apply(book, change))
    assert.notDeepEqual(stateOf(book), before)
    for (const undo of undos.reverse()) undo()
    assert.deepEqual(stateOf(book), before)
  }
})

test('a find among 10,000 open lobbies looks at a handful of them, and so does taking the seat', () => {
  const cost = (count: number) => {
    const book = new Book()
    const ids = idSource()
    let looked_at = 0
    for (let number = 0; number < count; number++) {
      runningLobby(book, ids, START_MS + number, { plan: { max_players_normal: 3, max_players_direct: 3 } })
    }
    // Whoever compares lobbies asks each for its limit: that is counted.
    for (const lobby of book.lobbies.values()) {
      const { max_players_normal } = lobby
      Object.defineProperty(lobby, 'max_players_normal', {
        get() {
          looked_at++
          return max_players_normal
        },
      })
    }
    let most = 0
    for (let finds = 0; finds < 2 * Math.min(count, 50); finds++) {
      looked_at = 0
      grantIn(book, decide.find(book, findRequest(), ids(), at(START_MS + count)))
      most = Math.max(most, looked_at)
    }
    return most
  }
  const [few, many] = [cost(10), cost(10_000)]
  assert.ok(few > 0, 'the counter counts')
  // A heap of 10,000 is 14 deep; each level costs two comparisons of two lobbies, and a full lobby is taken out.
  assert.ok(many <= 4 * 2 * 14, `a find looked ${many} times at a lobby`)
})

test('a find by tags looks at no more than TAG_CANDIDATES_MAX lobbies', () => {
  const book = new Book()
  const ids = idSource()
  let looked_at = 0
  for (let number = 0; number < 1_000; number++) {
    const tags: Record<string, string> = number < 500 ? { rare: 'a', common: 'b' } : { common: 'b' }
    const { lobby_id } = runningLobby(book, ids, START_MS, { plan: { tags } })
    const lobby = book.lobbies.get(lobby_id)!
    Object.defineProperty(lobby, 'tags', {
      get() {
        looked_at++
        return tags
      },
    })
  }
  const tags = Object.entries({ common: 'b', rare: 'a' })
  assert.ok('changes' in decide.find(book, findRequest({ tags }), ids(), at(START_MS)))
  // Each candidate is asked for each tag: whether it has it, and its value.
  assert.ok(looked_at > 0 && looked_at <= TAG_CANDIDATES_MAX * tags.length * 2, `${looked_at} looks at tags`)
})

test('a solved captcha counts until the very ms at which it ends, and a refused request does not count', () => {
  const book = new Book()
  const rules = { requests_before_reverify: 2, verification_ttl_ms: 1_000 }
  const isAdmitted = (now_ms: number, has_solved = false): boolean => {
    const decision = decide.admit(book, '192.0.2.1', rules, has_solved, now_ms)
    for (const change of 'changes' in decision ? decision.changes : []) apply(book, change)
    return 'changes' in decision
  }
  assert.equal(isAdmitted(START_MS), false)
  assert.equal(isAdmitted(START_MS, true), true)
  assert.equal(isAdmitted(START_MS + 999), true)
  assert.equal(isAdmitted(START_MS + 1_000), false)
  assert.equal(isAdmitted(START_MS + 999), true)
  assert.equal(isAdmitted(START_MS + 999), false)
  assert.equal(book.isEmpty(), false)
  forget(book, START_MS + 1_000)
  assert.equal(book.isEmpty(), true)
})

test('a find by tags takes the same lobby before and after a load, in whichever order lobbies filled and emptied', () => {
  const book = new Book()
  const ids = idSource()
  const tags = { map: 'ice' }
  const plan = { tags, max_players_normal: 2 }
  const lobbies = Array.from({ length: TAG_CANDIDATES_MAX + 20 }, (_, number) =>
    runningLobby(book, ids, START_MS + number, { plan, players: number < 10 ? 2 : 0 }),
  )
  // The oldest leave the shelf and come back to it: behind all others, if the order were that of their coming.
  for (const { lobby_id } of lobbies.slice(0, 10)) {
    const [player_id] = book.lobbies.get(lobby_id)!.players.keys()
    grantIn(book, decide.disconnected(book, { player_id: player_id!, lobby_id, disconnect_key: null }, START_MS + 500))
  }
  const loaded = new Book()
  load(loaded, {
    lobbies: structuredClone([...book.lobbies.values()]),
    players: structuredClone([...book.players.values()]),
  })
  const find = (of: Book) => decide.find(of, findRequest({ tags: Object.entries(tags) }), ids(), at(START_MS + 1_000))
  for (let count = 0; count < 30; count++) {
    const chosen = grantIn(book, find(book)).lobby_id
    if (count < 10) assert.equal(chosen, lobbies[count]!.lobby_id)
    assert.equal(grantIn(loaded, find(loaded)).lobby_id, chosen)
  }
})

test('a page of a list costs what is on it, however many lobbies there are', () => {
  const cost = (count: number): number => {
    const book = new Book()
    const ids = idSource()
    let looked_at = 0
    let middle = ''
    for (let number = 0; number < count; number++) {
      // Most of what there is is not to be listed.
      const plan = { game_mode: number % 4 === 0 ? 'default' : 'other' }
      const { lobby_id } = runningLobby(book, ids, START_MS + number, { plan })
      if (number === count / 2) middle = lobby_id
      const lobby = book.lobbies.get(lobby_id)!
      const { create_ms } = lobby
      Object.defineProperty(lobby, 'create_ms', {
        get() {
          looked_at++
          return create_ms
        },
      })
    }
    looked_at = 0
    const request = { version_id: VERSION, game_modes: new Set([PLACE.game_mode]), after: middle }
    assert.equal(book.list(request).lobbies.length, Math.min(LIST_PAGE_MAX, count / 8 - 1))
    return looked_at
  }
  assert.ok(cost(80) > 0, 'the counter counts')
  const few = cost(8 * (LIST_PAGE_MAX + 2))
  const many = cost(64 * (LIST_PAGE_MAX + 2))
  // To find its beginning takes a comparison of two lobbies, twice read, for each doubling.
  assert.ok(many <= few + 3 * 4, `${many} looks for a page of many, ${few} for one of few`)
})

test('a place is held until it is a seat, is let go, or its ten seconds are over, and counts everywhere meanwhile', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id } = runningLobby(book, ids, START_MS, { plan: { max_players_normal: 2, max_players_direct: 2 } })
  const asked = { action: 'join', request: { ...requestedSeat(), lobby_id } } as const
  const isFull = (now_ms: number): boolean => {
    decide.expire(book, now_ms)
    return 'refused' in decide.join(book, { ...requestedSeat(), lobby_id }, ids(), now_ms)
  }
  const hold = (now_ms: number): string => {
    const fresh = ids()
    const decision = decide.hold(book, asked, fresh, at(now_ms))
    assert.ok('changes' in decision && 'hold' in decision.result && decision.changes.length === 0)
    return fresh.player_id
  }
  const late = hold(START_MS)
  assert.equal(isFull(START_MS + 9_999), true)
  assert.equal(isFull(START_MS + 10_000), false)
  assert.deepEqual(decide.seatHeld(book, { player_id: late }, requestedSeat(), at(START_MS + 10_000)), {
    changes: [],
    result: null,
  })
  const free = hold(START_MS)
  dropHolds(book, { player_id: free })
  dropHolds(book, { player_id: free })
  assert.equal(isFull(START_MS), false)
  const good = hold(START_MS)
  grantIn(book, decide.seatHeld(book, { player_id: good }, requestedSeat(), at(START_MS)))
  assert.equal(isFull(START_MS), true)
  assert.equal(book.lobbies.get(lobby_id)?.held_count, 0)
})

test('a held place in a lobby that was stopped, or closed to a find, is none', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id } = runningLobby(book, ids, START_MS)
  const [finder, joiner] = [ids(), ids()]
  const find = { action: 'find', request: findRequest(), verified_modes: new Set(['default']) } as const
  grantIn(book, decide.hold(book, find, finder, at(START_MS)))
  grantIn(book, decide.hold(book, { action: 'join', request: { ...requestedSeat(), lobby_id } }, joiner, at(START_MS)))
  grantIn(book, decide.setClosed(book, lobby_id, true))
  assert.deepEqual(decide.seatHeld(book, finder, requestedSeat(), at(START_MS)), { changes: [], result: null })
  assert.ok('changes' in decide.seatHeld(book, joiner, requestedSeat(), at(START_MS)))
  grantIn(book, decide.setClosed(book, lobby_id, false))
  grantIn(book, decide.stop(book, lobby_id, 'exited', START_MS))
  for (const { player_id } of [finder, joiner]) {
    assert.deepEqual(decide.seatHeld(book, { player_id }, requestedSeat(), at(START_MS)), { changes: [], result: null })
  }
})

test('a lobby that stalls takes nobody by any way, keeps its players and its count, and is the fullest again when it is back', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id, player_id } = runningLobby(book, ids, START_MS, { players: 2, plan: { tags: { map: 'hill' } } })
  const [finder, joiner] = [ids(), ids()]
  const find = { action: 'find', request: findRequest(), verified_modes: new Set(['default']) } as const
  grantIn(book, decide.hold(book, find, finder, at(START_MS)))
  const join = { ...requestedSeat(), lobby_id }
  grantIn(book, decide.hold(book, { action: 'join', request: join }, joiner, at(START_MS)))
  grantIn(book, decide.setStalled(book, lobby_id, true, START_MS))
  assert.deepEqual(decide.setStalled(book, lobby_id, true, START_MS + 1), { changes: [], result: null })

  for (const tags of [[], [['map', 'hill']] as const]) {
    const refused = { refused: 'MATCHMAKER_NO_AVAILABLE_LOBBIES' }
    assert.deepEqual(decide.find(book, findRequest({ tags }), ids(), at(START_MS)), refused)
  }
  assert.deepEqual(decide.join(book, join, ids(), START_MS), { refused: 'MATCHMAKER_LOBBY_CLOSED' })
  assert.deepEqual(decide.seatHeld(book, finder, requestedSeat(), at(START_MS)), { changes: [], result: null })
  assert.deepEqual(decide.seatHeld(book, joiner, requestedSeat(), at(START_MS)), { refused: 'MATCHMAKER_LOBBY_CLOSED' })
  const open = findRequest({ plan: lobbyPlan(), lobby_count_max: 1 })
  assert.deepEqual(decide.find(book, open, ids(), at(START_MS)), { refused: 'MATCHMAKER_TOO_MANY_LOBBIES' })
  for (const { player_id } of [finder, joiner]) dropHolds(book, { player_id })
  const other = grantIn(book, decide.find(book, { ...open, lobby_count_max: 2 }, ids(), at(START_MS)))
  assert.notEqual(other.lobby_id, lobby_id)
  // Its server may come to call before anybody has seen that it is back.
  grantIn(book, decide.connected(book, { player_id, lobby_id, connect_key: null }, START_MS + 1))
  assert.equal(book.lobbies.get(lobby_id)!.players.size, 2)
  assert.equal(book.live_lobby_count, 2)

  grantIn(book, decide.setStalled(book, lobby_id, false, START_MS + 2))
  assert.equal(grantIn(book, decide.find(book, findRequest(), ids(), at(START_MS + 2))).lobby_id, lobby_id)
  grantIn(book, decide.stop(book, lobby_id, 'exited', START_MS + 3))
  assert.deepEqual(decide.setStalled(book, lobby_id, true, START_MS + 4), { changes: [], result: null })
})

test('a lobby that stood ready for players and stalls has its grace to come back, and another takes its place meanwhile', () => {
  const book = new Book()
  const ids = idSource()
  const prepare = (now_ms: number) => {
    const request = { plan: lobbyPlan(), idle_min: 1, lobby_count_max: 3 }
    return grantIn(book, decide.prepare(book, request, ids().lobby_id, at(now_ms)))
  }
  setIdleRules(book, { version_id: VERSION, idle_max: () => 2 })
  assert.ok(prepare(START_MS))
  const [lobby_id] = [...book.lobbies.keys()] as [string]
  grantIn(book, decide.ready(book, lobby_id, START_MS))
  const [stall_ms, grace_ms] = [START_MS + 3_600_000, lobbyPlan().idle_grace_ms]
  assert.ok(!prepare(stall_ms), 'one waits')
  grantIn(book, decide.setStalled(book, lobby_id, true, stall_ms))
  assert.ok(prepare(stall_ms), 'it counts as none that waits')
  assert.deepEqual(expireAll(book, stall_ms + grace_ms - 1), [])
  grantIn(book, decide.setStalled(book, lobby_id, false, stall_ms + grace_ms - 1))
  assert.deepEqual(expireAll(book, stall_ms + 10 * grace_ms), [], 'it is back, and two may stay')
  grantIn(book, decide.setStalled(book, lobby_id, true, stall_ms + 10 * grace_ms))
  assert.equal(expireAll(book, stall_ms + 11 * grace_ms).length, 1)
  assert.equal(book.lobbies.get(lobby_id)!.stop_reason, 'idle')
})

/** What two decisions on one state would make true one after the other: the second follows from what is no longer so. */
function secondBreaks(book: Book, law: RegExp, decide: () => Decision<unknown>): void {
  const changes = [decide(), decide()].map((decision) => ('changes' in decision ? decision.changes : []))
  const [first = [], second = []] = changes
  for (const change of first) apply(book, change)
  const before = stateOf(book)
  const undos: Undo[] = []
  assert.throws(
    () => {
      for (const change of second) undos.push(apply(book, change))
    },
    (error) => error instanceof BrokenLaw && law.test(error.message) && Object.keys(error.facts).length > 0,
  )
  for (const undo of undos.toReversed()) undo()
  assert.deepEqual(stateOf(book), before)
}

test('a change that would break a law is not made: seats, tokens, lobbies of a namespace, players of a client', () => {
  const ids = idSource()
  const small = new Book()
  const { lobby_id } = runningLobby(small, ids, START_MS, {
    plan: { max_players_direct: 2, max_players_normal: 2, max_players_party: 2 },
  })
  secondBreaks(small, /^L1/, () => decide.join(small, { ...requestedSeat(), lobby_id }, ids(), START_MS))

  const book = new Book()
  const seat = runningLobby(book, ids, START_MS)
  secondBreaks(book, /^L2/, () => decide.connected(book, { ...seat, connect_key: null }, START_MS))
  secondBreaks(book, /^L2/, () => decide.disconnected(book, { ...seat, disconnect_key: null }, START_MS))
  const plan = lobbyPlan()
  secondBreaks(book, /^L3/, () =>
    decide.create(book, { ...requestedSeat({ lobby_count_max: 2 }), plan }, ids(), at(START_MS)),
  )
  const client = '192.0.2.77'
  secondBreaks(book, /^L4/, () =>
    decide.find(book, findRequest({ client, client_players_max: 1 }), ids(), at(START_MS)),
  )
})

test('what the journal says is not held to limits again, which may have been lowered since', () => {
  const ids = idSource()
  const book = new Book()
  const changes = [1, 2, 3].flatMap((limit) => {
    const request = { ...requestedSeat({ lobby_count_max: limit, client_players_max: limit }), plan: lobbyPlan() }
    const decision = decide.create(book, request, ids(), at(START_MS))
    assert.ok('changes' in decision)
    for (const change of decision.changes) apply(book, change)
    return decision.changes
  })
  const read = new Book()
  for (const change of structuredClone(changes)) apply(read, change)
  assert.equal(read.live_lobby_count, 3)
})
