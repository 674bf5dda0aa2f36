// What of analytics is removed. Events go a day at a time, by its partition, and with them the roll-ups of that day that
// are finer than an hour; those of hours and days stay for longer. The numbers of a namespace that is gone go too.
import type { ClientBase, Pool } from 'pg'
import type { Context } from '../../context.ts'
import { dropDays, firstDayMs } from '../../database/day-partitions.ts'
import { removeInBatches } from '../../database/remove-old.ts'
import type { SweepStep } from '../../database/sweeper.ts'
import { DAY_S, HOUR_S, ROLL_UP_WIDTHS } from './buckets.ts'

const DAY_MS = DAY_S * 1_000
const TABLES = ['analytics_roll_ups', 'analytics_exit_codes'] as const

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
        const count = await removeRollUps(pool, fine, await fineFromMs(pool, ctx))
        return count + (analytics_ms === null ? 0 : await removeRollUps(pool, coarse, now() - analytics_ms))
      },
    },
    { what: 'analytics_series', remove: () => removeSeries(pool) },
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

async function removeRollUps(pool: Pool, widths: readonly number[], before_ms: number): Promise<number> {
  if (before_ms === Number.NEGATIVE_INFINITY) return 0
  let count = 0
  for (const table of TABLES) {
    count += await removeInBatches(async (rows_max) => {
      const { rowCount } = await pool.query(removeRollUpsSql(table), [widths, new Date(before_ms), rows_max])
      return rowCount ?? 0
    })
  }
  return count
}

/** By the key of each series: there is no index by time alone. */
function removeRollUpsSql(table: string): string {
  return `
    delete from ${table} where ctid = any(array(
      select old.ctid
      from analytics_series cross join unnest($1::integer[]) as wide (width) cross join lateral (
        select ctid from ${table}
        where ${table}.series_id = analytics_series.series_id and ${table}.width = wide.width and ts < $2
        limit $3
      ) as old
      limit $3
    ))`
}

/** A lobby that outlives its namespace keeps its series until it is stopped, and counted. */
const GONE_SQL = `
  select series_id from analytics_series
  where not exists (select from namespaces where namespaces.namespace_id = analytics_series.namespace_id)
    and not exists (select from analytics_lobbies where analytics_lobbies.series_id = analytics_series.series_id)`

/** The events have no name of theirs any more, and go with their days. */
async function removeSeries(pool: Pool): Promise<number> {
  let count = 0
  for (const table of TABLES) {
    count += await removeInBatches(async (rows_max) => {
      const { rowCount } = await pool.query(
        `delete from ${table} where ctid = any(array(
          select ctid from ${table} where series_id = any(array(${GONE_SQL})) limit $1
        ))`,
        [rows_max],
      )
      return rowCount ?? 0
    })
  }
  const left = TABLES.map((table) => `and not exists (select from ${table} where ${table}.series_id = gone.series_id)`)
  const { rowCount } = await pool.query(
    `delete from analytics_series where series_id in (select series_id from (${GONE_SQL}) as gone where true ${left.join(' ')})`,
  )
  return count + (rowCount ?? 0)
}
