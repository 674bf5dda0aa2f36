// A list that is always in order. Where an item belongs is found by halves; to make or close its gap moves what is
// behind it, which is one copy of memory.

export type Sorted<T> = {
  /** Does nothing when it is in already. */
  add: (item: T) => void
  /** Does nothing when it is not in. */
  remove: (item: T) => void
  /** How many items come before this one, which need not be in. */
  indexOf: (item: T) => number
  at: (index: number) => T | undefined
  size: () => number
}

/** `isBefore` is a strict order of all items that never changes while they are in. */
export function createSorted<T>(isBefore: (a: T, b: T) => boolean): Sorted<T> {
  const items: T[] = []

  function indexOf(item: T): number {
    // New items mostly belong at the end.
    if (items.length === 0 || isBefore(items.at(-1)!, item)) return items.length
    let low = 0
    let high = items.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (isBefore(items[middle]!, item)) low = middle + 1
      else high = middle
    }
    return low
  }

  return {
    add(item) {
      const index = indexOf(item)
      if (items[index] !== item) items.splice(index, 0, item)
    },
    remove(item) {
      const index = indexOf(item)
      if (items[index] === item) items.splice(index, 1)
    },
    indexOf,
    at: (index) => items[index],
    size: () => items.length,
  }
}
