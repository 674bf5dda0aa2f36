// Streams of the game server's object: each begins with the present one, and ends with the lobby.
import { CallError } from './call-error.ts'

/** Watches of one lobby at once. */
const WATCHERS_MAX = 8
/** Objects that wait for a slow reader. Beyond them it misses the oldest. */
const QUEUE_MAX = 16

type Watcher<T> = { queue: T[]; wake: (() => void) | null }

export class Watchers<T> {
  readonly #watchers = new Set<Watcher<T>>()
  #is_closed = false

  get count(): number {
    return this.#watchers.size
  }

  send(object: T): void {
    for (const watcher of this.#watchers) {
      watcher.queue.push(object)
      if (watcher.queue.length > QUEUE_MAX) watcher.queue.shift()
      watcher.wake?.()
    }
  }

  close(): void {
    this.#is_closed = true
    for (const { wake } of this.#watchers) wake?.()
  }

  /** Throws at once when there are too many. Ends when the signal aborts. */
  watch(first: T, signal: AbortSignal): AsyncGenerator<T> {
    if (this.#watchers.size >= WATCHERS_MAX)
      throw new CallError('RESOURCE_EXHAUSTED', `a server has at most ${WATCHERS_MAX} watches at once`)
    const watcher: Watcher<T> = { queue: [first], wake: null }
    if (!signal.aborted) this.#watchers.add(watcher)
    signal.addEventListener('abort', () => {
      this.#watchers.delete(watcher)
      watcher.wake?.()
    })
    return this.#read(watcher, signal)
  }

  async *#read(watcher: Watcher<T>, signal: AbortSignal): AsyncGenerator<T> {
    try {
      while (!signal.aborted) {
        const object = watcher.queue.shift()
        if (object !== undefined) yield object
        else if (this.#is_closed) return
        else await new Promise<void>((resolve) => (watcher.wake = resolve))
        watcher.wake = null
      }
    } finally {
      this.#watchers.delete(watcher)
    }
  }
}
