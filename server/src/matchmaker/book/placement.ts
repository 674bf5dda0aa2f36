// Steps that the commands for a seat share: the entrants and their limits, the lobby they may enter or open, and the
// changes that give them their seats. Reads the book and changes nothing.
import type { ErrorCode } from '@musterhost/contract'
import { type Change, LIMITS, type LobbyRecord, type PartyMember, type PlayerRecord } from '../../journal/changes.ts'
import type {
  AllocateRequest,
  Decision,
  Env,
  FreshIds,
  Granted,
  HeldIds,
  JoinRequest,
  LobbyPlan,
  Refused,
  RequestedSeat,
  SeatTaken,
} from './commands.ts'
import type { PlannedLobby } from './holds.ts'
import type { Lobby } from './lobby.ts'
import { hasSpectatorSeat, takenSeats } from './rules.ts'
import type { Book } from './state.ts'

/** A player who is about to get a seat: the caller, or each member of the party, its leader first. */
export type Entrant = {
  player_id: string
  client_key: string
  players_max: number
  identity_id: string | null
  member: PartyMember | null
}

export const refuse = (refused: ErrorCode): Refused => ({ refused })
/** The refusal of a request for lobbies that are drained. By a schedule, it says until when. */
export function refuseDraining(book: Book): Refused {
  const until_ms = book.drainedUntilMs()
  if (until_ms === null) return refuse('MATCHMAKER_VERSION_DRAINING')
  const until_ts = new Date(until_ms).toISOString()
  const message = `The game takes no new players until ${until_ts}: it is under planned maintenance.`
  return { refused: 'MATCHMAKER_VERSION_DRAINING', metadata: { until_ts }, message }
}

/** The refusal for drained lobbies. A request for an earlier version is refused with the deployed one. */
export function refuseDrained(book: Book, request: Pick<RequestedSeat, 'replaced_by'>): Refused {
  const refused = refuseDraining(book)
  return refused.metadata === undefined ? refuseVersion(request, refused.refused) : refused
}

/** Refuses a request for an earlier version with the deployed one; every other request with `code`. */
export function refuseVersion({ replaced_by }: Pick<RequestedSeat, 'replaced_by'>, code: ErrorCode): Refused {
  if (replaced_by === undefined) return refuse(code)
  return { refused: 'MATCHMAKER_VERSION_REPLACED', metadata: { version_id: replaced_by } }
}

export const grant = <T>(result: T, ...changes: Change[]): Granted<T> => ({ changes, result })

/** The entrants of a request, unless the limit of one of their clients refuses them. */
export function entrantsOf(book: Book, request: RequestedSeat, ids: HeldIds): Entrant[] | Refused {
  const entrants = requestedEntrants(book, request, ids)
  return 'refused' in entrants ? entrants : withinLimits(book, entrants, request.is_spectator)
}

/** A player whose client is not known is a client of its own, without a limit. */
export function allocatedEntrants(
  book: Book,
  { players, party }: AllocateRequest,
  { player_id, member_ids = [] }: HeldIds,
): Entrant[] | Refused {
  const entrants = players.map(({ client_ip, client_key, identity_id }, index): Entrant => {
    const id = index === 0 ? player_id : member_ids[index - 1]!
    const players_max = client_ip === null || party === null ? 1 : party.playersMaxOf(client_ip)
    return { player_id: id, client_key: client_key ?? `player ${id}`, players_max, identity_id, member: null }
  })
  return withinLimits(book, entrants, false)
}

