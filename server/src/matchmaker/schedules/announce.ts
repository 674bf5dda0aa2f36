// An announcement: a line for the standard input of each lobby whose game mode has `standard_input`. Every other server reads
// it with its own lobby (calls/own-lobby.ts).
import type { Context } from '../../context.ts'
import type { Lobby } from '../book/lobby.ts'
import { isInScope, type ScheduleScope } from '../book/schedule-rules.ts'
import type { ScheduleParts } from './parts.ts'
import type { RunEnding } from './runs.ts'

/** Lobbies that one announcement reaches. */
const LOBBIES_MAX = 5_000
/** Lobbies that lines are written to at the same time. */
const AT_ONCE_MAX = 16

/** Resolves with what became of it; null: `signal` has ended it before. `note`: for the log of each lobby. */
export async function announce(
  ctx: Context,
  { books, namespaces }: Pick<ScheduleParts, 'books' | 'namespaces'>,
  { namespace_id, scope, text, note }: { namespace_id: string; scope: ScheduleScope; text: string; note: string },
  signal: AbortSignal,
): Promise<RunEnding | null> {
  const waiting: Lobby[] = []
  let other_count = 0
  for (const lobby of books.book(namespace_id)?.lobbies.values() ?? []) {
    if (lobby.stop_ms !== null || lobby.ready_ms === null || !isInScope(scope, lobby)) continue
    const modes = await namespaces.gameModes(lobby.version_id)
    if (modes.get(lobby.game_mode)?.standard_input === true && waiting.length < LOBBIES_MAX) waiting.push(lobby)
    else other_count++
  }
  let lobby_count = 0
  let failed_count = 0
  const write = async (): Promise<void> => {
    for (let lobby = waiting.pop(); lobby !== undefined && !signal.aborted; lobby = waiting.pop()) {
      const { lobby_id } = lobby
      const result = await ctx.lobby_logs.writeInput(lobby_id, { line: text, note }).catch((error: unknown) => {
        ctx.log.warn({ err: error, namespace_id, lobby_id }, 'an announcement did not reach a lobby')
        return null
      })
      // A server that has ended meanwhile misses nothing.
      if (result === null || result === 'not_read') failed_count++
      else if (result !== 'not_running') lobby_count++
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE_MAX }, write))
  if (signal.aborted) return null
  const message =
    other_count === 0
      ? undefined
      : `${other_count} ${other_count === 1 ? 'lobby takes' : 'lobbies take'} no standard input. Their servers read the text with their own lobby.`
  return { outcome: failed_count > 0 && lobby_count === 0 ? 'failed' : 'done', lobby_count, failed_count, message }
}
