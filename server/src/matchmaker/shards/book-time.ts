// Book time: the clock of all books of this process. It starts at the wall clock, or at the time that the books had reached
// if that is later. Where another process serves books, it starts at the time of those. From then on it follows the monotonic
// clock, so that no step of the wall clock ends or extends a seat.
//
// `served_ms` is the book time until which the books of this process are known to have been served. It is written with each
// heartbeat (lease.ts), while all shards of this process write. A load moves every deadline by the time since then (fence.ts),
// so a seat has as much time left after a crash as before it. No clock measures the outage, so no clock can be wrong about it.
import type { ReachedTimes } from './lease.ts'

export class BookTime {
  readonly #now: () => number
  readonly #elapsed: () => number
  #anchor: { ms: number; elapsed_ms: number }
  #served_ms = 0

  constructor({ now, elapsed }: { now: () => number; elapsed: () => number }) {
    this.#now = now
    this.#elapsed = elapsed
    this.#anchor = { ms: Math.trunc(now()), elapsed_ms: elapsed() }
  }

  /** Whole milliseconds; never runs back. */
  now(): number {
    return this.#anchor.ms + Math.trunc(this.#elapsed() - this.#anchor.elapsed_ms)
  }

  /** Begins. To be called before any book is served, and when this process has lost all its shards. Returns the time. */
  begin({ reached_ms, live_ms }: ReachedTimes): number {
    const ms = Math.max(reached_ms, live_ms ?? Math.trunc(this.#now()))
    this.#anchor = { ms, elapsed_ms: this.#elapsed() }
    return ms
  }

  /** Books of another process have reached this time. Its clock may be ahead by the time of a statement. */
  reach(ms: number): void {
    if (ms > this.now()) this.#anchor = { ms, elapsed_ms: this.#elapsed() }
  }

  /** The last book time at which the books are known to have been served. */
  servedMs(): number {
    return this.#served_ms
  }

  /** `served_ms` has been written. */
  noteServed(ms: number): void {
    this.#served_ms = Math.max(this.#served_ms, ms)
  }
}
