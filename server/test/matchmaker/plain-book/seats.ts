// Requests for a seat in the plain book: find, join and create.
import type { ErrorCode } from '@musterhost/contract'
import type { LobbyPlan } from '../../../src/matchmaker/book/commands.ts'
import { VERSION } from '../plain-requests.ts'
import {
  type Entrant,
  type Ids,
  lobbyCount,
  lobbyOf,
  type Outcome,
  type PlainBook,
  type PlainLobby,
  playersOf,
  refused,
  type SeatRequest,
  seatsOf,
  takenIn,
} from './state.ts'

const TEN_MINUTES_MS = 600_000
const DAY_MS = 86_400_000

export type FindRequest = SeatRequest & {
  modes: string[]
  regions: string[]
  tags: Record<string, string>
  plan: LobbyPlan | null
}

export function find(book: PlainBook, request: FindRequest, ids: Ids, now: number): Outcome {
  const before = earlierSeat(book, request.key, now)
  if (before !== null) return before
  const entrants = entrantsOf(book, request, ids)
  if ('refused' in entrants) return entrants
  if (tooMany(book, entrants, request)) return refused('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
  if (request.modes.length > 0 && book.draining.includes(VERSION)) return refused('MATCHMAKER_VERSION_DRAINING')
  if (request.spectator) {
    const watched = bestToWatch(book, request)
    return watched === undefined
      ? refused('MATCHMAKER_NO_AVAILABLE_LOBBIES')
      : takeSeats(book, watched, request, entrants, now)
  }
  const best = bestOf(book, request.modes, request.regions, request.tags, sizeOf(request, entrants))
  if (best !== undefined) return takeSeats(book, best, request, entrants, now)
  if (request.plan === null) return refused('MATCHMAKER_NO_AVAILABLE_LOBBIES')
  return openWithinLimits(book, request.plan, request, entrants, ids, now)
}

export function join(book: PlainBook, request: SeatRequest & { lobby: string }, ids: Ids, now: number): Outcome {
  const before = earlierSeat(book, request.key, now)
  if (before !== null) return before
  const lobby = lobbyOf(book, request.lobby)
  if (lobby === undefined) return refused('MATCHMAKER_LOBBY_NOT_FOUND')
  if (lobby.stopped !== null) return refused('MATCHMAKER_LOBBY_STOPPED')
  const entrants = entrantsOf(book, request, ids)
  if ('refused' in entrants) return entrants
  if (tooMany(book, entrants, request)) return refused('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
  if (book.draining.includes(VERSION)) return refused('MATCHMAKER_VERSION_DRAINING')
  if (lobby.stalled) return refused('MATCHMAKER_LOBBY_CLOSED')
  const places = request.spectator ? watchersOf(lobby) : placesOf(lobby.plan, sizeOf(request, entrants), 'direct')
  if (takenIn(book, lobby.id, request.spectator) + entrants.length > places) return refused('MATCHMAKER_LOBBY_FULL')
  return takeSeats(book, lobby, request, entrants, now)
}

export function create(book: PlainBook, request: SeatRequest & { plan: LobbyPlan }, ids: Ids, now: number): Outcome {
  const before = earlierSeat(book, request.key, now)
  if (before !== null) return before
  const entrants = entrantsOf(book, request, ids)
  if ('refused' in entrants) return entrants
  if (tooMany(book, entrants, request)) return refused('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
  if (book.draining.includes(VERSION)) return refused('MATCHMAKER_VERSION_DRAINING')
  return openWithinLimits(book, request.plan, request, entrants, ids, now)
}

function openWithinLimits(
  book: PlainBook,
  plan: LobbyPlan,
  request: SeatRequest,
  entrants: readonly Entrant[],
  ids: Ids,
  now: number,
): Outcome {
  if (request.with_party && entrants.length > plan.max_players_party) return refused('MATCHMAKER_PARTY_TOO_LARGE')
  if (lobbyCount(book) >= request.lobby_max) return refused('MATCHMAKER_TOO_MANY_LOBBIES')
  return openLobby(book, plan, request, entrants, ids.lobby, now)
}

export function openLobby(
  book: PlainBook,
  plan: LobbyPlan,
  request: SeatRequest,
  entrants: readonly Entrant[],
  id: string,
  now: number,
): Outcome {
  const lobby = newLobby(plan, id, now)
  book.lobbies.push(lobby)
  return takeSeats(book, lobby, request, entrants, now)
}

export function newLobby(plan: LobbyPlan, id: string, now: number): PlainLobby {
  return {
    id,
    plan,
    created: now,
    ready_by: now + plan.ready_within_ms,
    ready: null,
    closed: false,
    stalled: false,
    state: null,
    empty_since: now,
    kept_until: null,
    stopped: null,
    reason: null,
    has_reported_players: false,
    open: 0,
    closed_since: null,
    expired_while_connected: 0,
    connections_at_stop: null,
  }
}

export function takeSeats(
  book: PlainBook,
  lobby: PlainLobby,
  request: SeatRequest,
  entrants: readonly Entrant[],
  now: number,
): Outcome {
  const first = entrants[0]!.player
  for (const entrant of entrants) {
    const key = entrant.player === first ? request.key : null
    const { spectator } = request
    addPlayer(book, lobby, entrant, { key, leader: request.with_party ? first : null, spectator }, now)
  }
  const party = request.with_party ? book.parties.find(({ leader }) => leader === request.identity) : undefined
  if (party !== undefined && party.until - now <= DAY_MS / 2) party.until = now + DAY_MS
  return { lobby: lobby.id, player: first, is_ready: lobby.ready !== null }
}

function addPlayer(
  book: PlainBook,
  lobby: PlainLobby,
  entrant: Entrant,
  { key, leader, spectator }: { key: string | null; leader: string | null; spectator: boolean },
  now: number,
): void {
  if (!spectator) lobby.empty_since = null
  book.players.push({
    id: entrant.player,
    lobby: lobby.id,
    client: entrant.client,
    identity: entrant.identity,
    spectator,
    leader,
    created: now,
    deadline: (lobby.ready === null ? Math.max(now, lobby.ready_by) : now) + lobby.plan.player_deadline_ms,
    key,
    connected: null,
    connect_key: null,
    left: null,
    reason: null,
    leave_key: null,
  })
}

/** The seat that a request with the same key took within the last ten minutes; null when its response was never sent. */
export function earlierSeat(book: PlainBook, key: string | null, now: number): Outcome {
  const seat = key === null ? undefined : book.players.findLast((player) => player.key === key)
  if (seat === undefined || now > seat.created + TEN_MINUTES_MS) return null
  const ready = lobbyOf(book, seat.lobby)?.ready ?? null
  const was_delivered = ready !== null && seat.reason !== 'unanswered' && (seat.left === null || seat.left >= ready)
  return seat.left === null || was_delivered ? { lobby: seat.lobby, player: seat.id, is_ready: ready !== null } : null
}

export function placesOf(plan: LobbyPlan, party: number | null, alone: 'normal' | 'direct' = 'normal'): number {
  return party === null ? plan[`max_players_${alone}`] : plan.max_players_party
}

/** The players that need seats: the requester first, then the other members of the party. */
export function entrantsOf(book: PlainBook, request: SeatRequest, ids: Ids): Entrant[] | { refused: ErrorCode } {
  const first = { player: ids.player, client: request.client, max: request.client_max, identity: request.identity }
  if (!request.with_party) return [first]
  const party = book.parties.find(({ members }) => members.some(({ identity }) => identity === request.identity))
  if (party === undefined) return { refused: 'PARTY_NOT_FOUND' }
  if (party.leader !== request.identity) return { refused: 'PARTY_LEADER_REQUIRED' }
  const others = party.members.filter(({ identity }) => identity !== request.identity)
  return [first, ...others.map((one, index) => ({ ...one, player: ids.members[index]!, max: request.member_max }))]
}

export const watchersOf = ({ plan }: PlainLobby): number => plan.max_spectators ?? 0

/** The lobby that a spectator who has no lobby watches: a running public one with most players, then the oldest. */
export function bestToWatch(
  book: PlainBook,
  { modes, regions, tags }: Pick<FindRequest, 'modes' | 'regions' | 'tags'>,
): PlainLobby | undefined {
  const playersIn = (lobby: PlainLobby): number => seatsOf(book, lobby.id).length
  return book.lobbies
    .filter((lobby) => lobby.stopped === null && lobby.ready !== null && !lobby.stalled)
    .filter((lobby) => lobby.plan.publicity === 'public' && playersIn(lobby) > 0)
    .filter((lobby) => modes.includes(lobby.plan.game_mode) && regions.includes(lobby.plan.region))
    .filter((lobby) => Object.entries(tags).every(([name, value]) => lobby.plan.tags[name] === value))
    .filter((lobby) => takenIn(book, lobby.id, true) < watchersOf(lobby))
    .sort((a, b) => playersIn(b) - playersIn(a) || a.created - b.created || (a.id < b.id ? -1 : 1))[0]
}

export function tooMany(
  book: PlainBook,
  entrants: readonly Entrant[],
  { spectator }: SeatRequest,
  more: 0 | 1 = 1,
): boolean {
  return entrants.some(({ client, max }, index) => {
    const before = entrants.slice(0, index + 1).filter((one) => one.client === client).length
    return playersOf(book, client, spectator) + more * before > max
  })
}

export const sizeOf = (request: SeatRequest, entrants: readonly Entrant[]): number | null =>
  request.with_party ? entrants.length : null

/** The lobby that a find enters: the fullest, then the oldest. */
export function bestOf(
  book: PlainBook,
  modes: readonly string[],
  regions: readonly string[],
  tags: Readonly<Record<string, string>>,
  party: number | null,
): PlainLobby | undefined {
  const free = (lobby: PlainLobby): number => placesOf(lobby.plan, party) - takenIn(book, lobby.id)
  return book.lobbies
    .filter((lobby) => lobby.stopped === null && !lobby.closed && !lobby.stalled)
    .filter((lobby) => lobby.plan.publicity === 'public')
    .filter((lobby) => modes.includes(lobby.plan.game_mode) && regions.includes(lobby.plan.region))
    .filter((lobby) => Object.entries(tags).every(([name, value]) => lobby.plan.tags[name] === value))
    .filter((lobby) => free(lobby) >= (party ?? 1))
    .sort((a, b) => free(a) - free(b) || a.created - b.created || (a.id < b.id ? -1 : 1))[0]
}
