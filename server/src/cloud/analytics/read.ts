// A window's numbers, read in one snapshot: roll-ups (or events, for buckets below a minute) and what is not folded yet,
// added up by bucket; in all, and by region and game mode where that is asked for. The bucket -1 is what was there before
// the window, so that the gauges of a bucket are the sum of all changes up to its end.
import type { ClientBase } from 'pg'
import { type Buckets, DAY_S, MINUTE_S } from './buckets.ts'
import { type Fact, GAUGES, type Gauges } from './facts.ts'
import {
  type Change,
  FACT_AS_SUMS,
  FACT_COLUMNS,
  factArrays,
  factArraysSql,
  OPENING_AS_SUMS,
  openingSql,
  SUMMED,
  SUMMED_TOTALS,
  type Sums,
} from './roll-ups.ts'

/** How numbers are told apart. */
export const GROUPINGS = { all: '(bucket)', region: '(bucket, region)', game_mode: '(bucket, game_id, game_mode)' }
export type Grouping = keyof typeof GROUPINGS

export type BucketRow = Change &
  Sums & { bucket: number; region: string | null; game_id: string | null; game_mode: string | null }
export type ExitRow = { bucket: number; exit_code: number; lobby_count: number }

/** Seconds since the epoch: a window may begin and end in any year. */
const START_SQL = 'to_timestamp($2::float8)'
const END_SQL = 'to_timestamp($3::float8)'

/** The series that are asked for; facts that are not rolled up, with their series; and what both are cut into. */
function sourcesSql({ read_width }: Buckets): string {
  const columns = FACT_COLUMNS.join(', ')
  return `
    with chosen as (
      select series_id, game_id, region, game_mode, ${GAUGES.join(', ')}
      from analytics_series join namespaces using (namespace_id) where namespace_id = any($1)
    ),
    facts as (
      select game_id, region, game_mode, ${columns}
      from unnest($5::uuid[], $6::text[], $7::text[], ${factArraysSql(8)})
        as tail (namespace_id, region, game_mode, ${columns})
      join namespaces using (namespace_id)
      ${
        read_width === null
          ? `union all
      select game_id, region, game_mode, ${columns} from chosen join analytics_events using (series_id)
      where ts >= date_trunc('minute', ${START_SQL}) and ts < ${END_SQL}`
          : ''
      }
    )`
}

/** Seconds from the beginning of the window, in whole buckets. */
const BUCKET_SQL = `greatest(-1, floor((date_part('epoch', ts) - $2::float8) / $4::float8))::integer`

function bucketsSql(buckets: Buckets, groupings: readonly Grouping[]): string {
  const grouped = groupings.map((grouping) => GROUPINGS[grouping]).join(', ')
  const told = ['region', 'game_id', 'game_mode'].map((name) => (grouped.includes(name) ? name : `null as ${name}`))
  return `
    ${sourcesSql(buckets)},
    units as (
      select region, game_id, game_mode, '-infinity'::timestamptz as ts, ${OPENING_AS_SUMS}
      from chosen ${openingSql('chosen', String(buckets.read_width ?? MINUTE_S), `date_trunc('minute', ${START_SQL})`)}
      ${
        buckets.read_width === null
          ? ''
          : `union all
      select region, game_id, game_mode, ts, ${SUMMED.join(', ')} from chosen join analytics_roll_ups using (series_id)
      where width = ${buckets.read_width} and ts >= ${START_SQL} and ts < ${END_SQL}`
      }
      union all
      select region, game_id, game_mode, ts, ${FACT_AS_SUMS} from facts where kind <> 'lobby_exited' and ts < ${END_SQL}
    )
    select bucket, ${told.join(', ')}, ${SUMMED_TOTALS}
    from (select ${BUCKET_SQL} as bucket, * from units) as cut (bucket, region, game_id, game_mode, ts, ${SUMMED.join(', ')})
    group by grouping sets (${grouped})`
}

function exitsSql(buckets: Buckets): string {
  return `
    ${sourcesSql(buckets)},
    exits as (
      select ts, exit_code, 1 as lobby_count from facts where kind = 'lobby_exited' and ts >= ${START_SQL} and ts < ${END_SQL}
      ${
        buckets.read_width === null
          ? ''
          : `union all
      select ts, exit_code, analytics_exit_codes.lobby_count from chosen join analytics_exit_codes using (series_id)
      where width = ${buckets.read_width} and ts >= ${START_SQL} and ts < ${END_SQL}`
      }
    )
    select ${BUCKET_SQL} as bucket, exit_code, sum(lobby_count)::bigint as lobby_count from exits group by 1, 2`
}

export type Reading = {
  namespace_ids: readonly string[]
  buckets: Buckets
  /** What is not folded yet. */
  facts: readonly Fact[]
}

export async function readBuckets(
  db: ClientBase,
  reading: Reading,
  groupings: readonly Grouping[],
): Promise<BucketRow[]> {
  const { rows } = await db.query<BucketRow>(bucketsSql(reading.buckets, groupings), valuesOf(reading))
  return rows
}

export async function readExitCodes(db: ClientBase, reading: Reading): Promise<ExitRow[]> {
  const { rows } = await db.query<ExitRow>(exitsSql(reading.buckets), valuesOf(reading))
  return rows
}

function valuesOf({ namespace_ids, buckets, facts }: Reading): unknown[] {
  const { start_ms, end_ms, width } = buckets
  const series = facts.map((fact) => fact.series)
  return [
    namespace_ids,
    start_ms / 1_000,
    end_ms / 1_000,
    width,
    series.map(({ namespace_id }) => namespace_id),
    series.map(({ region }) => region),
    series.map(({ game_mode }) => game_mode),
    ...factArrays(facts),
  ]
}

/** What is there now. */
export async function readNow(
  db: ClientBase,
  { namespace_ids, facts }: Reading,
): Promise<Pick<Gauges, 'lobby_count' | 'player_count'>> {
  const { rows } = await db.query<Pick<Gauges, 'lobby_count' | 'player_count'>>(
    `select coalesce(sum(lobby_count), 0)::bigint as lobby_count, coalesce(sum(player_count), 0)::bigint as player_count
      from analytics_series where namespace_id = any($1)`,
    [namespace_ids],
  )
  const now = rows[0]!
  for (const { difference } of facts) {
    now.lobby_count += difference.lobby_count ?? 0
    now.player_count += difference.player_count ?? 0
  }
  return now
}

/** Whether anything of these namespaces is known of days before that. */
export async function hasOlder(db: ClientBase, namespace_ids: readonly string[], before_ms: number): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from analytics_series where namespace_id = any($1) and exists (
      select from analytics_roll_ups
      where analytics_roll_ups.series_id = analytics_series.series_id and width = ${DAY_S} and ts < $2
    ) limit 1`,
    [namespace_ids, new Date(before_ms)],
  )
  return rowCount !== 0
}
