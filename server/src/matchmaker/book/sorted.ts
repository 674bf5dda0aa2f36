// A list that is always in order. The position of an item is found by binary search; an insert or a removal moves the later
// items, which is one copy of memory.

export type Sorted<T> = {
  /** Does nothing when the item is in the list. */
  add: (item: T) => void
  /** Does nothing when the item is not in the list. */
  remove: (item: T) => void
  /** How many items come before this one, which need not be in the list. */
  indexOf: (item: T) => number
  /** How many items fulfil the condition, which holds for the first ones and for no later one. */
  countBefore: (isBefore: (item: T) => boolean) => number
  at: (index: number) => T | undefined
  size: () => number
}

/** `isBefore`: a strict order, which never changes for items in the list. */
export function createSorted<T>(isBefore: (a: T, b: T) => boolean): Sorted<T> {
  const items: T[] = []

  function indexOf(item: T): number {
    // New items mostly belong at the end.
    if (items.length === 0 || isBefore(items.at(-1)!, item)) return items.length
    return countBefore((other) => isBefore(other, item))
  }

  function countBefore(isFirst: (item: T) => boolean): number {
    let low = 0
    let high = items.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (isFirst(items[middle]!)) low = middle + 1
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
    countBefore,
    at: (index) => items[index],
    size: () => items.length,
  }
}
