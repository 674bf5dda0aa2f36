// The players of a lobby as its server reports them, all at once and by their ids.
import type { Change } from '../../journal/changes.ts'
import type { Decision } from './commands.ts'
import { connected, gone } from './decide.ts'
import { seatsIn } from './lobby.ts'
import type { Book } from './state.ts'

/** Connects players who are new in the list, and frees the seats of connected players who are missing. Returns ids without a seat. */
export function setPlayers(
  book: Book,
  { lobby_id, player_ids }: { lobby_id: string; player_ids: readonly string[] },
  now_ms: number,
): Decision<string[]> {
  const lobby = book.lobbies.get(lobby_id)
  if (lobby === undefined || lobby.stop_ms !== null) return { refused: 'MATCHMAKER_LOBBY_STOPPED' }
  if (lobby.ready_ms === null) return { refused: 'MATCHMAKER_LOBBY_NOT_STARTED' }
  const reported = new Set(player_ids)
  const changes: Change[] = []
  const unknown: string[] = []
  for (const player_id of reported) {
    const player = book.players.get(player_id)
    if (player?.lobby_id === lobby_id && player.connect_ms !== null && player.remove_ms === null) continue
    const decision = connected(book, { player_id, lobby_id, connect_key: null }, now_ms)
    if ('refused' in decision) unknown.push(player_id)
    else changes.push(...decision.changes)
  }
  for (const { player_id } of seatsIn(lobby)) {
    if (reported.has(player_id)) continue
    const decision = gone(book, { player_id, lobby_id }, now_ms)
    if (!('refused' in decision)) changes.push(...decision.changes)
  }
  return { changes, result: unknown }
}
