// A bounded memory in front of a query. A value is used until its age is over, or until it is expired because the database
// has announced a change. Callers that ask for the same key at the same time share one read. While the database cannot be
// read, a value that was known is used on.
import { LRUCache } from 'lru-cache'

export type CachedOptions<T> = {
  /** Keys in memory; the key that was used the longest time ago is forgotten first. */
  entries_max: number
  /** The monotonic clock, in milliseconds. */
  elapsed: () => number
  /** Milliseconds for which a value is used without being read again; null: it is not remembered at all. */
  ageOf: (value: T) => number | null
  /** A value could not be read again, and the old one is used. */
  onStale?: (error: unknown, key: string) => void
}

type Entry<T> = { value: T; until_ms: number }

export class Cached<T> {
  readonly #options: CachedOptions<T>
  readonly #entries: LRUCache<string, Entry<T>>
  readonly #reads = new Map<string, Promise<T>>()

  constructor(options: CachedOptions<T>) {
    this.#options = options
    this.#entries = new LRUCache({ max: options.entries_max })
  }

  /**
   * The value at once where it is fresh, which costs no promise; else a read, shared by all who ask meanwhile. Rejects with
   * the error of `read` where no value was known.
   */
  get(key: string, read: () => Promise<T>): T | Promise<T> {
    const entry = this.#entries.get(key)
    if (entry === undefined) return this.#read(key, read)
    if (this.#options.elapsed() < entry.until_ms) return entry.value
    return this.#read(key, read).catch((error: unknown) => {
      this.#options.onStale?.(error, key)
      return entry.value
    })
  }

  /** The value that is known, fresh or not. */
  peek(key: string): T | undefined {
    return this.#entries.peek(key)?.value
  }

  /** Whether get() would return at once. */
  isFresh(key: string): boolean {
    const entry = this.#entries.peek(key)
    return entry !== undefined && this.#options.elapsed() < entry.until_ms
  }

  #read(key: string, read: () => Promise<T>): Promise<T> {
    const under_way = this.#reads.get(key)
    if (under_way !== undefined) return under_way
    const promise = read()
      .then((value) => {
        // A read that began before a change may have seen the old value: it is returned, and not remembered.
        if (this.#reads.get(key) === promise) this.#remember(key, value)
        return value
      })
      .finally(() => {
        if (this.#reads.get(key) === promise) this.#reads.delete(key)
      })
    this.#reads.set(key, promise)
    return promise
  }

  #remember(key: string, value: T): void {
    const age_ms = this.#options.ageOf(value)
    if (age_ms === null) this.#entries.delete(key)
    else this.#entries.set(key, { value, until_ms: this.#options.elapsed() + age_ms })
  }

  /** The key is read again at its next use. Its old value is used only while the database cannot be read. */
  expire(key: string): void {
    const entry = this.#entries.peek(key)
    if (entry !== undefined) entry.until_ms = Number.NEGATIVE_INFINITY
    this.#reads.delete(key)
  }

  expireAll(): void {
    for (const entry of this.#entries.values()) entry.until_ms = Number.NEGATIVE_INFINITY
    this.#reads.clear()
  }

  forget(key: string): void {
    this.#entries.delete(key)
    this.#reads.delete(key)
  }

  clear(): void {
    this.#entries.clear()
    this.#reads.clear()
  }
}