function withinLimits(book: Book, entrants: Entrant[], is_spectator: boolean): Entrant[] | Refused {
  const counts = new Map<string, number>()
  for (const { client_key, players_max } of entrants) {
    const count = (counts.get(client_key) ?? book.clientSeats(client_key, is_spectator)) + 1
    if (count > players_max) return refuse('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
    counts.set(client_key, count)
  }
  return entrants
}

/** The entrants whose seats are held by these ids; null: one of the holds is over, or the party has changed. */
export function heldEntrants(book: Book, request: RequestedSeat, ids: HeldIds): Entrant[] | null {
  const entrants = requestedEntrants(book, request, ids)
  if ('refused' in entrants) return null
  const are_held = entrants.every(({ player_id, member }) => {
    const hold = book.holds.get(player_id)
    return hold !== undefined && hold.member?.identity_id === member?.identity_id
  })
  const more = ids.member_ids?.[entrants.length - 1]
  return are_held && (more === undefined || book.holds.get(more) === undefined) ? entrants : null
}

function requestedEntrants(
  book: Book,
  request: RequestedSeat,
  { player_id, member_ids = [] }: HeldIds,
): Entrant[] | Refused {
  const { client_key, client_players_max, identity_id } = request
  if (request.party === null)
    return [{ player_id, client_key, players_max: client_players_max, identity_id, member: null }]
  const party = identity_id === null ? undefined : book.parties.ofMember(identity_id)
  if (party === undefined) return refuse('PARTY_NOT_FOUND')
  if (party.leader_identity_id !== identity_id) return refuse('PARTY_LEADER_REQUIRED')
  const leader = party.members.find((member) => member.identity_id === identity_id)!
  const others = party.members.filter((member) => member !== leader)
  // The leader's client key is that of this request. Those of the other members are from when they joined.
  const first = { player_id, client_key, players_max: client_players_max, identity_id, member: leader }
  const rest = others.map((member, index): Entrant => {
    const players_max = request.party!.playersMaxOf(member.address)
    const { identity_id, client: client_key } = member
    return { player_id: member_ids[index]!, client_key, players_max, identity_id, member }
  })
  return [first, ...rest]
}

/** Null: a single player, without a party. */
export function partySize(entrants: readonly Entrant[]): number | null {
  return entrants[0]!.member === null ? null : entrants.length
}

export function isTooLarge(entrants: readonly Entrant[], { max_players_party }: LobbyPlan): boolean {
  return (partySize(entrants) ?? 0) > max_players_party
}

/** The lobby of a join and its entrants, unless the lobby cannot take them. */
export function joinable(
  book: Book,
  request: JoinRequest,
  ids: FreshIds,
): { lobby: Lobby; entrants: Entrant[] } | Refused {
  const lobby = book.lobbies.get(request.lobby_id)
  if (lobby === undefined) return refuse('MATCHMAKER_LOBBY_NOT_FOUND')
  if (lobby.stop_ms !== null) return refuse('MATCHMAKER_LOBBY_STOPPED')
  const entrants = entrantsOf(book, request, ids)
  if ('refused' in entrants) return entrants
  if (book.isDraining([lobby])) return refuseDraining(book)
  if (lobby.is_stalled) return refuse('MATCHMAKER_LOBBY_CLOSED')
  if (request.is_spectator) return hasSpectatorSeat(lobby) ? { lobby, entrants } : refuse('MATCHMAKER_LOBBY_FULL')
  const seats_max = request.party === null ? lobby.max_players_direct : lobby.max_players_party
  return takenSeats(lobby) + entrants.length > seats_max ? refuse('MATCHMAKER_LOBBY_FULL') : { lobby, entrants }
}

/** The record of a new lobby after the plan, unless a limit refuses it. */
export function plannedLobby(
  book: Book,
  plan: LobbyPlan,
  lobby_count_max: number,
  lobby_id: string,
  { now_ms, chooseNode, choosePorts }: Env,
): LobbyRecord | Refused {
  const { ready_within_ms, edge_ports_wanted, creator_lobbies_max, failed_before, ...record } = plan
  if (failed_before !== undefined && failed_before.pause_ms > 0) {
    return { refused: 'MATCHMAKER_LOBBY_STOPPED', metadata: failed_before }
  }
  if (book.lobbyCount() >= lobby_count_max) return refuse('MATCHMAKER_TOO_MANY_LOBBIES')
  if (isCodeTaken(book, plan)) return refuse('API_NOT_AVAILABLE')
  const chosen = chooseNode(plan)
  if (chosen === null) return regionFull(plan)
  if (creator_lobbies_max !== null && book.lobbiesBy(plan) >= creator_lobbies_max) {
    return refuse('MATCHMAKER_CUSTOM_LOBBY_LIMIT_REACHED')
  }
  const edge_ports = choosePorts(edge_ports_wanted, now_ms, chosen.node_id)
  if (edge_ports === null) return refuse('MATCHMAKER_NO_PORTS')
  const ready_deadline_ms = now_ms + ready_within_ms
  return { ...record, ...chosen, edge_ports, lobby_id, create_ms: now_ms, ready_deadline_ms }
}

/** Another lobby got the same code since it was drawn. The caller repeats the request with another one. */
export function isCodeTaken(book: Book, { code }: Pick<LobbyRecord, 'code'>): boolean {
  return code != null && book.lobby_codes.has(code)
}

export function regionFull({
  region,
  cpu_cores,
  memory_mb,
}: Pick<LobbyPlan, 'region' | 'cpu_cores' | 'memory_mb'>): Refused {
  return { refused: 'MATCHMAKER_REGION_FULL', metadata: { region, cpu_cores, memory_mb } }
}

/** The record of a planned lobby that is created now. */
export function recordOf(plan: PlannedLobby, now_ms: number): LobbyRecord {
  const { is_closed, is_stalled, state, ready_ms, idle_ms, stop_ms, stop_reason, players, held_count, ...lobby } = plan
  const { has_reported_players, seats_expired_while_connected, connections_at_stop, spectators, ...rest } = lobby
  const { connection_count, quiet_ms, held_spectator_count, edge_ports_wanted, creator_lobbies_max, ...known } = rest
  const { max_spectators, ...record } = known
  const ready_deadline_ms = now_ms + (record.ready_deadline_ms - record.create_ms)
  const created = { ...record, create_ms: now_ms, ready_deadline_ms }
  return max_spectators === 0 ? created : { ...created, max_spectators }
}

/** A new lobby after the plan, with seats for the entrants. */
export function openLobby(
  book: Book,
  plan: LobbyPlan,
  request: RequestedSeat,
  entrants: readonly Entrant[],
  ids: FreshIds,
  env: Env,
): Decision<SeatTaken> {
  if (isTooLarge(entrants, plan)) return refuse('MATCHMAKER_PARTY_TOO_LARGE')
  const lobby = plannedLobby(book, plan, request.lobby_count_max, ids.lobby_id, env)
  if ('refused' in lobby) return lobby
  const seat = reserveSeats(book, lobby, false, request, entrants, env.now_ms)
  return { changes: [{ kind: 'lobby_created', lobby }, ...seat.changes], result: seat.result }
}

/** Seats for the entrants in the lobby, which may be new. */
export function reserveSeats(
  book: Book,
  lobby: LobbyRecord,
  is_ready: boolean,
  request: RequestedSeat,
  entrants: readonly Entrant[],
  now_ms: number,
): Granted<SeatTaken> {
  // Time to connect counts from ready: until then only the lobby's own deadline can end the seat.
  const from_ms = is_ready ? now_ms : Math.max(now_ms, lobby.ready_deadline_ms)
  const first = entrants[0]!
  const { lobby_count_max } = request
  const is_opened = !book.lobbies.has(lobby.lobby_id)
  const changes = entrants.map(({ player_id, client_key, identity_id, players_max }): Change => {
    const player: PlayerRecord = {
      player_id,
      lobby_id: lobby.lobby_id,
      client: client_key,
      create_ms: now_ms,
      deadline_ms: from_ms + lobby.player_deadline_ms,
      seat_key: player_id === first.player_id ? request.seat_key : null,
      identity_id,
      leader_player_id: request.party === null ? null : first.player_id,
    }
    if (request.is_spectator) player.is_spectator = true
    const limits = { client_players_max: players_max, lobby_count_max: is_opened ? lobby_count_max : null }
    return { kind: 'player_reserved', player, [LIMITS]: limits }
  })
  if (first.member !== null) changes.push(...book.parties.renew(book.parties.ofMember(first.identity_id!)!, now_ms))
  return grant({ lobby_id: lobby.lobby_id, player_id: first.player_id, is_ready }, ...changes)
}
