// The commands of a book. Each reads the state and returns a refusal, or the changes that grant it; evolve.ts makes them
// true. Commands change nothing that is journalled; hold() and expire() also change the holds, which are in memory only.
import type { Change, RemoveReason, StopReason } from '../../journal/changes.ts'
import type { CaptchaRules } from './captcha-memory.ts'
import type {
  AllocateRequest,
  CreateRequest,
  Decision,
  Env,
  FindRequest,
  FreshIds,
  Granted,
  HeldIds,
  HoldRequest,
  JoinRequest,
  LobbyPlan,
  RequestedSeat,
  SeatTaken,
} from './commands.ts'
import { dropHolds } from './evolve.ts'
import type { HeldSeat } from './holds.ts'
import { type Hold, SEAT_HOLD_MS } from './holds.ts'
import { dueAt, isLobby, type Lobby, newLobby } from './lobby.ts'
import {
  allocatedEntrants,
  type Entrant,
  entrantsOf,
  grant,
  heldEntrants,
  isCodeTaken,
  isTooLarge,
  joinable,
  openLobby,
  partySize,
  plannedLobby,
  recordOf,
  refuse,
  refuseDrained,
  refuseDraining,
  refuseVersion,
  regionFull,
  reserveSeats,
} from './placement.ts'
import { takenSeats, takenSpectatorSeats } from './rules.ts'
import type { Book } from './state.ts'

/** A connected player whose lobby server never reports it gone is removed after this. */
export const CONNECTED_MS_MAX = 8 * 60 * 60_000
/** Versions of a namespace that drain at the same time. */
const DRAINING_VERSIONS_MAX = 1_000

type LobbyStopped = Extract<Change, { kind: 'lobby_stopped' }>
type PlayerRemoved = Extract<Change, { kind: 'player_removed' }>

/**
 * A seat in the fullest open lobby under these keys, else in a new lobby after `plan`, else a refusal. For a spectator: in the
 * running lobby with most players, and never in a new one.
 */
export function find(book: Book, request: FindRequest, ids: FreshIds, env: Env): Decision<SeatTaken> {
  const before = book.seatOf(request.seat_key, env.now_ms)
  if (before !== null) return grant(before)
  const entrants = entrantsOf(book, request, ids)
  if ('refused' in entrants) return entrants
  if (book.isDraining(request.keys)) return refuseDrained(book, request)
  if (request.is_spectator) {
    const watched = watchedLobby(book, request)
    if (watched === null) return refuseVersion(request, 'MATCHMAKER_NO_AVAILABLE_LOBBIES')
    return reserveSeats(book, watched, true, request, entrants, env.now_ms)
  }
  const lobby = book.open_lobbies.choose(request.keys, request.tags, partySize(entrants))
  if (lobby !== null) return reserveSeats(book, lobby, lobby.ready_ms !== null, request, entrants, env.now_ms)
  if (request.plan === null) return refuseVersion(request, 'MATCHMAKER_NO_AVAILABLE_LOBBIES')
  return openLobby(book, request.plan, request, entrants, ids, env)
}

/** The running lobby with most players that has room for a spectator. */
function watchedLobby(book: Book, { keys, tags }: Pick<FindRequest, 'keys' | 'tags'>): Lobby | null {
  return book.spectating === null ? null : book.spectating.choose(keys, tags)
}

export type OutdatedFind = Pick<
  FindRequest,
  'keys' | 'tags' | 'seat_key' | 'identity_id' | 'replaced_by' | 'is_spectator'
>

/** Whether a find for an earlier version has its seat, or an open lobby has room for it. Reserves nothing. */
export function hasOutdatedSeat(book: Book, find: OutdatedFind, with_party: boolean, now_ms: number): boolean {
  const { keys, tags, seat_key, identity_id, is_spectator } = find
  if (book.hasSeat(seat_key, now_ms)) return true
  if (is_spectator) return !book.isDraining(keys) && watchedLobby(book, find) !== null
  const party = with_party && identity_id !== null ? book.parties.ofMember(identity_id) : undefined
  return !book.isDraining(keys) && book.open_lobbies.choose(keys, tags, party?.members.length ?? null) !== null
}

