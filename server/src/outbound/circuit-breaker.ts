// Leaves a server alone that keeps failing. Closed: every call is made. After a run of failures it is open: calls are
// refused at once, except for a probe now and then. The first call that succeeds closes it again. The caller reports how
// its call ended; time is the monotonic clock's.
import assert from 'node:assert'

export type BreakerRules = {
  /** Failures in a row that open it. */
  failures_max: number
  /** How long it refuses calls after it was opened, and after each probe began. */
  open_ms: number
}

/** A call that was let through. To be ended once, in one of these ways, or not at all when its end says nothing. */
export type BreakerCall = {
  /** Returns whether this has closed the breaker. */
  succeeded: () => boolean
  /** Returns whether this has opened the breaker. */
  failed: () => boolean
}

export class CircuitBreaker {
  readonly #rules: BreakerRules
  readonly #elapsed: () => number
  #failures = 0
  #refuses_until_ms = 0
  /** Counts successes: a call that began before the last one says nothing of how the server is now. */
  #successes = 0

  constructor(rules: BreakerRules, elapsed: () => number) {
    assert(rules.failures_max >= 1 && rules.open_ms > 0)
    this.#rules = rules
    this.#elapsed = elapsed
  }

  isOpen(): boolean {
    return this.#failures >= this.#rules.failures_max
  }

  /** Milliseconds until a call may be made; 0: now. */
  waitMs(): number {
    return this.isOpen() ? Math.max(0, this.#refuses_until_ms - this.#elapsed()) : 0
  }

  /** Null: no call may be made now. A call that is let through while the breaker is open is a probe. */
  enter(): BreakerCall | null {
    if (this.waitMs() > 0) return null
    if (this.isOpen()) this.#refuse()
    const successes = this.#successes
    return {
      succeeded: () => {
        const was_open = this.isOpen()
        this.#successes++
        this.#failures = 0
        return was_open
      },
      failed: () => {
        if (successes !== this.#successes) return false
        this.#failures++
        // Calls that were under way when it was opened, and probes, do not put off the next probe.
        const has_opened = this.#failures === this.#rules.failures_max
        if (has_opened) this.#refuse()
        return has_opened
      },
    }
  }

  #refuse(): void {
    this.#refuses_until_ms = this.#elapsed() + this.#rules.open_ms
  }
}
