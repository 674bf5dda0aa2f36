import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  at,
  expireAll,
  findRequest,
  grantIn,
  idSource,
  lobbyPlan,
  requestedSeat,
  runningLobby,
  START_MS,
} from '../../../test/matchmaker/plain-requests.ts'
import type { Decision, SeatTaken } from './commands.ts'
import * as decide from './decide.ts'
import { apply, load } from './evolve.ts'
import { BrokenLaw } from './laws.ts'
import { Book } from './state.ts'

const NOW_MS = START_MS
const SPECTATOR = { is_spectator: true } as const

function newWorld() {
  const book = new Book()
  const ids = idSource()
  const open = (players: number, plan = {}) =>
    runningLobby(book, ids, NOW_MS, { players, plan: { max_spectators: 2, ...plan } }).lobby_id
  const watch = (lobby_id: string, client_key = '192.0.2.1', client_players_max = 100): Decision<SeatTaken> =>
    decide.join(book, { ...requestedSeat({ client_key, client_players_max, ...SPECTATOR }), lobby_id }, ids(), NOW_MS)
  const find = (changes = {}) => decide.find(book, findRequest({ ...SPECTATOR, ...changes }), ids(), at(NOW_MS))
  return { book, ids, open, watch, find }
}

const refusalOf = (decision: Decision<unknown>) => ('refused' in decision ? decision.refused : null)

test('a full lobby takes spectators up to their own limit, and they take no seat of a player', () => {
  const { book, ids, open, watch } = newWorld()
  const lobby_id = open(4)
  grantIn(book, watch(lobby_id))
  grantIn(book, watch(lobby_id))
  assert.equal(refusalOf(watch(lobby_id)), 'MATCHMAKER_LOBBY_FULL')
  const lobby = book.lobby(lobby_id)
  assert.deepEqual([lobby.players.size, lobby.spectators.size], [4, 2])
  const [player] = lobby.players.values()
  grantIn(book, decide.disconnected(book, { player_id: player!.player_id, lobby_id, disconnect_key: null }, NOW_MS))
  grantIn(book, decide.find(book, findRequest(), ids(), at(NOW_MS)))
  assert.deepEqual([lobby.players.size, lobby.spectators.size], [4, 2])
  assert.equal(refusalOf(watch(open(1, { max_spectators: 0 }))), 'MATCHMAKER_LOBBY_FULL')
})

test('a find of a spectator gets the running lobby with most players, full and closed ones too, and starts none', () => {
  const { book, open, find } = newWorld()
  assert.equal(refusalOf(find()), 'MATCHMAKER_NO_AVAILABLE_LOBBIES')
  open(1)
  const fullest = open(4)
  open(4, { publicity: 'private' })
  const other = open(3, { tags: { map: 'dune' } })
  grantIn(book, decide.setClosed(book, fullest, true))
  assert.equal(grantIn(book, find()).lobby_id, fullest)
  assert.equal(grantIn(book, find({ tags: [['map', 'dune']] })).lobby_id, other)
  assert.equal(grantIn(book, find()).lobby_id, fullest)
  assert.equal(grantIn(book, find()).lobby_id, other, 'the fullest has no room for spectators left')
  assert.equal(book.live_lobby_count, 4)
})

