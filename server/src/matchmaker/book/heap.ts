// A binary min-heap that knows the position of each item, so that any item can be moved or removed in O(log n).

export type Heap<T> = {
  /** The least item, or undefined. */
  peek: () => T | undefined
  /** Adds the item, or moves it to its new position. */
  put: (item: T) => void
  /** Does nothing when the item is not in the heap. */
  remove: (item: T) => void
  size: () => number
}

export function createHeap<T>(isBefore: (a: T, b: T) => boolean): Heap<T> {
  const items: T[] = []
  const positions = new Map<T, number>()

  const put = (item: T, position: number): void => {
    items[position] = item
    positions.set(item, position)
  }
  const up = (item: T, from: number): number => {
    let position = from
    while (position > 0) {
      const parent = (position - 1) >> 1
      if (!isBefore(item, items[parent]!)) break
      put(items[parent]!, position)
      position = parent
    }
    put(item, position)
    return position
  }
  const down = (item: T, from: number): void => {
    let position = from
    for (;;) {
      let child = 2 * position + 1
      if (child >= items.length) break
      if (child + 1 < items.length && isBefore(items[child + 1]!, items[child]!)) child++
      if (!isBefore(items[child]!, item)) break
      put(items[child]!, position)
      position = child
    }
    put(item, position)
  }

  return {
    peek: () => items[0],
    put(item) {
      const position = positions.get(item)
      if (position === undefined) up(item, items.length)
      else if (up(item, position) === position) down(item, position)
    },
    remove(item) {
      const position = positions.get(item)
      if (position === undefined) return
      positions.delete(item)
      const last = items.pop()!
      if (last !== item && up(last, position) === position) down(last, position)
    },
    size: () => items.length,
  }
}
