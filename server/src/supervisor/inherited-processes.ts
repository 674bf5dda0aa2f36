// Processes of a role that run on while the supervisor replaces its own program. The new program is not connected to them: it
// ends them by signals, and sees their end in /proc. An edge that has handed everything over ends when it has nothing left.
import { setTimeout as delay } from 'node:timers/promises'
import { isAlive, type ProcessId } from '../node/procfs.ts'

const CHECK_EVERY_MS = 50
/** Between two checks whether they have ended. */
const WATCH_EVERY_MS = 500

export class InheritedProcesses {
  readonly #onEnd: () => void
  readonly #watch: NodeJS.Timeout
  #living: ProcessId[]

  /** `onEnd`: is called when some of them have ended. */
  constructor(processes: readonly ProcessId[], onEnd: () => void) {
    this.#living = processes.filter((one) => isAlive(one))
    this.#onEnd = onEnd
    this.#watch = setInterval(() => this.#check(), WATCH_EVERY_MS).unref()
  }

  pids(): number[] {
    return this.#living.map(({ pid }) => pid)
  }

  /** Resolves when all have ended. They stop in good order, and are killed after `ms_max`. */
  async stop(ms_max: number): Promise<void> {
    this.#signal('SIGTERM')
    for (let waited_ms = 0; this.#living.length > 0 && waited_ms < ms_max; waited_ms += CHECK_EVERY_MS) {
      await delay(CHECK_EVERY_MS)
      this.#check()
    }
    this.kill()
    this.#check()
  }

  kill(): void {
    this.#signal('SIGKILL')
  }

  #check(): void {
    const { length } = this.#living
    this.#living = this.#living.filter((one) => isAlive(one))
    if (this.#living.length === 0) clearInterval(this.#watch)
    if (this.#living.length < length) this.#onEnd()
  }

  #signal(signal: NodeJS.Signals): void {
    for (const { pid } of this.#living) {
      try {
        process.kill(pid, signal)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
      }
    }
  }
}
