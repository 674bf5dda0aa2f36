// Who waits now, for developers who ask: numbers by game mode, and the tickets that have waited longest. It reads each ticket of
// the namespace once, and changes nothing.
import type { Matching } from './matching.ts'
import type { MatchableTicket } from './queue.ts'
import type { Ticket } from './ticket.ts'

/** `away_count`: tickets that cannot be matched now. The other members do not count them. */
export type WaitingCounts = {
  ticket_count: number
  player_count: number
  away_count: number
  oldest: MatchableTicket | null
}

export function countWaiting(matching: Matching): Map<string, WaitingCounts> {
  const by_mode = new Map<string, WaitingCounts>()
  for (const ticket of matching.all()) {
    let counts = by_mode.get(ticket.game_mode)
    if (counts === undefined) {
      counts = { ticket_count: 0, player_count: 0, away_count: 0, oldest: null }
      by_mode.set(ticket.game_mode, counts)
    }
    if (!isMatchable(ticket)) {
      counts.away_count++
      continue
    }
    counts.ticket_count++
    counts.player_count += ticket.players.length
    if (counts.oldest === null || isOlder(ticket, counts.oldest)) counts.oldest = ticket
  }
  return by_mode
}

/** The tickets that have waited longest, the oldest first. `game_mode`: null: of all game modes. */
export function oldestWaiting(matching: Matching, game_mode: string | null, count_max: number): MatchableTicket[] {
  const oldest: MatchableTicket[] = []
  for (const ticket of matching.all()) {
    if (!isMatchable(ticket) || (game_mode !== null && ticket.game_mode !== game_mode)) continue
    const last = oldest.at(-1)
    if (oldest.length >= count_max && (last === undefined || !isOlder(ticket, last))) continue
    // Tickets come almost in the order of their age, so the search begins at the end.
    oldest.splice(oldest.findLastIndex((other) => isOlder(other, ticket)) + 1, 0, ticket)
    if (oldest.length > count_max) oldest.pop()
  }
  return oldest
}

function isMatchable(ticket: Ticket): ticket is MatchableTicket {
  return ticket.candidate !== null
}

function isOlder(a: Ticket, b: Ticket): boolean {
  return a.create_ms === b.create_ms ? a.player_id < b.player_id : a.create_ms < b.create_ms
}
