// What lobby servers and the platform report about lobbies of the plain book.
import type { StopReason } from '../../../src/journal/changes.ts'
import type { LobbyPlan } from '../../../src/matchmaker/book/commands.ts'
import { isEmpty, isEnding, waitingBeside } from './idle.ts'
import { leave } from './players.ts'
import { newLobby } from './seats.ts'
import { lobbyCount, lobbyOf, type Outcome, type PlainBook, refused, seatsOf } from './state.ts'

export function prepare(
  book: PlainBook,
  request: { plan: LobbyPlan; idle_min: number; lobby_max: number },
  id: string,
  now: number,
): Outcome {
  const lobby = newLobby(request.plan, id, now)
  const { plan } = request
  const counted = { ...lobby, plan: { ...plan, is_custom: false, publicity: 'public' as const } }
  if (isEnding(book) || waitingBeside(book, counted).length >= request.idle_min) return null
  if (lobbyCount(book) >= request.lobby_max) return refused('MATCHMAKER_TOO_MANY_LOBBIES')
  book.lobbies.push(lobby)
  return null
}

export function ready(book: PlainBook, id: string, now: number): Outcome {
  const lobby = lobbyOf(book, id)
  if (lobby === undefined || lobby.stopped !== null) return refused('MATCHMAKER_LOBBY_STOPPED')
  if (lobby.ready !== null) return null
  lobby.ready = now
  for (const player of [...seatsOf(book, id), ...seatsOf(book, id, true)]) {
    if (player.connected === null) player.deadline = now + lobby.plan.player_deadline_ms
  }
  return null
}

export function patchLobby(book: PlainBook, id: string, what: { closed?: boolean; state?: string | null }): Outcome {
  const lobby = lobbyOf(book, id)
  if (lobby === undefined || lobby.stopped !== null) return refused('MATCHMAKER_LOBBY_STOPPED')
  Object.assign(lobby, what)
  return null
}

/** `keep`: for how long; 0: no longer. */
export function changeOwn(
  book: PlainBook,
  id: string,
  { keep, tags }: { keep: number | undefined; tags: Record<string, string> | undefined },
  now: number,
): Outcome {
  const lobby = lobbyOf(book, id)
  if (lobby === undefined || lobby.stopped !== null) return refused('MATCHMAKER_LOBBY_STOPPED')
  if (keep !== undefined) lobby.kept_until = keep === 0 ? null : now + keep
  if (tags !== undefined) lobby.plan = { ...lobby.plan, tags }
  return null
}

export function stall(book: PlainBook, id: string, stalled: boolean, now: number): Outcome {
  const lobby = lobbyOf(book, id)
  if (lobby === undefined || lobby.stopped !== null || lobby.stalled === stalled) return null
  lobby.stalled = stalled
  if (stalled && isEmpty(book, lobby)) lobby.empty_since = now
  return null
}

export function drain(book: PlainBook, version: string, is_draining: boolean): Outcome {
  book.draining = book.draining.filter((other) => other !== version)
  if (is_draining) book.draining.push(version)
  return null
}

export function stop(book: PlainBook, id: string, reason: StopReason, now: number): Outcome {
  const lobby = lobbyOf(book, id)
  if (lobby === undefined || lobby.stopped !== null) return null
  for (const player of [...seatsOf(book, id), ...seatsOf(book, id, true)]) leave(book, player, 'lobby_stopped', now)
  lobby.stopped = now
  lobby.reason = reason
  lobby.connections_at_stop = reason === 'exited' || lobby.open === 0 ? null : lobby.open
  return null
}