/** A seat in this lobby, closed or not, private or not. The caller checks that the game mode allows join. */
export function join(book: Book, request: JoinRequest, ids: FreshIds, now_ms: number): Decision<SeatTaken> {
  const before = book.seatOf(request.seat_key, now_ms)
  if (before !== null) return grant(before)
  const found = joinable(book, request, ids)
  if ('refused' in found) return found
  const { lobby, entrants } = found
  return reserveSeats(book, lobby, lobby.ready_ms !== null, request, entrants, now_ms)
}

/** A new custom lobby, and the first seat in it. */
export function create(book: Book, request: CreateRequest, ids: FreshIds, env: Env): Decision<SeatTaken> {
  const before = book.seatOf(request.seat_key, env.now_ms)
  if (before !== null) return grant(before)
  const entrants = entrantsOf(book, request, ids)
  if ('refused' in entrants) return entrants
  if (request.replaced_by !== undefined || book.isDraining([request.plan])) {
    return refuseDrained(book, request)
  }
  return openLobby(book, request.plan, request, entrants, ids, env)
}

/** A new custom lobby with a seat for each of the players, or nothing. */
export function allocate(book: Book, request: AllocateRequest, ids: FreshIds, env: Env): Decision<SeatTaken> {
  const before = book.seatOf(request.seat_key, env.now_ms)
  if (before !== null) return grant(before)
  const entrants = allocatedEntrants(book, request, ids)
  if ('refused' in entrants) return entrants
  if (book.isDraining([request.plan])) return refuseDraining(book)
  return openLobby(book, request.plan, request, entrants, ids, env)
}

/**
 * Starts a lobby without players where fewer than `idle_min` wait for players, so that the next players need not wait.
 * Returns whether a lobby is started.
 */
export function prepare(
  book: Book,
  request: { plan: LobbyPlan; idle_min: number; lobby_count_max: number },
  lobby_id: string,
  env: Env,
): Decision<boolean> {
  const { plan, idle_min, lobby_count_max } = request
  if (book.isEnding(plan.version_id) || book.idle.count(plan) >= idle_min) return grant(false)
  const lobby = plannedLobby(book, plan, lobby_count_max, lobby_id, env)
  return 'refused' in lobby ? lobby : grant(true, { kind: 'lobby_created', lobby })
}

/**
 * Holds the seats that the request would get, until seatHeld() or dropHolds(), or for SEAT_HOLD_MS. Earlier holds of the
 * same ids end first, because the command may be carried out again.
 */
export function hold(book: Book, asked: HoldRequest, ids: FreshIds, env: Env): Decision<HeldSeat> {
  dropHolds(book, ids)
  const { action, request } = asked
  const before = book.seatOf(request.seat_key, env.now_ms)
  if (before !== null) return grant({ seat: before })
  if (action === 'join') {
    const found = joinable(book, request, ids)
    if ('refused' in found) return found
    return holdSeats(book, { lobby: found.lobby, plan: null }, asked, found.entrants, env.now_ms)
  }
  const entrants = entrantsOf(book, request, ids)
  if ('refused' in entrants) return entrants
  const is_replaced = action === 'create' && request.replaced_by !== undefined
  if (is_replaced || book.isDraining(action === 'find' ? request.keys : [request.plan])) {
    return refuseDrained(book, request)
  }
  if (action === 'find') {
    const found = holdFound(book, asked, entrants, ids, env)
    if (found !== null) return found
  }
  if (request.plan === null) return refuseVersion(request, 'MATCHMAKER_NO_AVAILABLE_LOBBIES')
  if (isTooLarge(entrants, request.plan)) return refuse('MATCHMAKER_PARTY_TOO_LARGE')
  const record = plannedLobby(book, request.plan, request.lobby_count_max, ids.lobby_id, env)
  if ('refused' in record) return record
  // The ports are chosen when the lobby is created, so that a hold keeps none.
  const { edge_ports_wanted, creator_lobbies_max } = request.plan
  const plan = { ...newLobby({ ...record, edge_ports: [] }), edge_ports_wanted, creator_lobbies_max }
  return holdSeats(book, { lobby: plan, plan }, asked, entrants, env.now_ms)
}

