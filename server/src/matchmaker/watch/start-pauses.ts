// Pauses after starts that failed in a row: 1 s, then twice as long each time, up to 5 min. A success ends them. Idle lobbies
// (idle-lobbies.ts) and requests for seats (failed-starts.ts) have separate ones.
import { BoundedMap } from '../../flow/bounded-map.ts'

export const PAUSE_MS_FIRST = 1_000
/** Longest pause after a failed start; each pause is twice the one before. */
const PAUSE_MS_MAX = 5 * 60_000
/** Beyond it the key with the oldest last failure is removed. */
const KEYS_MAX = 10_000

/** `begin_ms`: when the last failure was counted. `last`: what is known of it. */
export type StartPause<T> = { failure_count: number; begin_ms: number; until_ms: number; last: T }

export class StartPauses<T> {
  readonly #now: () => number
  readonly #free_failures: number
  readonly #pauses = new BoundedMap<string, StartPause<T>>(KEYS_MAX)

  /** `free_failures`: failures in a row before pauses begin. */
  constructor(now: () => number, free_failures: number) {
    this.#now = now
    this.#free_failures = free_failures
  }

  /** Counts a failure, and returns the pause that begins with it. */
  failed(key: string, last: T): StartPause<T> {
    const failure_count = (this.#pauses.get(key)?.failure_count ?? 0) + 1
    const begin_ms = this.#now()
    const doublings = failure_count - this.#free_failures - 1
    const pause_ms = doublings < 0 ? 0 : Math.min(PAUSE_MS_MAX, PAUSE_MS_FIRST * 2 ** doublings)
    const pause = { failure_count, begin_ms, until_ms: begin_ms + pause_ms, last }
    this.#pauses.set(key, pause)
    return pause
  }

  isEmpty(): boolean {
    return this.#pauses.size === 0
  }

  get(key: string): StartPause<T> | undefined {
    return this.#pauses.get(key)
  }

  /** How much of the pause is left. */
  remainingMs(key: string): number {
    return Math.max(0, (this.#pauses.get(key)?.until_ms ?? 0) - this.#now())
  }

  succeeded(key: string): void {
    this.#pauses.delete(key)
  }

  /** Forgets all keys that begin with this. */
  forget(prefix: string): void {
    for (const key of this.#pauses.keys()) if (key.startsWith(prefix)) this.#pauses.delete(key)
  }
}