test('a client has a limit of spectators that its players do not use up', () => {
  const { book, ids, open, watch } = newWorld()
  const lobby_id = open(1)
  grantIn(book, watch(lobby_id, '192.0.2.1', 1))
  assert.equal(refusalOf(watch(lobby_id, '192.0.2.1', 1)), 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
  grantIn(book, watch(lobby_id, '192.0.2.2', 1))
  const player = findRequest({ client_key: '192.0.2.2', client_players_max: 1 })
  grantIn(book, decide.find(book, player, ids(), at(NOW_MS)))
})

test('a lobby with spectators alone ends as an empty one does, and they leave with it', () => {
  const { book, open, watch } = newWorld()
  const lobby_id = open(1)
  const { player_id } = grantIn(book, watch(lobby_id))
  const lobby = book.lobby(lobby_id)
  for (const id of [...lobby.players.keys(), player_id]) {
    grantIn(book, decide.connected(book, { player_id: id, lobby_id, connect_key: null }, NOW_MS))
  }
  const [player] = lobby.players.values()
  grantIn(book, decide.disconnected(book, { player_id: player!.player_id, lobby_id, disconnect_key: null }, NOW_MS))
  assert.equal(lobby.stop_ms, null)
  expireAll(book, NOW_MS + lobby.idle_grace_ms)
  assert.deepEqual([lobby.stop_reason, lobby.spectators.size], ['idle', 0])
  assert.equal(book.player(player_id).remove_reason, 'lobby_stopped')
})

test('without spectators the journal has no member for them, and a book no index', () => {
  const { book, ids, open } = newWorld()
  open(1, { max_spectators: undefined })
  const plan = lobbyPlan({ max_players_normal: 1 })
  const decision = decide.find(book, findRequest({ plan }), ids(), at(NOW_MS))
  assert.ok('changes' in decision)
  assert.doesNotMatch(JSON.stringify(decision.changes), /spectator/)
  const held = decide.hold(
    book,
    { action: 'create', request: { ...requestedSeat(), plan } },
    { lobby_id: 'held', player_id: 'one' },
    at(NOW_MS),
  )
  assert.ok('changes' in held)
  const seat = decide.seatHeld(book, { player_id: 'one' }, requestedSeat(), at(NOW_MS))
  assert.ok('changes' in seat && seat.changes.length === 2)
  assert.doesNotMatch(JSON.stringify(seat.changes), /spectator/)
  assert.equal(book.spectating, null)
})

test('all lobbies have the same members in one order, and so have all players', () => {
  const { book, ids, open, watch } = newWorld()
  const lobby_id = open(1)
  grantIn(book, watch(lobby_id))
  open(1, { max_spectators: undefined, code: 'BCDFGH', seat_hold_ms: 5 })
  const stored = [...book.lobbies.values()].map(({ players: _, spectators: _spectators, ...lobby }) => lobby)
  const other = new Book()
  load(other, { lobbies: stored, players: [...book.players.values()] })
  grantIn(other, decide.find(other, findRequest({ plan: lobbyPlan() }), ids(), at(NOW_MS)))
  const membersOf = (things: Iterable<object>) => new Set([...things].map((thing) => Object.keys(thing).join()))
  assert.equal(membersOf([...book.lobbies.values(), ...other.lobbies.values()]).size, 1)
  assert.equal(membersOf([...book.players.values(), ...other.players.values()]).size, 1)
  assert.equal(other.lobby(lobby_id).spectators.size, 1)
})

test('a spectator enters no lobby without seats for spectators', () => {
  const { book, open, watch } = newWorld()
  const decision = watch(open(1))
  const closed = open(1, { max_spectators: undefined })
  assert.ok('changes' in decision)
  const [change] = decision.changes
  assert.ok(change?.kind === 'player_reserved')
  const forged = { ...change, player: { ...change.player, lobby_id: closed } }
  assert.throws(() => apply(book, forged), BrokenLaw)
  assert.equal(book.lobby(closed).spectators.size, 0)
})

test('a spectator with an earlier page has a seat where a lobby of its version may be watched', () => {
  const { book, open, watch } = newWorld()
  const { keys } = findRequest()
  const find = { ...requestedSeat(SPECTATOR), keys, tags: [], replaced_by: 'later' }
  const hasSeat = (): boolean => decide.hasOutdatedSeat(book, find, false, NOW_MS)
  assert.equal(hasSeat(), false)
  const lobby_id = open(4)
  assert.equal(hasSeat(), true)
  assert.equal(book.spectating?.hasVersion(keys[0]!.version_id), true)
  grantIn(book, watch(lobby_id))
  grantIn(book, watch(lobby_id))
  assert.equal(hasSeat(), false)
  assert.equal(book.spectating?.hasVersion(keys[0]!.version_id), false)
})
