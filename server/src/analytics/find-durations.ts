// Percentiles of the durations of finds and of the waits for matches, from the counts of the matchmaker. A bucket without one has
// none.
import type { ClientBase, Pool } from 'pg'
import { COUNTED_WIDTHS_S, DURATION_STEPS, MATCH_WAIT_UNIT_MS, percentile } from '../observe/duration-steps.ts'
import { type Buckets, MINUTE_S } from './buckets.ts'

const DECIMALS = 10

/** `bucket`: its position in the window. Durations are in milliseconds. */
export type FindBucket = { bucket: number; find_count: number } & Percentiles
export type Percentiles = { duration_p50: number; duration_p95: number; duration_p99: number }

type Row = { bucket: number; step: number; find_count: number }

/** Returns the buckets that have finds, in their order. */
export async function readFindDurations(db: ClientBase, reading: Reading): Promise<FindBucket[]> {
  return bucketsOf(await readRows(db, { table: 'find_durations', column: 'find_count' }, reading))
}

/** Returns the buckets in which requests got a match, in their order. `find_count`: number of these requests. */
export async function readMatchWaits(db: ClientBase, reading: Reading): Promise<FindBucket[]> {
  return bucketsOf(await readRows(db, { table: 'match_waits', column: 'match_count' }, reading), MATCH_WAIT_UNIT_MS)
}

type Reading = { namespace_ids: readonly string[]; buckets: Buckets }

async function readRows(
  db: ClientBase,
  { table, column }: { table: string; column: string },
  { namespace_ids, buckets }: Reading,
): Promise<Row[]> {
  const { start_ms, end_ms, width } = buckets
  const read_width = COUNTED_WIDTHS_S.findLast((stored) => width % stored === 0) ?? MINUTE_S
  const { rows } = await db.query<Row>(
    `select floor((date_part('epoch', ts) - $2::float8) / $4::float8)::integer as bucket, step,
        sum(${column})::bigint as find_count
      from ${table}
      where namespace_id = any($1) and width = ${read_width}
        and ts >= to_timestamp($2::float8) and ts < to_timestamp($3::float8)
      group by 1, 2`,
    [namespace_ids, start_ms / 1_000, end_ms / 1_000, width],
  )
  return rows
}

/** Returns the finds of the whole platform from `start_ms` on: in minutes, and all together. `total`: null without a find. */
export async function readPlatformFinds(
  pool: Pool,
  start_ms: number,
): Promise<{ minutes: FindBucket[]; total: FindBucket | null }> {
  const { rows } = await pool.query<Row>(
    `select ((date_part('epoch', ts) - $1::float8) / ${MINUTE_S})::integer as bucket, step, find_count::bigint
      from platform_find_durations where ts >= to_timestamp($1::float8)`,
    [start_ms / 1_000],
  )
  return { minutes: bucketsOf(rows), total: bucketsOf(rows.map((row) => ({ ...row, bucket: 0 })))[0] ?? null }
}

function bucketsOf(rows: readonly Row[], unit_ms = 1): FindBucket[] {
  const counts_of = new Map<number, number[]>()
  for (const { bucket, step, find_count } of rows) {
    const counts = counts_of.get(bucket) ?? new Array<number>(DURATION_STEPS).fill(0)
    counts[step]! += find_count
    counts_of.set(bucket, counts)
  }
  return [...counts_of]
    .toSorted(([a], [b]) => a - b)
    .map(([bucket, counts]) => ({
      bucket,
      find_count: counts.reduce((sum, count) => sum + count, 0),
      duration_p50: rounded(unit_ms * percentile(counts, 0.5)),
      duration_p95: rounded(unit_ms * percentile(counts, 0.95)),
      duration_p99: rounded(unit_ms * percentile(counts, 0.99)),
    }))
}

function rounded(ms: number): number {
  return Math.round(ms * DECIMALS) / DECIMALS
}
