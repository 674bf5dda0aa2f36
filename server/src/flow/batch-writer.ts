// Gathers items in memory and writes them in batches, so that no request waits for the write. Items that arrive faster than
// they are written, and batches whose write fails, are dropped and counted. Without items there is no timer.

export type BatchWriterOptions<T> = {
  /** From the first item of a batch to its write. */
  every_ms: number
  /** Items in memory; one more is dropped. */
  items_max: number
  /** Receives at least one item. What it throws is reported to `onFailure`. */
  write: (batch: readonly T[]) => Promise<void>
  /** `count`: how many arrived while the memory was full, since the last batch. */
  onDropped: (count: number) => void
  onFailure: (error: unknown, count: number) => void
}

export class BatchWriter<T> {
  readonly #options: BatchWriterOptions<T>
  #timer: NodeJS.Timeout | null = null
  #items: T[] = []
  #dropped_count = 0
  #writing = Promise.resolve()

  constructor(options: BatchWriterOptions<T>) {
    this.#options = options
  }

  add(item: T): void {
    if (this.#items.length < this.#options.items_max) this.#items.push(item)
    else this.#dropped_count++
    this.#timer ??= setTimeout(() => void this.flush(), this.#options.every_ms)
  }

  /** Resolves when all items added so far have been written, or could not be. Writes never overlap. */
  flush(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write())
    return this.#writing
  }

  async #write(): Promise<void> {
    const { write, onDropped, onFailure } = this.#options
    this.#stopTimer()
    if (this.#dropped_count > 0) onDropped(this.#dropped_count)
    this.#dropped_count = 0
    const batch = this.#items
    if (batch.length === 0) return
    this.#items = []
    try {
      await write(batch)
    } catch (error) {
      onFailure(error, batch.length)
    }
  }

  /** Writes what is left. */
  async close(): Promise<void> {
    await this.flush()
    this.#stopTimer()
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }
}
