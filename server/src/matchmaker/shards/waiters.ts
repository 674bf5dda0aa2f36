// Callers of one process that wait for something of a shard. A wait ends when the shard has reported it, when its time is over,
// when the caller hangs up, or when the shard leaves this process.
import { ApiError } from '@musterhost/contract'
import { shardOf } from '../../journal/pages.ts'

/** Callers that wait at once. */
const WAITERS_MAX = 50_000

/** How long a caller waits, by the monotonic clock, and whether it has hung up. */
export type Patience = {
  deadline_ms: number
  isGone: () => boolean
  /** Aborted when isGone() becomes true. Without it, isGone() is called at each tick. */
  hangUpSignal?: () => AbortSignal
}

/** `of`: what the caller waits for. `timeout`: the time is over, or the caller has hung up. */
export type Waiter<How, Of> = {
  namespace_id: string
  of: Of
  patience: Patience
  ended: Promise<How | 'timeout'>
  end: (how: How | 'timeout') => void
  fail: (error: unknown) => void
}

export class Waiters<How, Of> {
  /** Several callers may wait for the same: a repeated request with the same Idempotency-Key does. */
  readonly #waiters = new Map<string, Set<Waiter<How, Of>>>()
  #count = 0

  get count(): number {
    return this.#count
  }

  /** `key`: what ends the wait is found by it. Throws API_NOT_AVAILABLE. */
  protected wait(key: string, namespace_id: string, of: Of, patience: Patience): Waiter<How, Of> {
    if (this.#count >= WAITERS_MAX) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
    const { promise, resolve, reject } = Promise.withResolvers<How | 'timeout'>()
    const waiter: Waiter<How, Of> = {
      ...{ namespace_id, of, patience, ended: promise },
      end: (how) => {
        this.#remove(key, waiter)
        resolve(how)
      },
      fail: (error) => {
        this.#remove(key, waiter)
        reject(error)
      },
    }
    const same = this.#waiters.get(key) ?? new Set()
    this.#waiters.set(key, same.add(waiter))
    this.#count++
    patience.hangUpSignal?.().addEventListener('abort', () => waiter.end('timeout'), { once: true })
    return waiter
  }

  /** A copy, because a wait that ends leaves the set. */
  protected waitersOf(key: string): Waiter<How, Of>[] {
    return [...(this.#waiters.get(key) ?? [])]
  }

  protected waitersIn(shard: number): Waiter<How, Of>[] {
    return this.#all().filter(({ namespace_id }) => shardOf(namespace_id) === shard)
  }

  /** Rejects the waits of a shard. */
  failAll(shard: number, errorOf: () => Error): void {
    for (const waiter of this.waitersIn(shard)) waiter.fail(errorOf())
  }

  /** Ends the waits whose time is over or whose caller has hung up. */
  tick(now_ms: number): void {
    if (this.#count === 0) return
    for (const waiter of this.#all()) {
      const { deadline_ms, isGone } = waiter.patience
      if (deadline_ms <= now_ms || isGone()) waiter.end('timeout')
    }
  }

  endAll(): void {
    for (const waiter of this.#all()) waiter.end('timeout')
  }

  #all(): Waiter<How, Of>[] {
    return [...this.#waiters.values()].flatMap((same) => [...same])
  }

  #remove(key: string, waiter: Waiter<How, Of>): void {
    const same = this.#waiters.get(key)
    if (same?.delete(waiter)) this.#count--
    if (same?.size === 0) this.#waiters.delete(key)
  }
}
