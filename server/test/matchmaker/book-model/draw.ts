// What a command of the model test works on: both books, and the values that the numbers of its step choose.
import type { PartyMember } from '../../../src/journal/changes.ts'
import type { Decision, LobbyPlan, RequestedSeat, SeatTaken } from '../../../src/matchmaker/book/commands.ts'
import type { Book } from '../../../src/matchmaker/book/state.ts'
import type { Call } from '../plain-book/players.ts'
import type * as plain from '../plain-book/state.ts'
import { CLIENT_PLAYERS_MAX, CLIENTS, IDENTITIES, LOBBIES_MAX, pick, planOf, SEAT_KEYS } from './steps.ts'

export type Ids = { lobby_id: string; player_id: string; member_ids: readonly string[] }
type Books = { book: Book; reference: plain.PlainBook; now_ms: number }

/** Names that begin with `plain_` are the same values in the form that the plain book takes. */
export type CommandInput = Books & {
  actor: number
  choice: number
  ids: Ids
  plain_ids: plain.Ids
  identity: string
  lobby: string
  player_id: string
  /** Mostly the lobby of the player. */
  own_lobby: string
  call_key: string | null
  plain_call: Call
  plan: LobbyPlan
  request: RequestedSeat
  plain_request: plain.SeatRequest
  member: PartyMember
  plain_member: plain.PlainMember
}

/** What the book decided, and what the plain book expects. */
export type Comparison = { decision: Decision<SeatTaken | null>; expected: plain.Outcome }
/** A command that returns null compares nothing of its own. */
export type Command = (input: CommandInput) => Comparison | null

export function drawInput(books: Books, ids: Ids, actor: number, choice: number): CommandInput {
  const { reference, now_ms } = books
  const identity = pick(IDENTITIES, actor >> 10)
  const lobby = drawLobby(reference, actor)
  const player = pick([...reference.players, undefined], choice)
  const player_id = player?.id ?? 'nobody'
  const own_lobby = actor % 5 === 0 ? lobby : (player?.lobby ?? lobby)
  const call_key = pick([null, 'one', 'two'], actor >> 3)
  const request = drawRequest(actor, identity)
  const { client_key } = request
  return {
    ...books,
    actor,
    choice,
    ids,
    plain_ids: { lobby: ids.lobby_id, player: ids.player_id, members: ids.member_ids },
    identity,
    lobby,
    player_id,
    own_lobby,
    call_key,
    plain_call: { player: player_id, lobby: own_lobby, key: call_key },
    plan: planOf(choice),
    request,
    plain_request: plainRequest(request),
    member: { identity_id: identity, client: client_key, address: client_key, user_agent: null, join_ms: now_ms },
    plain_member: { identity, client: client_key },
  }
}

/** Returns a lobby of the book, or an id that no lobby has. */
export function drawLobby(reference: plain.PlainBook, actor: number): string {
  return pick([...reference.lobbies.map((one) => one.id), 'nowhere'], actor)
}

function drawRequest(actor: number, identity: string): RequestedSeat {
  const with_party = (actor >> 12) % 3 === 0
  const is_spectator = !with_party && (actor >> 14) % 3 === 0
  return {
    client_key: pick(CLIENTS, actor),
    seat_key: pick(SEAT_KEYS, actor >> 2),
    client_players_max: pick([0, 1, CLIENT_PLAYERS_MAX, CLIENT_PLAYERS_MAX, CLIENT_PLAYERS_MAX], actor >> 5),
    lobby_count_max: pick([0, 2, LOBBIES_MAX, LOBBIES_MAX], actor >> 8),
    identity_id: with_party || actor % 2 === 0 ? identity : null,
    is_spectator,
    party: with_party ? { playersMaxOf: () => CLIENT_PLAYERS_MAX } : null,
  }
}

function plainRequest(request: RequestedSeat): plain.SeatRequest {
  return {
    client: request.client_key,
    key: request.seat_key,
    client_max: request.client_players_max,
    lobby_max: request.lobby_count_max,
    identity: request.identity_id,
    with_party: request.party !== null,
    spectator: request.is_spectator,
    member_max: CLIENT_PLAYERS_MAX,
  }
}

/** For a decision whose result the plain book does not return. */
export function withoutResult(decision: Decision<unknown>): Decision<null> {
  return 'refused' in decision ? decision : { ...decision, result: null }
}
