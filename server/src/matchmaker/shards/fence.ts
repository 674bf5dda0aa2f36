// One writer per shard, by compare and append. Every row of the journal has the key (shard, seq), and a writer only appends
// at the seq after the last row it knows. A new writer first appends a takeover row and only then reads. That append waits
// for an append in flight at the same key, so the new writer misses nothing. The next append of the deposed writer fails
// on the key. Each takeover has a fresh writer id, so that "did my batch commit?" is one query. No lease is needed.
// docs/design/journal.md states the protocol.
import type { Pool, QueryConfig } from 'pg'
import { decodePage, encodePage } from '../../journal/pages.ts'
import { appendAndClaimSql, CLAIM_REFUSED, columnsOf, type PortClaim } from './port-claims.ts'
import { type PlacesOf, type RoomChanges, roomColumns } from './room-claims.ts'

/** A takeover that conflicts with this many appends in a row gives up: another writer works well. */
const TAKEOVER_TRIES_MAX = 1_000

/** Without a response after this time, the outcome of an append is unknown, and a takeover finds it out. */
const RESPONSE_MS_MAX = 5_000

const UNIQUE_VIOLATION = '23505'

/** `ports`: of new lobbies in the row, claimed at the book time `now_ms`. `room`: what its lobbies use, or do not use any more. */
export type Claims = {
  ports: readonly PortClaim[]
  now_ms: number
  room: ReturnType<RoomChanges['sums']>
  placesOf: PlacesOf
}

/** A key whose row was removed as old is still taken: there are rows after it. */
const APPEND_SQL = `
  insert into journal (shard, seq, writer, payload) select $1::smallint, $2::bigint, $3::uuid, $4::bytea
  where not exists (select from journal where shard = $1 and seq > $2)`
const APPEND_CLAIMS_SQL = appendAndClaimSql(APPEND_SQL)

/**
 * - `committed`: durable.
 * - `deposed`: another writer has this seq. Nothing was written, and this writer never writes again.
 * - `failed`: the database refused. Nothing was written, and the seq is free.
 * - `claim_refused`: a port of a new lobby is taken, or its node or region is full. Nothing was written, and the seq is free.
 * - `unknown`: no response came. Only a takeover finds out.
 */
export type AppendOutcome =
  | { kind: 'committed' }
  | { kind: 'deposed' }
  | { kind: 'failed'; error: unknown }
  | { kind: 'claim_refused'; error: unknown }
  | { kind: 'unknown'; error: unknown }

/** Where one of the claims is refused, nothing is written. */
export async function append(
  pool: Pool,
  row: { shard: number; seq: number; writer: string; payload: Buffer },
  claims: Claims | null = null,
): Promise<AppendOutcome> {
  const values = [row.shard, row.seq, row.writer, row.payload]
  try {
    const { rowCount } = await pool.query(
      timed(
        claims === null
          ? { name: 'journal-append', text: APPEND_SQL, values }
          : { name: 'journal-append-claims', text: APPEND_CLAIMS_SQL, values: [...values, ...valuesOf(claims)] },
      ),
    )
    return { kind: rowCount === 1 ? 'committed' : 'deposed' }
  } catch (error) {
    const state = sqlState(error)
    if (state === UNIQUE_VIOLATION) return { kind: 'deposed' }
    if (state === CLAIM_REFUSED && claims !== null) return { kind: 'claim_refused', error }
    return { kind: isDefinite(state) ? 'failed' : 'unknown', error }
  }
}

function valuesOf({ ports, now_ms, room, placesOf }: Claims): unknown[] {
  return [...columnsOf(ports), now_ms, ...roomColumns(room, placesOf)]
}

export type Takeover = { seq: number; ms: number }

/**
 * Makes `writer` the only writer of the shard. Returns its takeover row: all rows before it can be read, and none has a
 * later time. The row moves every deadline by the time since the books were last served: since the last row, or since
 * `served_ms` if that is later. `mine`: the last seq that a recovering writer knows, and all its writer ids. Returns null if
 * another writer has appended after that seq: the caller is deposed.
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
    const last_ms = last === undefined ? null : decodePage(last.payload).ms
    const { ms, moved_ms } = takeoverTimes({ now_ms, served_ms, last_ms })
    const payload = encodePage({ format: 1, ms, entries: [], moved_ms })
    const outcome = await append(pool, { shard, seq, writer, payload })
    if (outcome.kind === 'committed') return { seq, ms }
    if (outcome.kind !== 'deposed') throw outcome.error
  }
  throw new Error(`shard ${shard} could not be taken over: another writer keeps appending`)
}

/** The times of a takeover row. `last_ms`: of the row before it; null: it is the first. */
export function takeoverTimes({
  now_ms,
  served_ms,
  last_ms,
}: {
  now_ms: number
  served_ms: number
  last_ms: number | null
}): { ms: number; moved_ms: number } {
  const before_ms = last_ms === null ? now_ms : Math.max(served_ms, last_ms)
  const ms = Math.max(now_ms, before_ms)
  return { ms, moved_ms: ms - before_ms }
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

/** Whether a batch of unknown outcome did commit. To be called after a takeover by any writer. */
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

/** The driver knows `query_timeout`, its types do not. It discards the connection; the fence stops a late append. */
function timed(query: QueryConfig): QueryConfig {
  return Object.assign(query, { query_timeout: RESPONSE_MS_MAX })
}

function sqlState(error: unknown): string | null {
  const code = (error as { code?: unknown }).code
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : null
}

/**
 * Error classes by which PostgreSQL reports that it aborted the statement; 57014 is a statement that took too long. No command
 * is to blame for the exceptions, so none of them may be refused for it: the server is a standby (25006), has no free
 * connection (53300), or does not know the outcome itself (40003). The shard then waits until it can write.
 *
 * A commit whose wait for a standby was cancelled is a success with a notice. It breaks the connection (database/connect.ts),
 * and the outcome is unknown.
 */
function isDefinite(state: string | null): boolean {
  if (state === null || ['25006', '40003', '53300'].includes(state)) return false
  return state === '57014' || /^(0A|22|23|25|40|42|53|54|55)/.test(state)
}
