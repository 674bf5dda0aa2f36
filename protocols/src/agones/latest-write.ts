// Writes a value to the platform behind the calls of the server. Only the latest value is written, and not too often.
import type { ProtocolLobby } from '../lobby.ts'
import { callErrorOf } from './call-error.ts'

/** Between two writes. */
const WRITE_INTERVAL_MS = 500
const RETRY_MS = 5000
/** Writes of one value before it is given up. The next change writes again. */
const ATTEMPTS_MAX = 20

/** `what`: the subject of the line for the log when the platform refuses. */
export type LatestWriteOptions<T> = { what: string; write: (value: T) => Promise<void>; onDue: () => void }

export class LatestWrite<T> {
  readonly #lobby: ProtocolLobby
  readonly #options: LatestWriteOptions<T>
  #waiting: { value: T } | null = null
  #is_writing = false
  #attempts = 0
  #next_ts = 0

  /** `onDue`: called when `due_ts` has changed. */
  constructor(lobby: ProtocolLobby, options: LatestWriteOptions<T>) {
    this.#lobby = lobby
    this.#options = options
  }

  /** When `write` should be called; null: there is nothing to write. */
  get due_ts(): number | null {
    return this.#waiting === null || this.#is_writing ? null : this.#next_ts
  }

  /** Begins the write, or leaves it to a later call of `write`. */
  set(value: T): void {
    this.#waiting = { value }
    this.#attempts = 0
    this.write()
  }

  write(): void {
    const waiting = this.#waiting
    if (waiting === null || this.#is_writing) return
    if (this.#lobby.now() >= this.#next_ts) void this.#write(waiting)
    else this.#options.onDue()
  }

  async #write(waiting: { value: T }): Promise<void> {
    const { what, write, onDue } = this.#options
    this.#is_writing = true
    this.#waiting = null
    this.#attempts++
    let wait_ms = WRITE_INTERVAL_MS
    try {
      await write(waiting.value)
    } catch (error) {
      const refusal = callErrorOf(error, (line) => this.#lobby.log(line))
      if (refusal.is_transient && this.#attempts < ATTEMPTS_MAX) {
        this.#waiting ??= waiting
        wait_ms = RETRY_MS
      } else this.#lobby.log(`agones: ${what} could not be saved: ${refusal.message}`)
    }
    this.#next_ts = this.#lobby.now() + wait_ms
    this.#is_writing = false
    onDue()
  }
}
