// How a book changes. apply() makes one change true and returns how to undo it; load() takes in what the tables hold; the
// setters take in what is in no journal. decide.ts says which changes may happen.
import {
  type Change,
  LIMITS,
  type PartyRecord,
  type RemoveReason,
  type SeatLimits,
  type TicketRecord,
} from '../../journal/changes.ts'
import type { VerifiedClient } from './captcha-memory.ts'
import type { HeldIds, Undo } from './commands.ts'
import type { IdleRules } from './idle.ts'
import { arrange, countLive, enter, exit, forgetLobby, forgetPlayer, leaveTags, remember, schedule } from './indexes.ts'
import { requireLaw } from './laws.ts'
import {
  endOf,
  isLobby,
  isWaiting,
  type Lobby,
  loadedLobby,
  newLobby,
  newPlayer,
  type Player,
  type StoredLobby,
  seatsIn,
} from './lobby.ts'
import { hasSpectatorSeat, largestLimit, takenSeats } from './rules.ts'
import type { ScheduleRules } from './schedule-rules.ts'
import { type Book, MEMORY_MS } from './state.ts'

/** Ended lobbies and players that one forget() removes. */
const FORGOTTEN_MAX = 10_000

type LobbyStopped = Extract<Change, { kind: 'lobby_stopped' }>
type LobbyChanged = Extract<Change, { kind: 'lobby_changed' }>

/** Makes a change true. The change must come from a decision on this very state. */
export function apply(book: Book, change: Change): Undo {
  switch (change.kind) {
    case 'lobby_created':
      return addLobby(book, newLobby(change.lobby))
    case 'lobby_placed':
      return patchLobby(book, book.lobby(change.lobby_id), { node_id: change.node_id })
    case 'lobby_ready':
      return makeReady(book, book.lobby(change.lobby_id), change.ms)
    case 'lobby_closed':
      return patchLobby(book, book.lobby(change.lobby_id), { is_closed: change.is_closed })
    case 'lobby_stalled':
      return stall(book, book.lobby(change.lobby_id), change.ms, change.is_stalled)
    case 'lobby_state':
      return patchLobby(book, book.lobby(change.lobby_id), { state: change.state })
    case 'lobby_changed':
      return changeLobby(book, book.lobby(change.lobby_id), change)
    case 'lobby_stopped':
      return stopLobby(book, book.lobby(change.lobby_id), change)
    case 'player_reserved':
      return seat(book, newPlayer(change.player), change[LIMITS] ?? null)
    case 'player_connected': {
      const { ms, deadline_ms, connect_key } = change
      const player = book.player(change.player_id)
      requireLaw(isWaiting(player), 'L2: a token is consumed once, while its seat is reserved', player)
      return connect(book, player, { connect_ms: ms, deadline_ms, connect_key })
    }
    case 'player_dropped': {
      const { deadline_ms, disconnect_key } = change
      return patchPlayer(book, book.player(change.player_id), { connect_ms: null, deadline_ms, disconnect_key })
    }
    case 'player_removed': {
      const { ms, reason, disconnect_key, open_connections } = change
      const player = book.player(change.player_id)
      const undo = unseat(book, player, ms, reason, disconnect_key)
      return open_connections === undefined ? undo : countExpiry(book, player, undo)
    }
    case 'version_draining':
      return drain(book, change.version_id, change.is_draining)
    case 'client_verified':
      return book.verified.verify(change.client, change.ms, change.expire_ms)
    case 'client_counted':
      return book.verified.count(change.client)
    case 'party_put':
      return putParty(book, change.party, change.left)
    case 'party_ended':
      book.matching.wakeParty((book.parties.get(change.party_id)?.members ?? []).map(({ identity_id }) => identity_id))
      return book.parties.end(change.party_id, change.ms)
    case 'ticket_put':
      return book.matching.put(change.ticket)
    case 'ticket_ended':
      return book.matching.end(change.player_id, change.ms, change.reason)
  }
}

