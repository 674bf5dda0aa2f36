// What requests wait for, as streams of events show it. All of it is in memory, and nothing is computed for a request that no stream
// shows. Streams ask by time: a request whose numbers change often has the newest, and no list of earlier ones.
import type { MatchWait } from '@musterhost/contract'
import { progressOf } from '../../book/matching/find-match.ts'
import type { Ticket } from '../../book/matching/ticket.ts'
import type { Book } from '../../book/state.ts'
import { matchWaitOf } from './match-wait.ts'
import type { RecentWaits } from './recent-waits.ts'

/** How long a view holds: the members of a party share it. */
const VIEW_MS = 1_000
/** Looks of all streams of a process together. Each compares a request with up to 128 others. */
const LOOKS_PER_SECOND_MAX = 500

/** `ms`: the book time at which it was true. */
export type WaitView = { ms: number; match_wait: MatchWait }

export class WaitViews {
  readonly #recent_waits: RecentWaits
  readonly #views = new WeakMap<Ticket, WaitView>()
  #stream_count = 0

  constructor(recent_waits: RecentWaits) {
    this.#recent_waits = recent_waits
  }

  /** Null: the ticket cannot be matched at the moment, because no call waits for it. */
  viewOf(namespace_id: string, book: Book, ticket: Ticket, now_ms: number): WaitView | null {
    const known = this.#views.get(ticket)
    if (known !== undefined && now_ms - known.ms < VIEW_MS) return known
    const progress = progressOf(book, ticket.player_id, now_ms)
    if (progress === null) return null
    const usual_wait_ms = this.#recent_waits.median(namespace_id, ticket.game_mode, now_ms)
    const view = { ms: now_ms, match_wait: matchWaitOf(ticket.terms!.rules, progress, usual_wait_ms) }
    this.#views.set(ticket, view)
    return view
  }

  /** How long a stream sleeps that looks every `every_ms`: longer while many do. */
  pauseMs(every_ms: number): number {
    return Math.max(every_ms, (this.#stream_count * 1_000) / LOOKS_PER_SECOND_MAX)
  }

  /** A stream shows a request that waits, until `work` has settled. */
  async during(work: Promise<void>): Promise<void> {
    this.#stream_count++
    try {
      await work
    } finally {
      this.#stream_count--
    }
  }
}
