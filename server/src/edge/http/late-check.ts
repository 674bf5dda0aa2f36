// Ends what is late, at each tick. Thousands may be late at once: other requests are served between two batches.
import { LATE_ENDED_AT_ONCE_MAX } from '../limits.ts'
import type { Ticks } from './ticks.ts'

export class LateCheck<T> {
  readonly #all: ReadonlySet<T>
  /** Returns whether the member was late: ending it costs more than the check. */
  readonly #endLate: (member: T) => boolean
  /** The rest of the members that the current check has to visit; null: no check is running. */
  #unchecked: Iterator<T> | null = null

  constructor(ticks: Ticks, all: ReadonlySet<T>, endLate: (member: T) => boolean) {
    this.#all = all
    this.#endLate = endLate
    ticks.on(() => this.#checkAll())
  }

  #checkAll(): void {
    if (this.#unchecked !== null) return
    this.#unchecked = this.#all.values()
    this.#checkBatch()
  }

  #checkBatch(): void {
    const unchecked = this.#unchecked!
    let ended_count = 0
    for (let next = unchecked.next(); !next.done; next = unchecked.next()) {
      if (!this.#endLate(next.value) || ++ended_count < LATE_ENDED_AT_ONCE_MAX) continue
      setImmediate(() => this.#checkBatch())
      return
    }
    this.#unchecked = null
  }
}
