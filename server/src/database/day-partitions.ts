// Tables partitioned by a time (UTC), one partition a day: old rows are dropped as a whole partition, without a scan. A
// partition is named <table>_<yyyymmdd>. It is created before the first row of its day is written, and attached without
// blocking readers.
import type { ClientBase, Pool } from 'pg'
import { inTransaction } from './transaction.ts'

const DAY_MS = 24 * 60 * 60_000
const NAME = /^(?<table>[a-z_]+)_(?<year>\d{4})(?<month>\d\d)(?<day>\d\d)$/
/** A partition that a query reads for longer is dropped by the next sweep. Other queries would wait behind this one. */
const DROP_WAIT_MS_MAX = 1_000

export type DayPartition = { table: string; day_ms: number }

/** Null: it is none. */
export function readPartitionName(name: string): DayPartition | null {
  const { table, year, month, day } = NAME.exec(name)?.groups ?? {}
  if (table === undefined) return null
  const day_ms = Date.parse(`${year}-${month}-${day}T00:00:00Z`)
  return Number.isNaN(day_ms) ? null : { table, day_ms }
}

function partitionName({ table, day_ms }: DayPartition): string {
  return `${table}_${dateOf(day_ms).replaceAll('-', '')}`
}

/** Makes the partitions of the days of these times, where they are not there. Within the caller's transaction. */
export async function makeDayPartitions(db: ClientBase, table: string, times_ms: Iterable<number>): Promise<void> {
  const days = new Set([...times_ms].map((ms) => Math.floor(ms / DAY_MS) * DAY_MS))
  const missing: DayPartition[] = []
  for (const day_ms of days) {
    const { rows } = await db.query<{ is_there: boolean }>('select to_regclass($1) is not null as is_there', [
      partitionName({ table, day_ms }),
    ])
    if (!rows[0]!.is_there) missing.push({ table, day_ms })
  }
  for (const partition of missing) await makeDayPartition(db, partition)
}

/** Makes the partition unless it exists. The second of two concurrent calls finds the partition of the first. */
export async function makeDayPartition(db: ClientBase, partition: DayPartition): Promise<void> {
  const { table, day_ms } = partition
  const name = partitionName(partition)
  await db.query('select pg_advisory_xact_lock(hashtext($1))', [name])
  const { rows } = await db.query<{ is_there: boolean }>('select to_regclass($1) is not null as is_there', [name])
  if (rows[0]!.is_there) return
  await db.query(`create table ${name} (like ${table} including all)`)
  await db.query(`alter table ${table} attach partition ${name}
    for values from ('${dateOf(day_ms)}T00:00:00Z') to ('${dateOf(day_ms + DAY_MS)}T00:00:00Z')`)
}

/** When the first day begins of which there is a partition; null: there is none. */
export async function firstDayMs(db: ClientBase | Pool, table: string): Promise<number | null> {
  const days = await daysOf(db, table)
  return days[0] ?? null
}

async function daysOf(db: ClientBase | Pool, table: string): Promise<number[]> {
  const { rows } = await db.query<{ name: string }>({
    name: 'day-partitions',
    text: `select relname as name from pg_inherits join pg_class on pg_class.oid = inhrelid
      where inhparent = $1::regclass order by relname`,
    values: [table],
  })
  return rows.flatMap(({ name }) => readPartitionName(name)?.day_ms ?? [])
}

/** Drops the days that were over by then. Returns how many. */
export async function dropDays(pool: Pool, table: string, before_ms: number): Promise<number> {
  let count = 0
  for (const day_ms of await daysOf(pool, table)) {
    if (day_ms + DAY_MS > before_ms) break
    await inTransaction(pool, async (client) => {
      await client.query(`set local lock_timeout = ${DROP_WAIT_MS_MAX}`)
      await client.query(`drop table ${partitionName({ table, day_ms })}`)
    })
    count++
  }
  return count
}

function dateOf(day_ms: number): string {
  return new Date(day_ms).toISOString().slice(0, 10)
}
