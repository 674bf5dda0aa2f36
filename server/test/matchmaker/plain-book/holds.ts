// Places of the plain book that are held during verification.
import type { LobbyPlan } from '../../../src/matchmaker/book/commands.ts'
import { VERSION } from '../plain-requests.ts'
import {
  bestOf,
  bestToWatch,
  earlierSeat,
  entrantsOf,
  type FindRequest,
  find,
  join,
  openLobby,
  placesOf,
  sizeOf,
  takeSeats,
  tooMany,
  watchersOf,
} from './seats.ts'
import {
  type Entrant,
  type Ids,
  lobbyCount,
  lobbyOf,
  type Outcome,
  type PlainBook,
  type PlainPlan,
  plannedIn,
  refused,
  type SeatRequest,
  takenIn,
} from './state.ts'

export type PlainAsked =
  | { action: 'find'; request: FindRequest; verified: ReadonlySet<string> }
  | { action: 'join'; request: SeatRequest & { lobby: string } }
  | { action: 'create'; request: SeatRequest & { plan: LobbyPlan } }

/** Returns a seat when no verification is needed, else the lobby of the new hold. */
export function hold(book: PlainBook, asked: PlainAsked, ids: Ids, now: number): Outcome | { held: string } {
  const { action, request } = asked
  const before = earlierSeat(book, request.key, now)
  if (before !== null) return before
  const entrants = entrantsOf(book, request, ids)
  const keep = (lobby: string): { held: string } => {
    for (const { player, client, identity } of entrants as Entrant[]) {
      book.holds.push({ player, client, identity, lobby, request, action, until: now + 10_000 })
    }
    return { held: lobby }
  }
  if (action === 'join') {
    const attempt = structuredClone(book)
    const outcome = join(attempt, request, ids, now)
    return outcome !== null && 'refused' in outcome ? outcome : keep(request.lobby)
  }
  if ('refused' in entrants) return entrants
  if (tooMany(book, entrants, request)) return refused('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
  if (book.draining.includes(VERSION)) return refused('MATCHMAKER_VERSION_DRAINING')
  const size = sizeOf(request, entrants)
  if (action === 'find' && request.spectator) {
    const watched = bestToWatch(book, request)
    if (watched === undefined) return refused('MATCHMAKER_NO_AVAILABLE_LOBBIES')
    return asked.verified.has(watched.plan.game_mode) ? keep(watched.id) : find(book, request, ids, now)
  }
  if (action === 'find') {
    const best = bestOf(book, request.modes, request.regions, request.tags, size) ?? bestPlanned(book, request, size)
    const mode = (best?.plan ?? request.plan)?.game_mode
    if (mode === undefined) return refused('MATCHMAKER_NO_AVAILABLE_LOBBIES')
    if (!asked.verified.has(mode)) return find(book, request, ids, now)
    if (best !== undefined) return keep(best.id)
  }
  if (size !== null && size > request.plan!.max_players_party) return refused('MATCHMAKER_PARTY_TOO_LARGE')
  if (lobbyCount(book) >= request.lobby_max) return refused('MATCHMAKER_TOO_MANY_LOBBIES')
  book.plans.push({ id: ids.lobby, plan: request.plan!, made: now })
  return keep(ids.lobby)
}

export function seatHeld(book: PlainBook, ids: Omit<Ids, 'lobby'>, request: SeatRequest, now: number): Outcome {
  const before = earlierSeat(book, request.key, now)
  if (before !== null) return before
  const found = book.holds.find((one) => one.player === ids.player)
  if (found === undefined) return null
  const entrants = entrantsOf(book, request, { ...ids, lobby: found.lobby })
  // The party must be the one that was held.
  const held = book.holds.filter((one) => one.player === ids.player || ids.members.includes(one.player))
  if ('refused' in entrants || held.length !== entrants.length) return null
  if (
    held.some(
      (one) => request.with_party && entrants.find(({ player }) => player === one.player)?.identity !== one.identity,
    )
  )
    return null
  const lobby = lobbyOf(book, found.lobby)
  const plan = book.plans.find((one) => one.id === found.lobby)
  const is_shut = lobby?.stalled || (lobby?.closed && !request.spectator)
  if (lobby !== undefined && (lobby.stopped !== null || (found.action === 'find' && is_shut))) return null
  if (tooMany(book, entrants, request, 0)) return refused('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
  if (book.draining.includes(VERSION)) return refused('MATCHMAKER_VERSION_DRAINING')
  if (lobby?.stalled) return refused('MATCHMAKER_LOBBY_CLOSED')
  if (lobby !== undefined) {
    const alone = found.action === 'find' ? 'normal' : 'direct'
    const places = request.spectator ? watchersOf(lobby) : placesOf(lobby.plan, sizeOf(request, entrants), alone)
    if (takenIn(book, lobby.id, request.spectator) > places) return null
  } else if (lobbyCount(book) > request.lobby_max) return refused('MATCHMAKER_TOO_MANY_LOBBIES')
  releaseHold(book, ids)
  book.seated.push(...held)
  if (lobby !== undefined) return takeSeats(book, lobby, request, entrants, now)
  return openLobby(book, plan!.plan, request, entrants, found.lobby, now)
}

export function releaseHold(book: PlainBook, { player, members }: Omit<Ids, 'lobby'>): void {
  book.holds = book.holds.filter((one) => one.player !== player && !members.includes(one.player))
}

export function expireHolds(book: PlainBook, now: number): void {
  book.holds = book.holds.filter((one) => one.until > now)
}

/** The planned lobby that a find shares: the fullest, then the oldest. */
function bestPlanned(book: PlainBook, request: FindRequest, party: number | null): PlainPlan | undefined {
  const free = ({ id, plan }: PlainPlan): number => placesOf(plan, party) - takenIn(book, id)
  return plannedIn(book)
    .filter(({ plan }) => !plan.is_custom && plan.publicity === 'public')
    .filter(({ plan }) => request.modes.includes(plan.game_mode) && request.regions.includes(plan.region))
    .filter(({ plan }) => Object.entries(request.tags).every(([name, value]) => plan.tags[name] === value))
    .filter((plan) => free(plan) >= (party ?? 1))
    .sort((a, b) => free(a) - free(b) || a.made - b.made || (a.id < b.id ? -1 : 1))[0]
}
