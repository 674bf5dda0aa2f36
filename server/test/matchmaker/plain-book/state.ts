// The state of the plain book, the reference of the model test: lists that are searched from end to end. It is written
// from the decisions of the project, not from the book, so that one misreading of the code cannot be in both.
import type { ErrorCode } from '@musterhost/contract'
import type { RemoveReason, StopReason } from '../../../src/journal/changes.ts'
import type { LobbyPlan } from '../../../src/matchmaker/book/commands.ts'

export type PlainLobby = {
  id: string
  plan: LobbyPlan
  created: number
  ready_by: number
  ready: number | null
  closed: boolean
  stalled: boolean
  state: string | null
  /** Since when the lobby has no players; starts again when an empty lobby stalls. */
  empty_since: number | null
  /** Its server asked that it does not end as idle before this. */
  kept_until: number | null
  stopped: number | null
  reason: StopReason | null
  /** The server of the lobby has reported a player as connected. */
  has_reported_players: boolean
  /** Open connections, as the edges report them; `closed_since`: when the last one was closed. */
  open: number
  closed_since: number | null
  /** Seats that expired while connections were open. */
  expired_while_connected: number
  connections_at_stop: number | null
}

export type PlainPlayer = {
  id: string
  lobby: string
  client: string
  spectator: boolean
  identity: string | null
  /** The player of the leader of the party that took this seat. */
  leader: string | null
  created: number
  deadline: number
  key: string | null
  connected: number | null
  connect_key: string | null
  left: number | null
  reason: RemoveReason | null
  leave_key: string | null
}

/** A client that has solved a captcha. */
export type PlainSolver = { client: string; solved: number; until: number; requests: number }

/** A place kept for a player during verification. */
export type PlainHold = {
  player: string
  client: string
  identity: string | null
  lobby: string
  request: SeatRequest
  action: 'find' | 'join' | 'create'
  until: number
}
/** Members in the order in which they joined. */
export type PlainParty = { id: string; code: string; leader: string; members: PlainMember[]; until: number }
export type PlainMember = { identity: string; client: string }
/** A lobby that is created when one of its holds becomes a seat. */
export type PlainPlan = { id: string; plan: LobbyPlan; made: number }

/** `version`: the deployed version, null when unknown. `max`: idle lobbies kept per game mode and region. */
export type PlainIdle = { version: string | null; max: number }

export type PlainBook = {
  lobbies: PlainLobby[]
  players: PlainPlayer[]
  solvers: PlainSolver[]
  /** Ids of versions. */
  draining: string[]
  idle: PlainIdle
  holds: PlainHold[]
  /** Every plan ever made. */
  plans: PlainPlan[]
  /** Holds that have become seats which may still be undone. */
  seated: PlainHold[]
  parties: PlainParty[]
  /** Every edge has reported its open connections at this time or later. */
  reported: number
}

export function emptyBook(): PlainBook {
  return {
    lobbies: [],
    players: [],
    solvers: [],
    draining: [],
    idle: { version: null, max: 0 },
    holds: [],
    plans: [],
    seated: [],
    parties: [],
    reported: Number.NEGATIVE_INFINITY,
  }
}
export type Outcome = { refused: ErrorCode } | { lobby: string; player: string; is_ready: boolean } | null

/** `member_max`: the limit for the client of each other party member. */
export type SeatRequest = {
  client: string
  key: string | null
  client_max: number
  lobby_max: number
  identity: string | null
  with_party: boolean
  spectator: boolean
  member_max: number
}
export type Ids = { lobby: string; player: string; members: readonly string[] }
export type Entrant = { player: string; client: string; max: number; identity: string | null }

export const refused = (code: ErrorCode): Outcome => ({ refused: code })

export function seatsOf(book: PlainBook, lobby: string, spectator = false): PlainPlayer[] {
  return book.players.filter(
    (player) => player.lobby === lobby && player.left === null && player.spectator === spectator,
  )
}

export function lobbyOf(book: PlainBook, id: string): PlainLobby | undefined {
  return book.lobbies.find((lobby) => lobby.id === id)
}

export function playersOf(book: PlainBook, client: string, spectator: boolean): number {
  const isTheirs = (one: { client: string }): boolean => one.client === client
  const holds = book.holds.filter((hold) => isTheirs(hold) && hold.request.spectator === spectator)
  const seats = book.players.filter((player) => isTheirs(player) && player.left === null)
  return seats.filter((player) => player.spectator === spectator).length + holds.length
}

export function takenIn(book: PlainBook, lobby: string, spectator = false): number {
  const holds = book.holds.filter((hold) => hold.lobby === lobby && hold.request.spectator === spectator)
  return seatsOf(book, lobby, spectator).length + holds.length
}

/** Lobbies that have holds but do not exist yet. */
export function plannedIn(book: PlainBook): PlainPlan[] {
  return book.plans.filter(
    (plan) => lobbyOf(book, plan.id) === undefined && book.holds.some((hold) => hold.lobby === plan.id),
  )
}

export function lobbyCount(book: PlainBook): number {
  return book.lobbies.filter((lobby) => lobby.stopped === null).length + plannedIn(book).length
}
