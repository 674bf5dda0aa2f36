// Calls of one lobby, one after the other: a later one never overtakes an earlier one that waits for the platform.

/** Calls that wait at once. */
const CALLS_MAX = 256

export class CallLine {
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #is_closed = false

  /** Runs the call when all before it have ended. Rejects as it does, or when too many wait. */
  run<T>(call: () => Promise<T>): Promise<T> {
    if (this.#is_closed) return Promise.reject(new Error('The endpoint is closed.'))
    if (this.#waiting >= CALLS_MAX)
      return Promise.reject(new Error(`More than ${CALLS_MAX} calls wait. Call again later.`))
    this.#waiting++
    const result = this.#last.then(() => {
      if (this.#is_closed) throw new Error('The endpoint is closed.')
      return call()
    })
    this.#last = result.then(
      () => this.#waiting--,
      () => this.#waiting--,
    )
    return result
  }

  /** Calls that have not begun are dropped. */
  close(): void {
    this.#is_closed = true
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
