// Clients that hung up, one after the other. Thousands may do so at once, and each costs up to 0.1 ms: the role
// that works for a lost request learns that too. Other requests are served between two batches.
import { HUNG_UP_AT_ONCE_MAX } from './limits.ts'

export class HangUps<T> {
  /** Not more than there are connections. */
  readonly #waiting: T[] = []
  readonly #end: (client: T) => void
  /** Ended in the current turn of the loop; null: none, and no turn is awaited. */
  #ended_count: number | null = null

  constructor(end: (client: T) => void) {
    this.#end = end
  }

  /** Ends at once what few others precede in this turn of the loop. */
  add(client: T): void {
    if (this.#ended_count === null) {
      this.#ended_count = 0
      setImmediate(() => this.#endWaiting())
    }
    if (this.#ended_count >= HUNG_UP_AT_ONCE_MAX) {
      this.#waiting.push(client)
      return
    }
    this.#ended_count++
    this.#end(client)
  }

  #endWaiting(): void {
    const batch = this.#waiting.splice(0, HUNG_UP_AT_ONCE_MAX)
    this.#ended_count = batch.length === 0 ? null : batch.length
    if (batch.length > 0) setImmediate(() => this.#endWaiting())
    for (const client of batch) this.#end(client)
  }
}