/** Holds seats in an open or planned lobby; seats at once where the game mode needs no verification. Null: a new lobby is needed. */
function holdFound(
  book: Book,
  asked: Extract<HoldRequest, { action: 'find' }>,
  entrants: readonly Entrant[],
  ids: FreshIds,
  env: Env,
): Decision<HeldSeat> | null {
  const { request, verified_modes } = asked
  const size = partySize(entrants)
  const lobby = request.is_spectator
    ? watchedLobby(book, request)
    : book.open_lobbies.choose(request.keys, request.tags, size)
  if (lobby === null && request.is_spectator) return refuseVersion(request, 'MATCHMAKER_NO_AVAILABLE_LOBBIES')
  const may_be_planned = lobby === null && request.replaced_by === undefined
  const plan = may_be_planned ? book.holds.choose(request.keys, request.tags, size) : null
  const game_mode = (lobby ?? plan ?? request.plan)?.game_mode
  if (game_mode === undefined) return refuseVersion(request, 'MATCHMAKER_NO_AVAILABLE_LOBBIES')
  if (!verified_modes.has(game_mode)) {
    const decision = find(book, request, ids, env)
    return 'refused' in decision ? decision : { ...decision, result: { seat: decision.result } }
  }
  if (lobby !== null) return holdSeats(book, { lobby, plan: null }, asked, entrants, env.now_ms)
  return plan === null ? null : holdSeats(book, { lobby: plan, plan }, asked, entrants, env.now_ms)
}

function holdSeats(
  book: Book,
  on: Pick<Hold, 'lobby' | 'plan'>,
  { action, request: { is_spectator } }: HoldRequest,
  entrants: readonly Entrant[],
  now_ms: number,
): Granted<HeldSeat> {
  const holds = entrants.map(({ player_id, client_key, member }): Hold => {
    return { player_id, client_key, member, action, is_spectator, ...on, expire_ms: now_ms + SEAT_HOLD_MS }
  })
  for (const one of holds) book.holds.put(one)
  return grant({ hold: holds[0]! })
}

/**
 * The seat of a hold. Every limit is checked again, and the held seat itself counts in all of them; the room in the region
 * was reserved with the hold. Null: the seat is gone, and the request may be made again.
 */
