import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  at,
  expireAll,
  findRequest,
  grantIn,
  idSource,
  requestedSeat,
  runningLobby,
  START_MS,
} from '../../../test/matchmaker/plain-requests.ts'
import type { Decision, SeatTaken } from './commands.ts'
import * as decide from './decide.ts'
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
