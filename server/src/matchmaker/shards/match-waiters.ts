// Callers whose request waits for a match. A wait ends when the ticket has ended and that is durable.
import type { Change, TicketEnd } from '../../journal/changes.ts'
import type { TicketCall } from '../book/matching/ticket.ts'
import type { Book } from '../book/state.ts'
import { type Patience, type Waiter, Waiters } from './waiters.ts'

/** `lost`: the book knows nothing of the ticket. */
type MatchEnd = TicketEnd | 'lost'
export type MatchWaitEnd = MatchEnd | 'timeout'

type WaitingCall = { ticket_id: string; call: TicketCall }

/** Null: the ticket waits. */
export function endOfMatchWait(book: Book | undefined, ticket_id: string): MatchEnd | null {
  if (book?.players.has(ticket_id) === true) return 'matched'
  return book?.matching.get(ticket_id) === undefined ? 'lost' : null
}

export class MatchWaiters extends Waiters<MatchEnd, WaitingCall> {
  /** Throws API_NOT_AVAILABLE. */
  add(namespace_id: string, ticket_id: string, call: TicketCall, patience: Patience): Waiter<MatchEnd, WaitingCall> {
    return this.wait(ticket_id, namespace_id, { ticket_id, call }, patience)
  }

  onCommit(changes: readonly Change[]): void {
    if (this.count === 0) return
    for (const change of changes) {
      if (change.kind !== 'ticket_ended') continue
      for (const waiter of this.waitersOf(change.player_id)) waiter.end(change.reason)
    }
  }

  /** The books of a shard were read again. They do not know the calls that wait. */
  onReload(bookOf: (namespace_id: string) => Book | undefined, shard: number, now_ms: number): void {
    for (const waiter of this.waitersIn(shard)) {
      const { ticket_id, call } = waiter.of
      const book = bookOf(waiter.namespace_id)
      const how = endOfMatchWait(book, ticket_id)
      if (how !== null) waiter.end(how)
      else book?.matching.attach(ticket_id, call, now_ms)
    }
  }
}
