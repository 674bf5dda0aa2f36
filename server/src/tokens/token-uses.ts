// When cloud tokens were last used. A use is noted in memory, and those of 2 s are written together, so a call never waits for
// it. Tokens that players' clients contain are not noted: they come with every find.

import type pg from 'pg'
import type { Logger } from 'pino'

/** How long uses are collected. */
const COLLECT_MS = 2_000
/** Tokens of one write. Uses of further ones are noted with the next write. */
const TOKENS_MAX = 10_000

export type TokenUses = {
  note: (token_id: string, now_ms: number) => void
  /** Writes what was noted. */
  close: () => Promise<void>
}

export function createTokenUses({ pool, log }: { pool: pg.Pool; log: Logger }): TokenUses {
  const used = new Map<string, number>()
  let timer: ReturnType<typeof setTimeout> | undefined
  let writing = Promise.resolve()

  async function write(): Promise<void> {
    timer = undefined
    const [token_ids, times] = [[...used.keys()], [...used.values()].map((ms) => new Date(ms))]
    used.clear()
    if (token_ids.length === 0) return
    try {
      await pool.query(
        `update tokens set use_ts = greatest(use_ts, used.ts)
          from unnest($1::uuid[], $2::timestamptz[]) as used (token_id, ts) where tokens.token_id = used.token_id`,
        [token_ids, times],
      )
    } catch (error) {
      log.warn({ err: error }, 'the last use of tokens cannot be written')
    }
  }

  return {
    note(token_id, now_ms) {
      if (used.size >= TOKENS_MAX && !used.has(token_id)) return
      used.set(token_id, now_ms)
      timer ??= setTimeout(() => {
        writing = writing.then(write)
      }, COLLECT_MS)
    },
    async close() {
      clearTimeout(timer)
      writing = writing.then(write)
      await writing
    },
  }
}
