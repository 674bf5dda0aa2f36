// A cache of verified tokens, by the hash of their text. It has two generations: a read moves an entry to the younger one,
// and when that is full, the older one is dropped at once. So no operation sorts or scans.
import type { Token } from './claims.ts'

export type TokenCache = {
  get: (digest: string) => Token | undefined
  set: (digest: string, token: Token) => void
  size: () => number
}

/** Holds `entries_max` at most. The half of it that was read last is always kept. */
export function createTokenCache(entries_max: number): TokenCache {
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
