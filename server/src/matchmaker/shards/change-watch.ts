// Callers that wait for a change that concerns an identity or a lobby (concerned.ts). A durable change wakes the caller, which
// then reads the state again. The end of its time and a hang-up wake it as well.
import { ApiError } from '@musterhost/contract'
import { createTimerWhileNeeded } from '../../flow/timer-while-needed.ts'
import type { Change } from '../../journal/changes.ts'
import type { Book } from '../book/state.ts'
import type { ConcernedKeys } from './concerned.ts'
import type { Patience } from './waiters.ts'

/** Waiting callers of a process: all that http/watches.ts and sockets.ts let wait, and those that are just ending. */
const WATCHERS_MAX = 80_000
/** Waiting callers of one identity, its tabs and devices, or of one lobby. */
const KEY_WATCHERS_MAX = 8
/** How often callers whose time is over are woken. */
const TICK_MS = 250

type Waiter = { patience: Pick<Patience, 'deadline_ms' | 'isGone'>; wake: () => void }

export class ChangeWatch {
  readonly #elapsed: () => number
  readonly #concerned: ConcernedKeys
  readonly #waiters = new Map<string, Set<Waiter>>()
  readonly #timer = createTimerWhileNeeded(TICK_MS, () => this.#tick())
  #count = 0

  /** `concerned`: the keys whose watchers a change wakes. */
  constructor(elapsed: () => number, concerned: ConcernedKeys) {
    this.#elapsed = elapsed
    this.#concerned = concerned
  }

  /**
   * Resolves when there may be a change, or the patience is over. To be called before the state is read, so that no change
   * is missed in between. Throws API_NOT_AVAILABLE and API_RATE_LIMIT.
   */
  next(key: string, patience: Waiter['patience']): Promise<void> {
    const own = this.#waiters.get(key) ?? new Set()
    if (this.#count >= WATCHERS_MAX) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 5 })
    if (own.size >= KEY_WATCHERS_MAX) throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s: 5 })
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiter: Waiter = {
      patience,
      wake: () => {
        if (own.delete(waiter)) this.#count--
        if (own.size === 0 && this.#waiters.get(key) === own) this.#waiters.delete(key)
        resolve()
      },
    }
    this.#waiters.set(key, own.add(waiter))
    this.#count++
    this.#timer.need()
    return promise
  }

  /** Called with changes that have become durable. */
  onCommit(book: Book | undefined, changes: readonly Change[]): void {
    if (this.#count === 0 || book === undefined) return
    for (const change of changes) {
      for (const key of this.#concerned(book, change)) this.#wake(key)
    }
  }

  /** Something changed about these keys that is no durable change. */
  wake(keys: Iterable<string>): void {
    if (this.#count === 0) return
    for (const key of keys) this.#wake(key)
  }

  /** After a reload, or because the process is about to stop. */
  wakeAll(): void {
    for (const key of [...this.#waiters.keys()]) this.#wake(key)
  }

  close(): void {
    this.#timer.close()
    this.wakeAll()
  }

  #wake(key: string): void {
    for (const waiter of [...(this.#waiters.get(key) ?? [])]) waiter.wake()
  }

  /** Returns whether any caller still waits. */
  #tick(): boolean {
    const now_ms = this.#elapsed()
    for (const own of [...this.#waiters.values()]) {
      for (const waiter of [...own]) {
        const { deadline_ms, isGone } = waiter.patience
        if (deadline_ms <= now_ms || isGone()) waiter.wake()
      }
    }
    return this.#count > 0
  }
}
