// The tokens that were taken back, as each process that lets callers in knows them. A token is revoked by a row; the
// word of it goes round by NOTIFY. Every process also reads what is new within each second, in case the word was lost.
import type { Pool } from 'pg'
import type { Logger } from 'pino'
import { CHANNELS } from '../wire/channels.ts'
import type { Listener } from './listen.ts'

/** Every process must know a revoked token within a second, also without NOTIFY. */
const READ_EVERY_MS = 900
/** Rows become visible when they are committed, not in the order of their times: so far back is read again. */
const OVERLAP_MS = 60_000

export type Revoked = {
  has: (token_id: string) => boolean
  /** How many there are: it grows when there are more. */
  count: () => number
  /** Reads all there are; from then on they are followed. Throws when the database cannot be read. */
  open: () => Promise<void>
  /** Reads what is new. */
  refresh: () => Promise<void>
  close: () => Promise<void>
}

export function createRevoked(options: { pool: Pool; listener: Listener; log: Logger }): Revoked {
  const { pool, listener, log } = options
  const revoked = new Set<string>()
  /** The latest time read so far, of the database's clock. */
  let read_ms: number | null = null
  let reading: Promise<void> | null = null
  let next: Promise<void> | null = null
  let end = (): void => {}

  async function read(): Promise<void> {
    const since = read_ms === null ? null : new Date(read_ms - OVERLAP_MS)
    const { rows } = await pool.query<{ token_id: string; revoke_ts: Date }>({
      name: 'revoked-tokens',
      text: 'select token_id, revoke_ts from revoked_tokens where $1::timestamptz is null or revoke_ts > $1',
      values: [since],
    })
    for (const { token_id, revoke_ts } of rows) {
      revoked.add(token_id)
      read_ms = Math.max(read_ms ?? 0, revoke_ts.getTime())
    }
  }

  function start(): Promise<void> {
    reading = read().finally(() => {
      reading = null
    })
    return reading
  }

  /** One read at a time; all who ask while one is under way are answered by the next. */
  function refresh(): Promise<void> {
    if (reading === null) return start()
    next ??= reading
      .catch(() => undefined)
      .then(() => {
        next = null
        // A caller that arrived just now has started it already.
        return reading ?? start()
      })
    return next
  }

  function wake(): void {
    refresh().catch((error: unknown) => log.warn({ err: error }, 'revoked tokens cannot be read; trying again'))
  }

  let opened: Promise<void> | null = null
  async function open(): Promise<void> {
    await refresh()
    const unsubscribe = listener.on(CHANNELS.revoked_tokens, wake)
    const timer = setInterval(wake, READ_EVERY_MS)
    end = () => {
      unsubscribe()
      clearInterval(timer)
    }
  }

  return {
    has: (token_id) => revoked.has(token_id),
    count: () => revoked.size,
    // Roles of one process share it.
    open() {
      opened ??= open()
      return opened
    },
    refresh,
    async close() {
      await opened?.catch(() => undefined)
      end()
      await (next ?? reading)?.catch(() => undefined)
    },
  }
}