/** What the tables hold of one namespace, by table; lobbies and players each in the order of their creation. */
export type StoredBook = {
  lobbies: readonly StoredLobby[]
  players: readonly Player[]
  captcha_clients: readonly VerifiedClient[]
  /** Ids of versions. */
  draining_versions: readonly string[]
  parties: readonly PartyRecord[]
  tickets: readonly TicketRecord[]
}

/** A player whose lobby is missing in the tables is skipped: the projection could not write that lobby. */
export function load(book: Book, stored: Partial<StoredBook>): void {
  const {
    lobbies = [],
    players = [],
    captcha_clients = [],
    draining_versions = [],
    parties = [],
    tickets = [],
  } = stored
  book.verified.load(captcha_clients)
  book.parties.load(parties)
  book.matching.load(tickets)
  for (const version_id of draining_versions) book.draining.add(version_id)
  book.countDrains()
  for (const lobby of lobbies) addLobby(book, loadedLobby(lobby))
  for (const player of players) {
    if (player.remove_ms !== null) remember(book, player)
    else if (book.lobbies.has(player.lobby_id)) seat(book, player, null)
  }
}

/** Moves every deadline by the time for which the platform was down, so that the outage ends nothing. */
export function postpone(book: Book, by_ms: number): void {
  book.parties.postpone(by_ms)
  for (const lobby of book.lobbies.values()) {
    if (lobby.stop_ms !== null) continue
    lobby.ready_deadline_ms += by_ms
    if (lobby.idle_ms !== null) lobby.idle_ms += by_ms
    if (lobby.keep_until_ms !== null) lobby.keep_until_ms += by_ms
    arrange(book, lobby)
  }
  for (const player of book.players.values()) {
    if (player.remove_ms !== null) continue
    player.deadline_ms += by_ms
    schedule(book, player)
  }
}

/**
 * Removes what ended MEMORY_MS before `durable_ms`. Everything that happened until `durable_ms` is durable: what may still
 * be undone must stay.
 */
export function forget(book: Book, durable_ms: number): void {
  book.verified.forget(durable_ms)
  book.parties.forget(durable_ms)
  book.matching.forget(durable_ms)
  for (let forgotten = 0; forgotten < FORGOTTEN_MAX; forgotten++) {
    const first = book.ended.peek()
    if (first === undefined || endOf(first) + MEMORY_MS > durable_ms) return
    if (isLobby(first)) forgetLobby(book, first)
    else forgetPlayer(book, first)
  }
}

/** The rules are in no journal; the changes decided by them are. */
export function setIdleRules(book: Book, rules: IdleRules): void {
  if (rules === book.idle_rules) return
  const before = book.idle_rules
  book.idle_rules = rules
  if (rules.version_id !== before.version_id || rules.rollout_version_id !== before.rollout_version_id) {
    book.matching.outdate((version_id) => book.isOutdated(version_id))
  }
  book.idle.refresh()
}

/** The rules are in no journal; the changes decided by them are. */
export function setScheduleRules(book: Book, rules: ScheduleRules | null): void {
  const before_ms = book.drainedUntilMs()
  book.schedule_rules = rules
  if (book.drainedUntilMs() !== before_ms) refreshDrains(book)
}

/** Takes in how many connections to the lobby are open, as the edges report it. The number is in no journal. */
export function setConnections(book: Book, lobby_id: string, connection_count: number, now_ms: number): void {
  const lobby = book.lobbies.get(lobby_id)
  if (lobby === undefined || lobby.connection_count === connection_count) return
  lobby.connection_count = connection_count
  lobby.quiet_ms = connection_count === 0 ? now_ms + lobby.idle_grace_ms : null
  arrange(book, lobby)
}

/**
 * Every edge has reported at `reported_ms` or later, and has done so since `since_ms`. The connections of an older lobby
 * were not known before, so its grace starts at `since_ms`.
 */
