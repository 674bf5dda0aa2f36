// Who writes a shard: compare and append. Every row of the journal has the key (shard, seq), and a writer only ever
// appends at the seq after the last one it knows. Whoever wants to write first appends a takeover row of its own and
// only then reads: the append waits for one in flight at the same key, so the reader misses nothing, and the deposed
// writer's next append breaks on the key. Each takeover has a fresh writer id, so that "did my batch commit?" is one
// look-up. ARCHITECTURE.md states the protocol; no lease is needed for it.
import type { Pool } from 'pg'
import { encodePage } from './journal.ts'

/** A takeover that meets this many appends in a row gives up: somebody else is writing well. */
const TAKEOVER_TRIES_MAX = 1_000

const UNIQUE_VIOLATION = '23505'

/**
 * - `committed`: durable.
 * - `deposed`: another writer has this seq; nothing was written, and this writer never writes again.
 * - `failed`: the database refused; nothing was written, the seq is free.
 * - `unknown`: no word came back; only a takeover finds out.
 */
export type AppendOutcome =
  | { kind: 'committed' }
  | { kind: 'deposed' }
  | { kind: 'failed'; error: unknown }
  | { kind: 'unknown'; error: unknown }

export async function append(
  pool: Pool,
  row: { shard: number; seq: number; writer: string; payload: Buffer },
): Promise<AppendOutcome> {
  try {
    await pool.query({
      name: 'journal-append',
      text: 'insert into journal (shard, seq, writer, payload) values ($1, $2, $3, $4)',
      values: [row.shard, row.seq, row.writer, row.payload],
    })
    return { kind: 'committed' }
  } catch (error) {
    const state = sqlState(error)
    if (state === UNIQUE_VIOLATION) return { kind: 'deposed' }
    return { kind: isDefinite(state) ? 'failed' : 'unknown', error }
  }
}

/** Makes `writer` the one writer of the shard. Answers the seq of its takeover row: all before it is there to be read. */
export async function takeOver(pool: Pool, shard: number, writer: string, now_ms: number): Promise<number> {
  const payload = encodePage({ format: 1, ms: now_ms, entries: [] })
  for (let tries = 0; tries < TAKEOVER_TRIES_MAX; tries++) {
    const { rows } = await pool.query<{ seq: number }>({
      name: 'journal-last',
      text: 'select coalesce(max(seq), 0) as seq from journal where shard = $1',
      values: [shard],
    })
    const seq = rows[0]!.seq + 1
    const outcome = await append(pool, { shard, seq, writer, payload })
    if (outcome.kind === 'committed') return seq
    if (outcome.kind !== 'deposed') throw outcome.error
  }
  throw new Error(`shard ${shard} could not be taken over: another writer keeps appending`)
}

/** Whether a batch whose outcome was unknown did commit. To be asked after a takeover. */
export async function didCommit(pool: Pool, row: { shard: number; seq: number; writer: string }): Promise<boolean> {
  const { rows } = await pool.query({
    name: 'journal-did-commit',
    text: 'select 1 from journal where shard = $1 and seq = $2 and writer = $3',
    values: [row.shard, row.seq, row.writer],
  })
  return rows.length === 1
}

function sqlState(error: unknown): string | null {
  const code = (error as { code?: unknown }).code
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : null
}

/** Classes in which PostgreSQL aborted the statement and lives on to say so; 57014 is a statement that took too long. */
function isDefinite(state: string | null): boolean {
  return state !== null && (state === '57014' || /^(0A|22|23|25|40|42|53|54|55)/.test(state))
}
