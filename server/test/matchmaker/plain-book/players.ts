// Players of the plain book who connect and leave.
import type { RemoveReason } from '../../../src/journal/changes.ts'
import { lobbyOf, type Outcome, type PlainBook, type PlainPlayer, refused, seatsOf } from './state.ts'

const EIGHT_HOURS_MS = 28_800_000

export type Call = { player: string; lobby: string; key: string | null }

export function connected(book: PlainBook, call: Call, now: number): Outcome {
  const player = book.players.find((other) => other.id === call.player)
  if (player === undefined) return refused('MATCHMAKER_PLAYER_REMOVED')
  if (player.lobby !== call.lobby) return refused('MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY')
  if (call.key !== null && call.key === player.connect_key) return null
  if (player.reason === 'expired') return refused('MATCHMAKER_PLAYER_REGISTRATION_EXPIRED')
  if (player.left !== null) return refused('MATCHMAKER_PLAYER_REMOVED')
  if (player.connected !== null) return refused('MATCHMAKER_PLAYER_ALREADY_CONNECTED')
  if (lobbyOf(book, player.lobby)?.ready === null) return refused('MATCHMAKER_LOBBY_NOT_STARTED')
  lobbyOf(book, player.lobby)!.has_reported_players = true
  player.connected = now
  player.deadline = now + EIGHT_HOURS_MS
  player.connect_key = call.key
  return null
}

export function disconnected(book: PlainBook, call: Call & { hold?: number }, now: number): Outcome {
  const player = book.players.find((other) => other.id === call.player)
  if (player === undefined) return null
  if (player.lobby !== call.lobby) return refused('MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY')
  if (player.left !== null || (call.key !== null && call.key === player.leave_key)) return null
  const { hold = 0 } = call
  if (hold === 0) leave(book, player, 'disconnected', now, call.key)
  else Object.assign(player, { connected: null, deadline: now + hold, leave_key: call.key })
  return null
}

export function expel(book: PlainBook, call: Omit<Call, 'key'>, now: number): Outcome {
  const player = book.players.find((other) => other.id === call.player && other.lobby === call.lobby)
  if (player !== undefined && player.left === null) leave(book, player, 'requested', now)
  return null
}

export function release(book: PlainBook, id: string, now: number): Outcome {
  const player = book.players.find((other) => other.id === id)
  if (player === undefined || player.left !== null || player.connected !== null) return null
  if (player.leader === null) leave(book, player, 'unanswered', now)
  else if (lobbyOf(book, player.lobby)?.ready === null) {
    for (const one of seatsOf(book, player.lobby)) if (one.leader === id) leave(book, one, 'unanswered', now)
  }
  return null
}

export function leave(
  book: PlainBook,
  player: PlainPlayer,
  reason: RemoveReason,
  now: number,
  key: string | null = null,
): void {
  player.left = now
  player.reason = reason
  player.leave_key = key
  if (!player.spectator && seatsOf(book, player.lobby).length === 0) lobbyOf(book, player.lobby)!.empty_since = now
}
