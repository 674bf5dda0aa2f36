// What analytics forget, and what they still tell then.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { getAnalytics } from '@musterhost/contract'
import { ROLL_UP_WIDTHS } from '../../src/analytics/buckets.ts'
import type { Fact } from '../../src/analytics/facts.ts'
import { addFacts } from '../../src/analytics/roll-ups.ts'
import { type Series, seriesIds } from '../../src/analytics/series.ts'
import { sweep } from '../../src/cloud/sweep/sweep.ts'
import { makeDayPartitions } from '../../src/database/day-partitions.ts'
import { inTransaction } from '../../src/database/transaction.ts'
import { newGame } from '../cloud/steps.ts'
import { UNKNOWN_ID } from '../http/steps.ts'
import { type Platform, startPlatform } from '../support/platform.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const FIRST_DAY_MS = Date.parse('2026-03-01T00:00:00Z')
const SEATS = 5

/** Five seats at half past ten. */
function seatsOf(series: Series, day: number): Fact[] {
  const ms = FIRST_DAY_MS + day * DAY_MS + 10.5 * HOUR_MS
  return Array.from({ length: SEATS }, () => ({
    ...{ kind: 'player_reserved', series, ms, difference: { player_count: 1 } },
    ...{ duration_ms: null, failed: null, exit_code: null },
  }))
}

async function write({ ctx }: Platform, facts: readonly Fact[]): Promise<void> {
  await inTransaction(ctx.pool, async (client) => {
    const idOf = await seriesIds(
      client,
      facts.map(({ series }) => series),
    )
    await makeDayPartitions(
      client,
      'analytics_events',
      facts.map(({ ms }) => ms),
    )
    await addFacts(client, facts, idOf)
  })
}

/** The seats of six hours, and how wide their buckets are. */
async function told({ client }: Platform, game_id: string, namespace_id: string, day: number) {
  const start_ms = FIRST_DAY_MS + day * DAY_MS + 7 * HOUR_MS
  const { data_sets } = await client.call(getAnalytics, {
    query: {
      query_start: new Date(start_ms).toISOString(),
      query_end: new Date(start_ms + 6 * HOUR_MS).toISOString(),
      game_ids: [game_id],
      namespace_ids: [namespace_id],
      variants: ['new_players_per_second', 'player_count'],
    },
  })
  const { ts, new_player_count } = data_sets[0]!.new_players_per_second!
  const width_s = (ts[1]! - ts[0]!) / 1_000
  const seats = Math.round(new_player_count.reduce((sum, rate) => sum + rate * width_s, 0))
  return { width_s, seats, player_count: data_sets[1]!.player_count!.player_count.at(-1) }
}

test('events are removed by the day, with roll-ups finer than an hour; older days are returned by the hour', async (t) => {
  const platform = await startPlatform(t, { roles: 'api', held_ms: FIRST_DAY_MS })
  const { pool } = platform.ctx
  const { game_id, prod_id, staging_id } = await newGame(platform)
  const series = { namespace_id: prod_id, region: 'eu', game_mode: 'duel' }
  for (const day of [0, 1, 2]) await write(platform, seatsOf(series, day))
  const gone = { namespace_id: UNKNOWN_ID, region: 'eu', game_mode: 'duel' }
  await write(platform, seatsOf(gone, 2))

  platform.advance(30.5 * DAY_MS)
  assert.deepEqual(await told(platform, game_id, prod_id, 0), { width_s: 300, seats: SEATS, player_count: SEATS })
  await sweep(platform.ctx)
  const partitions = await pool.query<{ name: string }>(
    `select relname as name from pg_class where relname like 'analytics_events_2%' and relkind = 'r' order by 1`,
  )
  assert.deepEqual(
    partitions.rows.map(({ name }) => name),
    ['analytics_events_20260301', 'analytics_events_20260302', 'analytics_events_20260303'],
    'the thirtieth day before is kept whole',
  )
  platform.advance(DAY_MS)
  await sweep(platform.ctx)
  const widths = await pool.query<{ day: string; widths: number[] }>(
    `select to_char(ts at time zone 'UTC', 'DD') as day, array_agg(distinct width) as widths
      from analytics_roll_ups where width <= 86400 group by 1 order by 1`,
  )
  const kept = ROLL_UP_WIDTHS.filter((width) => width <= 86_400)
  assert.deepEqual(widths.rows, [
    { day: '01', widths: kept.filter((width) => width >= 3_600) },
    { day: '02', widths: kept },
    { day: '03', widths: kept },
  ])
  assert.deepEqual(await told(platform, game_id, prod_id, 0), { width_s: 3_600, seats: SEATS, player_count: SEATS })
  assert.deepEqual(await told(platform, game_id, prod_id, 1), { width_s: 300, seats: SEATS, player_count: 2 * SEATS })
  assert.deepEqual(await told(platform, game_id, prod_id, 2), { width_s: 300, seats: SEATS, player_count: 3 * SEATS })
  // Where nothing ever was, nothing is missing.
  assert.deepEqual(await told(platform, game_id, staging_id, 0), { width_s: 300, seats: 0, player_count: 0 })
  const { rows } = await pool.query('select distinct namespace_id from analytics_lines')
  assert.deepEqual(rows, [{ namespace_id: prod_id }], 'nothing is left of a namespace that is gone')

  const widthsLeft = async (): Promise<number[]> => {
    const { rows } = await pool.query<{ width: number }>('select distinct width from analytics_roll_ups order by 1')
    return rows.map(({ width }) => width)
  }
  platform.advance(1_000 * DAY_MS)
  await sweep(platform.ctx)
  assert.deepEqual(await widthsLeft(), [31_536_000], 'a year goes when all of it is old')
  platform.advance(365 * DAY_MS)
  await sweep(platform.ctx)
  assert.deepEqual(await widthsLeft(), [])
})
