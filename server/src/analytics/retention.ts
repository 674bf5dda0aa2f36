// What of analytics is removed. Events go a day at a time, by its partition, and with them the roll-ups of that day that
// are finer than an hour; those of hours and days stay for longer. The numbers of a namespace that is gone go too.
import type { ClientBase, Pool } from 'pg'
import type { Context } from '../context.ts'
import { dropDays, firstDayMs } from '../database/day-partitions.ts'
import { removeInBatches } from '../database/remove-old.ts'
import type { SweepStep } from '../database/sweeper.ts'
import { DAY_S, HOUR_S, ROLL_UP_WIDTHS } from './buckets.ts'

const DAY_MS = DAY_S * 1_000
const TABLES = ['analytics_roll_ups', 'analytics_exit_codes'] as const
/** Deleted namespaces whose numbers one sweep removes. */
const NAMESPACES_AT_ONCE_MAX = 100

type Kept = Pick<Context, 'config' | 'now'>

export function analyticsSteps(ctx: Context): SweepStep[] {
  const { pool, config, now } = ctx
  const { analytics_ms } = config.retention
  return [
    { what: 'analytics_events', remove: () => dropDays(pool, 'analytics_events', eventsFromMs(ctx)) },
    {
      what: 'analytics_roll_ups',
      async remove() {
        const fine = ROLL_UP_WIDTHS.filter((width) => width < HOUR_S)
        const coarse = ROLL_UP_WIDTHS.filter((width) => width >= HOUR_S)
        const count = await removeOld(pool, fine, await fineFromMs(pool, ctx))
        return count + (analytics_ms === null ? 0 : await removeOld(pool, coarse, now() - analytics_ms))
      },
    },
    { what: 'analytics_lines', remove: () => removeGone(pool) },
  ]
}

/** The day from which on events are to be kept. */
function eventsFromMs({ config, now }: Kept): number {
  const { events_ms } = config.retention
  return events_ms === null ? Number.NEGATIVE_INFINITY : Math.floor((now() - events_ms) / DAY_MS) * DAY_MS
}

/**
 * From when on there are events, and roll-ups finer than an hour, of all that happened: whatever was removed by this
 * setting, or by a shorter one before, is older.
 */
export async function fineFromMs(db: ClientBase | Pool, kept: Kept): Promise<number> {
  return Math.max(eventsFromMs(kept), (await firstDayMs(db, 'analytics_events')) ?? Number.NEGATIVE_INFINITY)
}

/** A roll-up is old when all of its time is. */
async function removeOld(pool: Pool, widths: readonly number[], before_ms: number): Promise<number> {
  if (before_ms === Number.NEGATIVE_INFINITY) return 0
  let count = 0
  for (const width of widths) {
    const value = new Date(before_ms - width * 1_000)
    count += await removeRollUps(pool, width, { of_lines: 'true', only: 'ts <= $1', value })
  }
  return count
}

/** `of_lines` and `only` say which, in SQL; $1 is `value`. */
async function removeRollUps(
  pool: Pool,
  width: number,
  { of_lines, only, value }: { of_lines: string; only: string; value: unknown },
): Promise<number> {
  let count = 0
  for (const table of TABLES) {
    // By the key of each line: there is no index by time alone, and none is needed for what is empty.
    const partition = `${table}_${width}s`
    const text = `
      delete from ${partition} where ctid = any(array(
        select removed.ctid
        from analytics_lines as lines cross join lateral (
          select ctid from ${partition} as roll_up
          where roll_up.line_id = lines.line_id and width = ${width} and ${only} order by ts limit $2
        ) as removed
        where ${of_lines} limit $2
      ))`
    count += await removeInBatches(async (rows_max) => (await pool.query(text, [value, rows_max])).rowCount ?? 0)
  }
  return count
}

/** A lobby that outlives its namespace keeps its lines until it is stopped, and counted. */
const GONE_SQL = `
  select distinct namespace_id from analytics_lines as lines
  where not exists (select from namespaces where namespaces.namespace_id = lines.namespace_id)
    and not exists (
      select from analytics_lobbies join analytics_series using (series_id)
      where analytics_series.namespace_id = lines.namespace_id
    )
  limit $1`
const REMOVE_EMPTY_SQL = `
  with empty as (
    select namespace_id from analytics_lines as lines where namespace_id = any($1) group by 1
    having not bool_or(${TABLES.map((table) => `exists (select from ${table} where line_id = lines.line_id)`).join(' or ')})
  ),
  series as (delete from analytics_series where namespace_id in (select namespace_id from empty))
  delete from analytics_lines where namespace_id in (select namespace_id from empty)`

/** The events have no name of theirs any more, and go with their days. */
async function removeGone(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ namespace_id: string }>(GONE_SQL, [NAMESPACES_AT_ONCE_MAX])
  if (rows.length === 0) return 0
  const gone = rows.map(({ namespace_id }) => namespace_id)
  const of_lines = 'namespace_id = any($1)'
  let count = 0
  for (const width of ROLL_UP_WIDTHS) count += await removeRollUps(pool, width, { of_lines, only: 'true', value: gone })
  // What has more than one sweep removes is there for the next one.
  const { rowCount } = await pool.query(REMOVE_EMPTY_SQL, [gone])
  return count + (rowCount ?? 0)
}
