// Pseudorandom numbers from a seed, so that a run can be repeated with the same faults at the same points.

export type Random = {
  /** A whole number from 0 to `below` - 1. */
  int: (below: number) => number
  /** True with this probability. */
  chance: (probability: number) => boolean
  pick: <T>(items: readonly T[]) => T
  shuffle: <T>(items: readonly T[]) => T[]
  /** An independent sequence, derived from this seed and the name. */
  fork: (name: string) => Random
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0
  /** Mulberry32. */
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const int = (below: number): number => Math.floor(next() * below)
  return {
    int,
    chance: (probability) => next() < probability,
    pick: (items) => {
      if (items.length === 0) throw new Error('there is nothing to pick from')
      return items[int(items.length)]!
    },
    shuffle(items) {
      const shuffled = [...items]
      for (let end = shuffled.length - 1; end > 0; end--) {
        const other = int(end + 1)
        ;[shuffled[end], shuffled[other]] = [shuffled[other]!, shuffled[end]!]
      }
      return shuffled
    },
    fork: (name) =>
      createRandom([...name].reduce((sum, letter) => Math.imul(sum ^ letter.charCodeAt(0), 16_777_619), seed)),
  }
}
