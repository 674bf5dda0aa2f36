// Writes the lobby's state behind the calls of its server. Only the last state is written, and not too often.
import type { ProtocolLobby } from '../lobby.ts'
import { callErrorOf } from './call-error.ts'

/** Between two writes. */
const WRITE_INTERVAL_MS = 500
const RETRY_MS = 5000
/** Writes of one state before it is given up. The next change writes again. */
const ATTEMPTS_MAX = 20

export class SavedState {
  readonly #lobby: ProtocolLobby
  readonly #onDue: () => void
  #waiting: { state: unknown } | null = null
  #is_writing = false
  #attempts = 0
  #next_ts = 0

  /** `onDue`: called when `due_ts` has changed. */
  constructor(lobby: ProtocolLobby, onDue: () => void) {
    this.#lobby = lobby
    this.#onDue = onDue
  }

  /** When `write` should be called; null: there is nothing to write. */
  get due_ts(): number | null {
    return this.#waiting === null || this.#is_writing ? null : this.#next_ts
  }

  /** Begins the write, or leaves it to a later call of `write`. */
  set(state: unknown): void {
    this.#waiting = { state }
    this.#attempts = 0
    this.write()
  }

  write(): void {
    const waiting = this.#waiting
    if (waiting === null || this.#is_writing) return
    if (this.#lobby.now() >= this.#next_ts) void this.#write(waiting)
    else this.#onDue()
  }

  async #write(waiting: { state: unknown }): Promise<void> {
    this.#is_writing = true
    this.#waiting = null
    this.#attempts++
    let wait_ms = WRITE_INTERVAL_MS
    try {
      await this.#lobby.setState(waiting.state)
    } catch (error) {
      const refusal = callErrorOf(error, (line) => this.#lobby.log(line))
      if (refusal.is_transient && this.#attempts < ATTEMPTS_MAX) {
        this.#waiting ??= waiting
        wait_ms = RETRY_MS
      } else this.#lobby.log(`agones: labels, annotations, counters and lists could not be saved: ${refusal.message}`)
    }
    this.#next_ts = this.#lobby.now() + wait_ms
    this.#is_writing = false
    this.#onDue()
  }
}
