// The tokens that were verified a while ago, by the hash of their text. Two halves: what is asked for moves to the
// younger one; when that is full, the older one is forgotten at once. So a look-up never sorts and never scans.
import type { Token } from './claims.ts'

export type Memory = {
  get: (digest: string) => Token | undefined
  set: (digest: string, token: Token) => void
  size: () => number
}

/** Holds `entries_max` at most, and the half of it that was asked for last for certain. */
export function createMemory(entries_max: number): Memory {
  let younger = new Map<string, Token>()
  let older = new Map<string, Token>()

  function set(digest: string, token: Token): void {
    if (younger.size >= entries_max / 2) {
      older = younger
      younger = new Map()
    }
    older.delete(digest)
    younger.set(digest, token)
  }

  return {
    set,
    get(digest) {
      const token = younger.get(digest)
      if (token !== undefined) return token
      const aging = older.get(digest)
      if (aging !== undefined) set(digest, aging)
      return aging
    },
    size: () => younger.size + older.size,
  }
}
