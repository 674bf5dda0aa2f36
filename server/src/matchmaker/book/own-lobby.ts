// What the server of a lobby reports and asks for, beside ready, closed and state: its players, all at once and by their ids;
// that its lobby is kept; and its tags.
import type { Change } from '../../journal/changes.ts'
import type { Decision } from './commands.ts'
import { connected, gone } from './decide.ts'
import { type Lobby, seatsIn } from './lobby.ts'
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

/** `keep_ms`: 0: no longer. Absent members change nothing. */
export function changeOwn(
  book: Book,
  { lobby_id, keep_ms, tags }: { lobby_id: string; keep_ms?: number; tags?: Readonly<Record<string, string>> },
  now_ms: number,
): Decision<{ keep_until_ms: number | null }> {
  const lobby = book.lobbies.get(lobby_id)
  if (lobby === undefined || lobby.stop_ms !== null) return { refused: 'MATCHMAKER_LOBBY_STOPPED' }
  const keep_until_ms = keep_ms === undefined ? lobby.keep_until_ms : keep_ms === 0 ? null : now_ms + keep_ms
  const change: Change = {
    kind: 'lobby_changed',
    lobby_id,
    ...(keep_until_ms !== lobby.keep_until_ms && { keep_until_ms }),
    ...(tags !== undefined && !isSame(tags, lobby.tags) && { tags }),
  }
  const is_new = 'keep_until_ms' in change || 'tags' in change
  return { changes: is_new ? [change] : [], result: { keep_until_ms } }
}

function isSame(a: Lobby['tags'], b: Lobby['tags']): boolean {
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name])
}
