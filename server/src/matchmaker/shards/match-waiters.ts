// Callers whose request waits for a match. A wait ends when the ticket has ended and that is durable, when the time is over, or
// when the caller hangs up.
import { ApiError } from '@musterhost/contract'
import type { Change, TicketEnd } from '../../journal/changes.ts'
import { shardOf } from '../../journal/pages.ts'
import type { TicketCall } from '../book/matching/ticket.ts'
import type { Book } from '../book/state.ts'
import type { Patience } from './seat-waiters.ts'

/** Calls of one process that wait for a match. */
const WAITERS_MAX = 50_000

/** `timeout`: the time is over, or the caller has hung up. `lost`: the book knows nothing of the ticket. */
export type MatchWaitEnd = TicketEnd | 'timeout' | 'lost'

type MatchWaiter = {
  namespace_id: string
  ticket_id: string
  call: TicketCall
  patience: Patience
  end: (how: MatchWaitEnd) => void
  fail: (error: unknown) => void
}

/** Null: the ticket waits. */
export function endOfMatchWait(book: Book | undefined, ticket_id: string): MatchWaitEnd | null {
  if (book?.players.has(ticket_id) === true) return 'matched'
  return book?.matching.get(ticket_id) === undefined ? 'lost' : null
}

export class MatchWaiters {
  /** By ticket. */
  readonly #waiters = new Map<string, Set<MatchWaiter>>()
  #count = 0

  get count(): number {
    return this.#count
  }

  /** Throws API_NOT_AVAILABLE. `ended` resolves when the wait is over. */
  add(
    namespace_id: string,
    ticket_id: string,
    call: TicketCall,
    patience: Patience,
  ): Pick<MatchWaiter, 'end' | 'fail'> & { ended: Promise<MatchWaitEnd> } {
    if (this.#count >= WAITERS_MAX) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
    const { promise, resolve, reject } = Promise.withResolvers<MatchWaitEnd>()
    const waiter: MatchWaiter = {
      ...{ namespace_id, ticket_id, call, patience },
      end: (how) => {
        this.#remove(waiter)
        resolve(how)
      },
      fail: (error) => {
        this.#remove(waiter)
        reject(error)
      },
    }
    const of_ticket = this.#waiters.get(ticket_id) ?? new Set()
    this.#waiters.set(ticket_id, of_ticket.add(waiter))
    this.#count++
    patience.hangUpSignal?.().addEventListener('abort', () => waiter.end('timeout'), { once: true })
    return { end: waiter.end, fail: waiter.fail, ended: promise }
  }

  onCommit(changes: readonly Change[]): void {
    if (this.#count === 0) return
    for (const change of changes) {
      if (change.kind === 'ticket_ended') this.#endTicket(change.player_id, change.reason)
    }
  }

  /** The books of a shard were read again, which do not know the calls that wait. */
  onReload(bookOf: (namespace_id: string) => Book | undefined, shard: number, now_ms: number): void {
    for (const waiter of this.#all()) {
      const { namespace_id, ticket_id, call } = waiter
      if (shardOf(namespace_id) !== shard) continue
      const book = bookOf(namespace_id)
      const how = endOfMatchWait(book, ticket_id)
      if (how !== null) waiter.end(how)
      else book?.matching.attach(ticket_id, call, now_ms)
    }
  }

  /** Rejects the waits of a shard. */
  failAll(shard: number, errorOf: () => Error): void {
    for (const waiter of this.#all()) if (shardOf(waiter.namespace_id) === shard) waiter.fail(errorOf())
  }

  /** Ends the waits whose time is over or whose caller has hung up. */
  tick(now_ms: number): void {
    if (this.#count === 0) return
    for (const waiter of this.#all()) {
      const { deadline_ms, isGone } = waiter.patience
      if (deadline_ms <= now_ms || isGone()) waiter.end('timeout')
    }
  }

  endAll(): void {
    for (const waiter of this.#all()) waiter.end('timeout')
  }

  #all(): MatchWaiter[] {
    return [...this.#waiters.values()].flatMap((of_ticket) => [...of_ticket])
  }

  #endTicket(ticket_id: string, how: MatchWaitEnd): void {
    for (const waiter of [...(this.#waiters.get(ticket_id) ?? [])]) waiter.end(how)
  }

  #remove(waiter: MatchWaiter): void {
    const of_ticket = this.#waiters.get(waiter.ticket_id)
    if (of_ticket?.delete(waiter)) this.#count--
    if (of_ticket?.size === 0) this.#waiters.delete(waiter.ticket_id)
  }
}
