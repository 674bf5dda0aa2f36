// A request that waits for a match, as the book keeps it.
import type { Candidate, MatchRules } from '@musterhost/contract/matching'
import type { TicketEnd, TicketRecord } from '../../../journal/changes.ts'
import type { LobbyPlan } from '../commands.ts'

/** What a call brings that is in no journal. `lobby_id`: of the lobby that a match may start. */
export type TicketTerms = {
  rules: MatchRules
  /** A plan for each acceptable region. */
  plans: readonly LobbyPlan[]
  lobby_count_max: number
  lobby_id: string
}

/** One object for each call. Two calls with the same Idempotency-Key wait for the same ticket. */
export type TicketCall = { terms: TicketTerms }

/**
 * `candidate`: the ticket for the search; null: it cannot be matched now, because no call has waited for it since the book was
 * read, or the last one has hung up. `due_ms`: when it is checked again. `is_provisional`: it is tried out and in no journal.
 */
export type Ticket = TicketRecord & {
  calls: Set<TicketCall>
  terms: TicketTerms | null
  candidate: Candidate | null
  due_ms: number
  is_provisional: boolean
  /** Another version was deployed since. */
  is_outdated: boolean
  end: { ms: number; reason: TicketEnd } | null
}

/** Tickets that may be matched with each other, apart from their rules. */
export function queueOf({
  version_id,
  game_mode,
  tags,
}: Pick<TicketRecord, 'version_id' | 'game_mode' | 'tags'>): string {
  const pairs = Object.entries(tags)
  if (pairs.length === 0) return `${version_id}\n${game_mode}`
  return `${version_id}\n${game_mode}\n${JSON.stringify(pairs.sort(([a], [b]) => (a < b ? -1 : 1)))}`
}
