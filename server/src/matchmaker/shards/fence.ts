// Who writes a shard: compare and append. Every row of the journal has the key (shard, seq), and a writer only ever
// appends at the seq after the last one it knows. Whoever wants to write first appends a takeover row of its own and
// only then reads: the append waits for one in flight at the same key, so the reader misses nothing, and the deposed
// writer's next append breaks on the key. Each takeover has a fresh writer id, so that "did my batch commit?" is one
// look-up. ARCHITECTURE.md states the protocol; no lease is needed for it.
import type { Pool, QueryConfig } from 'pg'
import { decodePage, encodePage } from '../../journal/pages.ts'

/** A takeover that meets this many appends in a row gives up: somebody else is writing well. */
const TAKEOVER_TRIES_MAX = 1_000

/** A database that says nothing for this long is not waited for: the outcome is unknown, and a takeover finds it out. */
const ANSWER_MS_MAX = 5_000

const UNIQUE_VIOLATION = '23505'

/** A key that is free because its row was removed as old is still taken: there are rows after it. */
const APPEND_SQL = `
  insert into journal (shard, seq, writer, payload) select $1::smallint, $2::bigint, $3::uuid, $4::bytea
  where not exists (select from journal where shard = $1 and seq > $2)`

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
    const { rowCount } = await pool.query(
      timed({
        name: 'journal-append',
        text: APPEND_SQL,
        values: [row.shard, row.seq, row.writer, row.payload],
      }),
    )
    return { kind: rowCount === 1 ? 'committed' : 'deposed' }
  } catch (error) {
    const state = sqlState(error)
    if (state === UNIQUE_VIOLATION) return { kind: 'deposed' }
    return { kind: isDefinite(state) ? 'failed' : 'unknown', error }
  }
}

export type Takeover = { seq: number; ms: number }

/**
 * Makes `writer` the one writer of the shard. Answers its takeover row, before which all is there to be read, and whose
 * time is not behind any row's. The row moves every deadline by the time since the books were last served: since the last
 * row, or `served_ms` where that is later. `mine`, given by a writer that has lost track: the last seq that it knows and
 * all the names it has written under; when somebody else has appended after that it is deposed, and the answer is null.
 */
export async function takeOver(
  pool: Pool,
  shard: number,
  writer: string,
  { now_ms, served_ms }: { now_ms: number; served_ms: number },
  mine: { seq: number; writers: ReadonlySet<string> } | null,
): Promise<Takeover | null> {
  for (let tries = 0; tries < TAKEOVER_TRIES_MAX; tries++) {
    const last = await lastRow(pool, shard)
    if (mine !== null && last !== undefined && last.seq > mine.seq && !mine.writers.has(last.writer)) return null
    const seq = (last?.seq ?? 0) + 1
    const before_ms = last === undefined ? now_ms : Math.max(served_ms, decodePage(last.payload).ms)
    const ms = Math.max(now_ms, before_ms)
    const payload = encodePage({ format: 1, ms, entries: [], moved_ms: ms - before_ms })
    const outcome = await append(pool, { shard, seq, writer, payload })
    if (outcome.kind === 'committed') return { seq, ms }
    if (outcome.kind !== 'deposed') throw outcome.error
  }
  throw new Error(`shard ${shard} could not be taken over: another writer keeps appending`)
}

async function lastRow(pool: Pool, shard: number) {
  const { rows } = await pool.query<{ seq: number; writer: string; payload: Buffer }>(
    timed({
      name: 'journal-last',
      text: 'select seq, writer, payload from journal where shard = $1 order by seq desc limit 1',
      values: [shard],
    }),
  )
  return rows[0]
}

/** Whether a batch whose outcome was unknown did commit. To be asked after a takeover, whoever's it was. */
export async function didCommit(pool: Pool, row: { shard: number; seq: number; writer: string }): Promise<boolean> {
  const { rows } = await pool.query(
    timed({
      name: 'journal-did-commit',
      text: 'select 1 from journal where shard = $1 and seq = $2 and writer = $3',
      values: [row.shard, row.seq, row.writer],
    }),
  )
  return rows.length === 1
}

/** The driver knows the member and its types do not. It throws the connection away: what it still does is fenced off. */
function timed(query: QueryConfig): QueryConfig {
  return Object.assign(query, { query_timeout: ANSWER_MS_MAX })
}

function sqlState(error: unknown): string | null {
  const code = (error as { code?: unknown }).code
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : null
}

/** Classes in which PostgreSQL aborted the statement and lives on to say so; 57014 is a statement that took too long. */
function isDefinite(state: string | null): boolean {
  return state !== null && (state === '57014' || /^(0A|22|23|25|40|42|53|54|55)/.test(state))
}