export function seatHeld(book: Book, ids: HeldIds, request: RequestedSeat, env: Env): Decision<SeatTaken | null> {
  const { now_ms, chooseNode, choosePorts } = env
  const before = book.seatOf(request.seat_key, now_ms)
  if (before !== null) return grant(before)
  const held = book.holds.get(ids.player_id)
  if (held === undefined || held.expire_ms <= now_ms) return grant(null)
  const entrants = heldEntrants(book, request, ids)
  if (entrants === null) return grant(null)
  const { lobby, plan, action, is_spectator } = held
  const is_shut = (lobby.is_closed && !is_spectator) || lobby.is_stalled
  if (lobby.stop_ms !== null || (action === 'find' && is_shut)) return grant(null)
  if (entrants.some(({ client_key, players_max }) => book.clientSeats(client_key, is_spectator) > players_max)) {
    return refuse('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
  }
  if (book.isDraining([lobby])) return refuseDrained(book, request)
  if (lobby.is_stalled) return refuse('MATCHMAKER_LOBBY_CLOSED')
  if (is_spectator) {
    if (takenSpectatorSeats(lobby) > lobby.max_spectators) return grant(null)
    return reserveSeats(book, lobby, lobby.ready_ms !== null, request, entrants, now_ms)
  }
  if (plan === null) {
    const seats_max = action === 'find' ? lobby.max_players_normal : lobby.max_players_direct
    if (takenSeats(lobby) > (request.party === null ? seats_max : lobby.max_players_party)) return grant(null)
    return reserveSeats(book, lobby, lobby.ready_ms !== null, request, entrants, now_ms)
  }
  if (book.lobbyCount() > request.lobby_count_max) return refuse('MATCHMAKER_TOO_MANY_LOBBIES')
  if (plan.creator_lobbies_max !== null && book.lobbiesBy(plan) > plan.creator_lobbies_max) {
    return refuse('MATCHMAKER_CUSTOM_LOBBY_LIMIT_REACHED')
  }
  if (isCodeTaken(book, plan)) return refuse('API_NOT_AVAILABLE')
  const edge_ports = choosePorts(plan.edge_ports_wanted, now_ms, plan.node_id)
  if (edge_ports === null) return refuse('MATCHMAKER_NO_PORTS')
  const chosen = chooseNode(plan, plan.node_id)
  if (chosen === null) return regionFull(plan)
  const record = { ...recordOf(plan, now_ms), ...chosen, edge_ports }
  const seat = reserveSeats(book, record, false, request, entrants, now_ms)
  return { changes: [{ kind: 'lobby_created', lobby: record }, ...seat.changes], result: seat.result }
}

/** Admits a client where a captcha is required: with a solved one (`has_solved`), or after an earlier one. */
export function admit(
  book: Book,
  client_key: string,
  rules: CaptchaRules,
  has_solved: boolean,
  now_ms: number,
): Decision<null> {
  if (has_solved) {
    const expire_ms = now_ms + rules.verification_ttl_ms
    return grant(null, { kind: 'client_verified', client: client_key, ms: now_ms, expire_ms })
  }
  if (!book.verified.allows(client_key, rules, now_ms)) return refuse('CAPTCHA_CAPTCHA_REQUIRED')
  return grant(null, { kind: 'client_counted', client: client_key })
}

export function ready(book: Book, lobby_id: string, now_ms: number): Decision<null> {
  const lobby = book.lobbies.get(lobby_id)
  if (lobby === undefined || lobby.stop_ms !== null) return refuse('MATCHMAKER_LOBBY_STOPPED')
  return lobby.ready_ms === null ? grant(null, { kind: 'lobby_ready', lobby_id, ms: now_ms }) : grant(null)
}

export function setClosed(book: Book, lobby_id: string, is_closed: boolean): Decision<null> {
  const lobby = book.lobbies.get(lobby_id)
  if (lobby === undefined || lobby.stop_ms !== null) return refuse('MATCHMAKER_LOBBY_STOPPED')
  return lobby.is_closed === is_closed ? grant(null) : grant(null, { kind: 'lobby_closed', lobby_id, is_closed })
}

/** The lobby's runner reports that its server stopped responding, or responds again. */
export function setStalled(book: Book, lobby_id: string, is_stalled: boolean, now_ms: number): Decision<null> {
  const lobby = book.lobbies.get(lobby_id)
  if (lobby === undefined || lobby.stop_ms !== null || lobby.is_stalled === is_stalled) return grant(null)
  return grant(null, { kind: 'lobby_stalled', lobby_id, ms: now_ms, is_stalled })
}

/** The lobby's runner has seen that its server is ready. Without effect for a lobby that has stopped meanwhile. */
export function seenReady(book: Book, lobby_id: string, now_ms: number): Decision<null> {
  const lobby = book.lobbies.get(lobby_id)
  return lobby === undefined || lobby.stop_ms !== null ? grant(null) : ready(book, lobby_id, now_ms)
}

/** The runner of that node runs the lobby: it had no node before, or the node has a new name. */
export function assignNode(book: Book, lobby_id: string, node_id: string): Decision<null> {
  const lobby = book.lobbies.get(lobby_id)
  if (lobby === undefined || lobby.stop_ms !== null || lobby.node_id === node_id) return grant(null)
  return grant(null, { kind: 'lobby_placed', lobby_id, node_id })
}

/** Stops lobbies of a node: all, those without players and connections, or those that are not ready. Returns their number. */
export function stopNode(
  book: Book,
  node_id: string,
  { reason, which }: { reason: StopReason; which: 'all' | 'empty' | 'starting' },
  now_ms: number,
): Decision<number> {
  const ended = [...book.lobbies.values()].filter((lobby) => {
    if (lobby.node_id !== node_id || lobby.stop_ms !== null) return false
    if (which === 'starting') return lobby.ready_ms === null
    return which === 'all' || lobby.players.size + lobby.held_count + lobby.connection_count === 0
  })
  return grant(ended.length, ...ended.map((lobby) => stopped(lobby, now_ms, reason)))
}

/** `state` is JSON text; null clears it. */
export function setState(book: Book, lobby_id: string, state: string | null): Decision<null> {
  const lobby = book.lobbies.get(lobby_id)
  if (lobby === undefined || lobby.stop_ms !== null) return refuse('MATCHMAKER_LOBBY_STOPPED')
  return lobby.state === state ? grant(null) : grant(null, { kind: 'lobby_state', lobby_id, state })
}

/** Returns whether the lobby ran until now. */
export function stop(book: Book, lobby_id: string, reason: StopReason, now_ms: number): Decision<boolean> {
  const lobby = book.lobbies.get(lobby_id)
  if (lobby === undefined || lobby.stop_ms !== null) return grant(false)
  return grant(true, stopped(lobby, now_ms, reason))
}

/** Consumes a player's token. A call with the same key gets the same result again; any other call is refused. */
export function connected(
  book: Book,
  call: { player_id: string; lobby_id: string; connect_key: string | null },
  now_ms: number,
): Decision<null> {
  const player = book.players.get(call.player_id)
  if (player === undefined) return refuse('MATCHMAKER_PLAYER_REMOVED')
  if (player.lobby_id !== call.lobby_id) return refuse('MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY')
  if (call.connect_key !== null && player.connect_key === call.connect_key) return grant(null)
  if (player.remove_reason === 'expired') return refuse('MATCHMAKER_PLAYER_REGISTRATION_EXPIRED')
  if (player.remove_ms !== null) return refuse('MATCHMAKER_PLAYER_REMOVED')
  if (player.connect_ms !== null) return refuse('MATCHMAKER_PLAYER_ALREADY_CONNECTED')
  if (player.deadline_ms <= now_ms) return refuse('MATCHMAKER_PLAYER_REGISTRATION_EXPIRED')
  if (book.lobby(player.lobby_id).ready_ms === null) return refuse('MATCHMAKER_LOBBY_NOT_STARTED')
  return grant(null, {
    kind: 'player_connected',
    player_id: player.player_id,
    ms: now_ms,
    deadline_ms: now_ms + CONNECTED_MS_MAX,
    connect_key: call.connect_key,
  })
}

/** A player has a connection through an edge that checks the seats: the first one connects the player. */
export function admitted(book: Book, call: { player_id: string; lobby_id: string }, now_ms: number): Decision<null> {
  const player = book.players.get(call.player_id)
  const is_connected = player?.connect_ms != null && player.remove_ms === null && player.lobby_id === call.lobby_id
  return is_connected ? grant(null) : connected(book, { ...call, connect_key: null }, now_ms)
}

/** A player has had no connection for the time of the hold. Without effect for one who is not connected. */
export function gone(book: Book, call: { player_id: string; lobby_id: string }, now_ms: number): Decision<null> {
  const player = book.players.get(call.player_id)
  if (player === undefined || player.connect_ms === null || player.remove_ms !== null) return grant(null)
  return disconnected(book, { ...call, disconnect_key: null }, now_ms)
}

/**
 * Frees the seat, or keeps it for `hold_ms`, counted like any other, so that the same token can connect again. A player who
 * has left stays removed. A late repetition of a call does not remove a player who has connected again.
 */
export function disconnected(
  book: Book,
  call: { player_id: string; lobby_id: string; disconnect_key: string | null; hold_ms?: number },
  now_ms: number,
): Decision<null> {
  const player = book.players.get(call.player_id)
  if (player === undefined) return grant(null)
  if (player.lobby_id !== call.lobby_id) return refuse('MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY')
  if (player.remove_ms !== null) return grant(null)
  const { player_id } = player
  const { disconnect_key, hold_ms = 0 } = call
  if (disconnect_key !== null && player.disconnect_key === disconnect_key) return grant(null)
  if (hold_ms === 0) return grant(null, removal(player_id, now_ms, 'disconnected', disconnect_key))
  return grant(null, { kind: 'player_dropped', player_id, deadline_ms: now_ms + hold_ms, disconnect_key })
}

/** A developer removes a player from a lobby. Returns whether the player was in it. */
export function expel(book: Book, call: { player_id: string; lobby_id: string }, now_ms: number): Decision<boolean> {
  const player = book.players.get(call.player_id)
  if (player === undefined || player.lobby_id !== call.lobby_id || player.remove_ms !== null) return grant(false)
  return grant(true, removal(player.player_id, now_ms, 'requested', null))
}

/**
 * Takes back the seat of a request that got no response, or all seats of its party. A player who has connected meanwhile
 * stays. A party whose lobby is ready stays as well, because its members have been notified.
 */
export function release(book: Book, player_id: string, now_ms: number): Decision<null> {
  const player = book.players.get(player_id)
  if (player === undefined || player.remove_ms !== null || player.connect_ms !== null) return grant(null)
  if (player.leader_player_id === null) return grant(null, removal(player_id, now_ms, 'unanswered', null))
  const lobby = book.lobby(player.lobby_id)
  if (lobby.ready_ms !== null) return grant(null)
  const party = [...lobby.players.values()].filter((one) => one.leader_player_id === player_id)
  return grant(null, ...party.map((one) => removal(one.player_id, now_ms, 'unanswered', null)))
}

/** Starts or ends the draining of a version: its lobbies take no new players. */
export function setDraining(book: Book, version_id: string, is_draining: boolean): Decision<null> {
  if (book.draining.has(version_id) === is_draining) return grant(null)
  if (is_draining && book.draining.size >= DRAINING_VERSIONS_MAX) {
    const metadata = { limit: DRAINING_VERSIONS_MAX, used: book.draining.size }
    return { ...refuse('QUOTA_REACHED'), metadata }
  }
  return grant(null, { kind: 'version_draining', version_id, is_draining })
}

/** The next change that is due, or null. To be applied and called again, until it returns null. */
export function expire(book: Book, now_ms: number): Change | null {
  book.holds.expire(now_ms)
  if (book.idle.dueMs() <= now_ms) {
    const lobby = book.idle.first()!
    return stopped(lobby, now_ms, book.isOutdated(lobby.version_id) ? 'outdated' : 'idle')
  }
  const next = book.due.peek()
  if (next === undefined || dueAt(next) > now_ms) return book.parties.expire(now_ms)
  if (isLobby(next)) return stopped(next, now_ms, 'never_ready')
  if (next.connect_ms !== null) return removal(next.player_id, now_ms, 'too_long', null)
  const { connection_count } = book.lobby(next.lobby_id)
  const expired = removal(next.player_id, now_ms, 'expired', null)
  return connection_count === 0 ? expired : { ...expired, open_connections: connection_count }
}

/** The connections of a server that has exited, or of a node that is gone, say nothing about the end of the lobby. */
function stopped({ lobby_id, connection_count }: Lobby, ms: number, reason: StopReason): LobbyStopped {
  const change: LobbyStopped = { kind: 'lobby_stopped', lobby_id, ms, reason }
  return connection_count === 0 || reason === 'exited' || reason === 'node_lost'
    ? change
    : { ...change, open_connections: connection_count }
}

function removal(player_id: string, ms: number, reason: RemoveReason, disconnect_key: string | null): PlayerRemoved {
  return { kind: 'player_removed', player_id, ms, reason, disconnect_key }
}
