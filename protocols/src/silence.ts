// Watches a server that reports its health in intervals, and calls once for each silence.

/**
 * The longest time between two looks that counts. A machine that was suspended looks late; then the reports of its
 * servers wait to be read, and no server was silent.
 */
const STEP_MS_MAX = 2_000

export type SilenceOptions = {
  /** Until the first report; null: the watch begins with the first report. */
  first_ms: number | null
  /** Between two reports. */
  silence_ms: number
  now: () => number
  /** `silence_ms`: the bound that was passed. `is_first`: no report has come yet. */
  onSilence: (silence_ms: number, is_first: boolean) => void
  /** Between two looks. Default: one second. */
  look_ms?: number
}

export class SilenceWatch {
  readonly #options: SilenceOptions
  readonly #timer: NodeJS.Timeout
  #looked_ts: number
  #silent_ms = 0
  #is_heard = false
  #is_reported = false

  constructor(options: SilenceOptions) {
    this.#options = options
    this.#looked_ts = options.now()
    this.#timer = setInterval(() => this.look(), options.look_ms ?? 1_000)
    this.#timer.unref()
  }

  /** The server has reported. */
  heard(): void {
    this.#silent_ms = 0
    this.#is_heard = true
    this.#is_reported = false
    this.#looked_ts = this.#options.now()
  }

  look(): void {
    const now = this.#options.now()
    this.#silent_ms += Math.min(Math.max(0, now - this.#looked_ts), STEP_MS_MAX)
    this.#looked_ts = now
    const bound_ms = this.#is_heard ? this.#options.silence_ms : this.#options.first_ms
    if (bound_ms === null || this.#is_reported || this.#silent_ms <= bound_ms) return
    this.#is_reported = true
    this.#options.onSilence(bound_ms, !this.#is_heard)
  }

  close(): void {
    clearInterval(this.#timer)
  }
}