export function setReported(book: Book, since_ms: number, reported_ms: number): void {
  if (!book.has_edge_reports) {
    book.has_edge_reports = true
    for (const lobby of book.lobbies.values()) {
      if (lobby.stop_ms !== null || lobby.connection_count > 0 || lobby.create_ms >= since_ms) continue
      lobby.quiet_ms = since_ms + lobby.idle_grace_ms
      arrange(book, lobby)
    }
  }
  book.idle.setReported(reported_ms)
}

/** Ends the holds of these ids. Does nothing for a hold that is over already. */
export function dropHolds(book: Book, { player_id, member_ids = [] }: HeldIds): void {
  book.holds.drop(player_id)
  for (const member_id of member_ids) book.holds.drop(member_id)
}

function addLobby(book: Book, lobby: Lobby): Undo {
  book.lobbies.set(lobby.lobby_id, lobby)
  if (lobby.code != null) book.lobby_codes.set(lobby.code, lobby)
  const plan = book.holds.create(lobby)
  if (lobby.stop_ms === null) countLive(book, lobby, 1)
  book.listing.arrange(lobby)
  arrange(book, lobby)
  return () => {
    if (lobby.stop_ms === null) countLive(book, lobby, -1)
    forgetLobby(book, lobby)
    book.holds.uncreate(lobby, plan)
  }
}

/** Players who waited for the start get their full time to connect: no player connects before the lobby is ready. */
function makeReady(book: Book, lobby: Lobby, ms: number): Undo {
  const undos = [patchLobby(book, lobby, { ready_ms: ms })]
  for (const player of seatsIn(lobby)) {
    undos.push(patchPlayer(book, player, { deadline_ms: ms + lobby.player_deadline_ms }))
  }
  return () => undoAll(undos)
}

/** An idle lobby that stalls gets its grace again, so that its server can recover. */
function stall(book: Book, lobby: Lobby, ms: number, is_stalled: boolean): Undo {
  const { idle_ms } = lobby
  if (!is_stalled || idle_ms === null) return patchLobby(book, lobby, { is_stalled })
  return patchLobby(book, lobby, { is_stalled, idle_ms: Math.max(idle_ms, ms + lobby.idle_grace_ms) })
}

/** The indexes find a lobby by its tags, so it leaves them before its tags change. */
function changeLobby(book: Book, lobby: Lobby, { keep_until_ms, tags }: LobbyChanged): Undo {
  const kept = keep_until_ms === undefined ? {} : { keep_until_ms }
  if (tags === undefined) return patchLobby(book, lobby, kept)
  leaveTags(book, lobby)
  const undo = patchLobby(book, lobby, { ...kept, tags })
  return () => {
    leaveTags(book, lobby)
    undo()
  }
}

function stopLobby(book: Book, lobby: Lobby, { ms, reason, open_connections }: LobbyStopped): Undo {
  const undos: Undo[] = []
  try {
    for (const player of [...seatsIn(lobby)]) undos.push(unseat(book, player, ms, 'lobby_stopped', null))
  } catch (error) {
    undoAll(undos)
    throw error
  }
  const connections_at_stop = open_connections ?? null
  undos.push(patchLobby(book, lobby, { stop_ms: ms, stop_reason: reason, connections_at_stop }))
  countLive(book, lobby, -1)
  return () => {
    countLive(book, lobby, 1)
    undoAll(undos)
  }
}

function seat(book: Book, player: Player, limits: SeatLimits | null): Undo {
  const lobby = book.lobby(player.lobby_id)
  const hold = book.holds.drop(player.player_id)
  const { idle_ms } = lobby
  const same_key = player.seat_key === null ? undefined : book.seat_keys.get(player.seat_key)
  requireLaw(
    player.is_spectator ? hasSpectatorSeat(lobby) : takenSeats(lobby) < largestLimit(lobby),
    'L1: a lobby never has more players than its limit, nor more spectators',
    lobby,
  )
  if (limits !== null) requireLimits(book, player, limits)
  remember(book, player)
  enter(book, lobby, player, null)
  return () => {
    exit(book, lobby, player, idle_ms)
    forgetPlayer(book, player)
    if (same_key !== undefined && book.players.has(same_key.player_id)) {
      book.seat_keys.set(same_key.seat_key!, same_key)
    }
    if (hold !== undefined) book.holds.put(hold)
  }
}

