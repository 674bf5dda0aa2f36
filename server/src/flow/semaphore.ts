// Bounds how many pieces of work run at once in this process, and how many wait for one of them to end. Those that wait are
// served in the order of their arrival.

export type SemaphoreOptions = {
  at_once_max: number
  waiting_max: number
}

export class Semaphore {
  readonly #waiting_max: number
  #free_count: number
  /** In the order of their arrival. */
  readonly #waiting = new Set<() => void>()

  constructor({ at_once_max, waiting_max }: SemaphoreOptions) {
    this.#free_count = at_once_max
    this.#waiting_max = waiting_max
  }

  get has_free_slot(): boolean {
    return this.#free_count > 0
  }

  /** Waits for a place until `signal` aborts. A caller that has `acquired` a place must release it. */
  async acquire(signal: AbortSignal | null = null): Promise<'acquired' | 'full' | 'aborted'> {
    if (this.#free_count > 0) {
      this.#free_count--
      return 'acquired'
    }
    if (this.#waiting.size >= this.#waiting_max) return 'full'
    if (signal?.aborted) return 'aborted'
    const { promise, resolve } = Promise.withResolvers<void>()
    const wake = (): void => resolve()
    this.#waiting.add(wake)
    signal?.addEventListener('abort', wake, { once: true })
    await promise
    signal?.removeEventListener('abort', wake)
    // release() has removed it, and has passed its place on.
    return this.#waiting.delete(wake) ? 'aborted' : 'acquired'
  }

  release(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#free_count++
      return
    }
    this.#waiting.delete(next)
    next()
  }
}
