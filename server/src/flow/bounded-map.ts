// A map with a largest number of entries. A new key beyond it removes the entry that was set the longest time ago. For
// values that are made again at little cost; what is read from the database is in a `Cached` (database/cached.ts).

export class BoundedMap<K, V> extends Map<K, V> {
  readonly #entries_max: number

  constructor(entries_max: number) {
    super()
    this.#entries_max = entries_max
  }

  override set(key: K, value: V): this {
    if (!this.delete(key) && this.size >= this.#entries_max) this.delete(this.keys().next().value!)
    return super.set(key, value)
  }

  /** The value of the key, which is made where there is none. */
  getOr(key: K, make: () => V): V {
    const known = this.get(key)
    if (known !== undefined) return known
    const made = make()
    this.set(key, made)
    return made
  }
}