/** The lobby is in the book and counted; the player is not yet. */
function requireLimits(
  book: Book,
  { client, lobby_id, player_id, is_spectator }: Player,
  { client_players_max, lobby_count_max }: SeatLimits,
): void {
  const { live_lobby_count } = book
  const client_players = book.clientSeats(client, is_spectator) + 1
  const facts = { lobby_id, player_id, client, client_players, client_players_max, live_lobby_count, lobby_count_max }
  requireLaw(
    lobby_count_max === null || live_lobby_count <= lobby_count_max,
    'L3: a namespace opens no lobby beyond lobby_count_max',
    facts,
  )
  requireLaw(client_players <= client_players_max, 'L4: a client takes no seat beyond its limit', facts)
}

function unseat(book: Book, player: Player, ms: number, reason: RemoveReason, disconnect_key: string | null): Undo {
  const lobby = book.lobby(player.lobby_id)
  const { idle_ms } = lobby
  requireLaw(player.remove_ms === null, 'L2: a player leaves once', player)
  const client_seats = book.clientSeats(player.client, player.is_spectator)
  requireLaw(client_seats > 0, 'L4: a client has as many players as are counted', player)
  exit(book, lobby, player, lobby.players.size === 1 ? ms + lobby.idle_grace_ms : idle_ms)
  const undo = patchPlayer(book, player, { remove_ms: ms, remove_reason: reason, disconnect_key })
  return () => {
    undo()
    enter(book, lobby, player, idle_ms)
  }
}

function connect(book: Book, player: Player, patch: Partial<Player>): Undo {
  const lobby = book.lobby(player.lobby_id)
  const undo = patchPlayer(book, player, patch)
  if (lobby.has_reported_players) return undo
  const undos = [undo, patchLobby(book, lobby, { has_reported_players: true })]
  return () => undoAll(undos)
}

/** Counts a seat that expired while its lobby had open connections. */
function countExpiry(book: Book, { lobby_id }: Player, undo: Undo): Undo {
  const lobby = book.lobby(lobby_id)
  const seats_expired_while_connected = lobby.seats_expired_while_connected + 1
  const undos = [undo, patchLobby(book, lobby, { seats_expired_while_connected })]
  return () => undoAll(undos)
}

/** A request of a party waits for exactly its members. */
function putParty(book: Book, party: PartyRecord, left: string | null): Undo {
  const identity_ids = party.members.map(({ identity_id }) => identity_id)
  book.matching.wakeParty(left === null ? identity_ids : [...identity_ids, left])
  return book.parties.put(party)
}

function drain(book: Book, version_id: string, is_draining: boolean): Undo {
  if (is_draining) book.draining.add(version_id)
  else book.draining.delete(version_id)
  refreshDrains(book)
  return () => void drain(book, version_id, !is_draining)
}

function refreshDrains(book: Book): void {
  book.countDrains()
  book.idle.refresh()
  book.matching.wakeAll()
}

function patchLobby(book: Book, lobby: Lobby, patch: Partial<Lobby>): Undo {
  const before = replace(lobby, patch)
  book.listing.arrange(lobby)
  arrange(book, lobby)
  return () => {
    Object.assign(lobby, before)
    book.listing.arrange(lobby)
    arrange(book, lobby)
  }
}

function patchPlayer(book: Book, player: Player, patch: Partial<Player>): Undo {
  const before = replace(player, patch)
  schedule(book, player)
  return () => {
    Object.assign(player, before)
    schedule(book, player)
  }
}

/** Returns the members that the patch replaced. */
function replace<T extends object>(target: T, patch: Partial<T>): Partial<T> {
  const before: Partial<T> = {}
  for (const name of Object.keys(patch) as (keyof T)[]) before[name] = target[name]
  Object.assign(target, patch)
  return before
}

function undoAll(undos: readonly Undo[]): void {
  for (const undo of undos.toReversed()) undo()
}
