// How a planned restart, or a drain at its deadline, ends lobbies.
import type { Change } from '../../journal/changes.ts'
import type { Decision } from './commands.ts'
import type { Lobby } from './lobby.ts'
import { grant } from './placement.ts'
import { isInScope, type ScheduleScope } from './schedule-rules.ts'

/** Which lobbies end: those that were created before `begin_ms`. */
export type PlannedEnds = ScheduleScope & { begin_ms: number }

/** Lobbies that a restart or a drain is to end, and that have not ended. */
export function lobbiesToEnd(lobbies: Iterable<Lobby>, { begin_ms, ...scope }: PlannedEnds): Lobby[] {
  const found: Lobby[] = []
  for (const lobby of lobbies) {
    if (lobby.stop_ms === null && lobby.create_ms < begin_ms && isInScope(scope, lobby)) found.push(lobby)
  }
  return found
}

export function isEmpty({ players, held_count, connection_count }: Lobby): boolean {
  return players.size + held_count + connection_count === 0
}

/** Ends the lobbies without players, or all of them, and lets the others take no new players. Returns how many have ended. */
export function endLobbies(lobbies: readonly Lobby[], which: 'empty' | 'all', now_ms: number): Decision<number> {
  const changes: Change[] = []
  let ended_count = 0
  for (const lobby of lobbies) {
    const { lobby_id, stop_ms, is_closed, connection_count } = lobby
    if (stop_ms !== null) continue
    if (which === 'all' || isEmpty(lobby)) {
      const open = connection_count === 0 ? {} : { open_connections: connection_count }
      changes.push({ kind: 'lobby_stopped', lobby_id, ms: now_ms, reason: 'requested', ...open })
      ended_count++
    } else if (!is_closed) changes.push({ kind: 'lobby_closed', lobby_id, is_closed: true })
  }
  return grant(ended_count, ...changes)
}
