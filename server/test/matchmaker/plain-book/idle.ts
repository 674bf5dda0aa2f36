// When a lobby of the plain book becomes due, and the edge reports that this depends on.
import { VERSION } from '../plain-requests.ts'
import { lobbyOf, type PlainBook, type PlainLobby, type PlainPlayer, seatsOf } from './state.ts'

/** Without players, as far as can be known: a server that has reported no player may still have connected ones. */
export const isEmpty = (book: PlainBook, lobby: PlainLobby): boolean =>
  lobby.stopped === null && seatsOf(book, lobby.id).length === 0 && (lobby.has_reported_players || lobby.open === 0)
export const isOutdated = (book: PlainBook): boolean => book.idle.version !== null && book.idle.version !== VERSION
export const isEnding = (book: PlainBook): boolean => book.draining.includes(VERSION) || isOutdated(book)
const emptySince = ({ empty_since, closed_since, has_reported_players }: PlainLobby): number =>
  has_reported_players ? empty_since! : Math.max(empty_since!, closed_since ?? 0)
const graceEnd = (lobby: PlainLobby): number =>
  Math.max(emptySince(lobby) + lobby.plan.idle_grace_ms, lobby.kept_until ?? 0)

/** The empty lobbies that a find can match, of the same game mode and region as the given one. */
export function waitingBeside(book: PlainBook, { plan: { game_mode, region } }: PlainLobby): PlainLobby[] {
  return book.lobbies.filter(
    (lobby) =>
      isEmpty(book, lobby) &&
      lobby.plan.game_mode === game_mode &&
      lobby.plan.region === region &&
      !lobby.closed &&
      !lobby.stalled &&
      lobby.kept_until === null &&
      !lobby.plan.is_custom &&
      lobby.plan.publicity === 'public',
  )
}

/** When the lobby is stopped as idle. Without reports of its server, this waits for the report of the edges. */
export function idleDueOf(book: PlainBook, lobby: PlainLobby): number {
  const due = emptyDueOf(book, lobby)
  return lobby.has_reported_players || due <= book.reported ? due : Number.POSITIVE_INFINITY
}

function emptyDueOf(book: PlainBook, lobby: PlainLobby): number {
  if (!isEmpty(book, lobby)) return Number.POSITIVE_INFINITY
  if (lobby.kept_until !== null) return graceEnd(lobby)
  if (isEnding(book)) return lobby.has_reported_players ? 0 : emptySince(lobby)
  const waiting = waitingBeside(book, lobby)
  if (!waiting.includes(lobby)) return graceEnd(lobby)
  const is_first = waiting.every(
    (other) => other.has_reported_players !== lobby.has_reported_players || graceEnd(other) >= graceEnd(lobby),
  )
  return waiting.length > book.idle.max && is_first ? graceEnd(lobby) : Number.POSITIVE_INFINITY
}

/** Sets how many connections to a lobby the edges report. */
export function setOpen(book: PlainBook, id: string, open: number, now: number): void {
  const lobby = lobbyOf(book, id)
  if (lobby === undefined || lobby.open === open) return
  lobby.open = open
  lobby.closed_since = open === 0 ? now : null
}

export function dueOf(book: PlainBook, of: PlainLobby | PlainPlayer): number {
  if ('lobby' in of) return of.left === null ? of.deadline : Number.POSITIVE_INFINITY
  if (of.stopped !== null) return Number.POSITIVE_INFINITY
  const idle = idleDueOf(book, of)
  return of.ready === null ? Math.min(of.ready_by, idle) : idle
}
