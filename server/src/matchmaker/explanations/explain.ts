// Explains a decision of the book: which lobbies there were, why each was taken or passed over, and the limits at that
// moment. To be called in the step that decides, before its changes are applied. No clock, no I/O.
import { type Attempt, VERDICTS, type Verdict } from '@musterhost/contract'
import type { CreateRequest, Decision, FailedBefore, FindRequest, JoinRequest, SeatTaken } from '../book/commands.ts'
import type { HeldSeat } from '../book/holds.ts'
import type { Lobby } from '../book/lobby.ts'
import type { MatchOrWait } from '../book/matching/find-match.ts'
import type { LobbyKey } from '../book/open-lobbies.ts'
import { hasSpectatorSeat, hasTags, isWatchable, takenSeats } from '../book/rules.ts'
import type { Book } from '../book/state.ts'

/** Lobbies that are compared with the request. */
const COMPARED_MAX = 1_024
/** Candidates of one explanation; the most telling ones come first. */
const CANDIDATES_MAX = 32
/** Regions and game modes of a find that are shown. */
const PLACES_MAX = 32

type Find = Pick<FindRequest, 'client_key' | 'is_spectator' | 'lobby_count_max' | 'keys' | 'tags' | 'plan'>
type Join = Pick<JoinRequest, 'client_key' | 'is_spectator' | 'lobby_count_max' | 'lobby_id'>
type Create = Pick<CreateRequest, 'client_key' | 'is_spectator' | 'lobby_count_max' | 'plan'>
type Asked = Find | Join | Create
/** `limit`: the strictest limit of the client. */
export type Decided = {
  request: Asked
  decision: Decision<SeatTaken | HeldSeat | MatchOrWait | null>
  limit: { limit: Attempt['limits']['client_limit']; players_max: number }
}

export function explainDecision(book: Book, { request, decision, limit }: Decided): Omit<Attempt, 'offset'> {
  const outcome = outcomeOf(decision)
  const failed = 'plan' in request ? request.plan?.failed_before : undefined
  const candidates = candidatesOf(book, request, outcome.lobby_id)
  const lobby_count = isFind(request) ? book.lobbies.size : candidates.length
  return {
    ...outcome,
    ...(failed === undefined ? {} : { failed_starts: failedStarts(failed) }),
    places: isFind(request) ? request.keys.slice(0, PLACES_MAX) : [],
    candidates: candidates.slice(0, CANDIDATES_MAX),
    candidates_left_out: Math.max(0, lobby_count - CANDIDATES_MAX),
    limits: {
      client_limit: limit.limit,
      client_players: book.clientSeats(request.client_key, request.is_spectator),
      client_players_max: limit.players_max,
      lobbies: book.live_lobby_count,
      lobby_count_max: request.lobby_count_max,
    },
  }
}

function failedStarts({ failure_count, pause_ms, lobby_id }: FailedBefore): Attempt['failed_starts'] {
  return { count: failure_count, pause: pause_ms * 1_000, last_lobby_id: lobby_id }
}

function outcomeOf(decision: Decided['decision']): Pick<Attempt, 'outcome' | 'code' | 'lobby_id'> {
  if ('refused' in decision) return { outcome: 'refused', code: decision.refused }
  const { changes, result } = decision
  if (result === null) return { outcome: 'lost' }
  if ('ticket_id' in result) return { outcome: 'waiting' }
  if ('hold' in result) return { outcome: 'held', lobby_id: result.hold.lobby.lobby_id }
  const { lobby_id } = 'seat' in result ? result.seat : result
  if (changes.some(({ kind }) => kind === 'lobby_created')) return { outcome: 'created', lobby_id }
  return { outcome: changes.length === 0 ? 'remembered' : 'seated', lobby_id }
}

const isFind = (request: Asked): request is Find => 'keys' in request
const isJoin = (request: Asked): request is Join => 'lobby_id' in request

function candidatesOf(book: Book, request: Asked, chosen_id: string | undefined): Attempt['candidates'] {
  const candidates: Attempt['candidates'] = []
  const add = (lobby: Lobby, why: Verdict): void => {
    const { lobby_id, game_mode, region, max_players_normal, max_players_direct } = lobby
    const verdict = lobby_id === chosen_id ? 'chosen' : why
    const player_count = takenSeats(lobby)
    candidates.push({ lobby_id, game_mode, region, player_count, max_players_normal, max_players_direct, verdict })
  }
  if (isJoin(request)) {
    const lobby = book.lobbies.get(request.lobby_id)
    if (lobby !== undefined) add(lobby, joinVerdict(book, lobby, request))
  } else if (isFind(request)) {
    let compared = 0
    const chosen = chosen_id === undefined ? undefined : book.lobbies.get(chosen_id)
    if (chosen !== undefined) add(chosen, 'chosen')
    for (const lobby of book.lobbies.values()) {
      if (++compared > COMPARED_MAX) break
      if (lobby !== chosen) add(lobby, findVerdict(book, lobby, request))
    }
  }
  return candidates.sort((a, b) => VERDICTS.indexOf(a.verdict) - VERDICTS.indexOf(b.verdict))
}

function joinVerdict(book: Book, lobby: Lobby, { is_spectator }: Join): Verdict {
  if (lobby.stop_ms !== null) return 'stopped'
  if (book.isDraining([lobby])) return 'draining'
  if (lobby.is_stalled) return 'stalled'
  if (is_spectator) return hasSpectatorSeat(lobby) ? 'not_best' : 'full'
  return takenSeats(lobby) >= lobby.max_players_direct ? 'full' : 'not_best'
}

/** The reason that is furthest from a fit. */
function findVerdict(book: Book, lobby: Lobby, { keys, tags, is_spectator }: Find): Verdict {
  const isThere = (member: keyof LobbyKey): boolean => keys.some((key) => key[member] === lobby[member])
  if (lobby.stop_ms !== null) return 'stopped'
  if (!isThere('version_id')) return 'other_version'
  if (!isThere('game_mode')) return 'other_game_mode'
  if (!keys.some(({ region, game_mode }) => region === lobby.region && game_mode === lobby.game_mode)) {
    return 'other_region'
  }
  if (book.isDraining([lobby])) return 'draining'
  if (lobby.publicity !== 'public') return 'not_public'
  if (lobby.is_closed && !is_spectator) return 'closed'
  if (lobby.is_stalled) return 'stalled'
  if (!hasTags(lobby, tags)) return 'other_tags'
  if (is_spectator && hasSpectatorSeat(lobby)) return isWatchable(lobby) ? 'not_best' : 'nothing_to_watch'
  if (is_spectator) return 'full'
  return takenSeats(lobby) >= lobby.max_players_normal ? 'full' : 'not_best'
}
