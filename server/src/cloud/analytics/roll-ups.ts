// The tables that facts are added up in: analytics_events has them one by one, in a partition a day; analytics_roll_ups
// adds up those of a minute, a day and widths in between of a series; analytics_exit_codes counts exits likewise. What
// is added up stands here once, as SQL: for what is folded, for a window that is asked for, and for making roll-ups anew.
import type { ClientBase, Pool } from 'pg'
import { inTransaction } from '../../database/transaction.ts'
import { DAY_S, ROLL_UP_WIDTHS } from './buckets.ts'
import { type Fact, GAUGES, type Gauges, type Series } from './facts.ts'

const WIDTHS_SQL = `array[${ROLL_UP_WIDTHS.join(', ')}]`

/** What a fact adds to each sum of a roll-up. */
const SUMS = {
  new_lobby_count: "(kind = 'lobby_created')::integer",
  new_player_count: "(kind = 'player_reserved')::integer",
  ready_lobby_count: "(kind = 'lobby_ready')::integer",
  ready_ms: "case when kind = 'lobby_ready' then duration_ms else 0 end",
  played_count: "(kind = 'player_removed' and duration_ms is not null)::integer",
  played_ms: "case when kind = 'player_removed' then coalesce(duration_ms, 0) else 0 end",
  stopped_lobby_count: "(kind = 'lobby_stopped')::integer",
  failed_lobby_count: "(kind = 'lobby_stopped' and failed)::integer",
} as const
export type Change = { [Gauge in keyof Gauges as `${Gauge}_change`]: number }
export type Sums = Record<keyof typeof SUMS, number>

export const SUM_NAMES = Object.keys(SUMS) as (keyof typeof SUMS)[]
/** Changes of the gauges, as columns. */
const CHANGES = GAUGES.map((gauge) => `${gauge}_change`)
/** Of a roll-up, and of a fact read as one. */
export const SUMMED = [...CHANGES, ...SUM_NAMES]
export const FACT_AS_SUMS = [...CHANGES, ...SUM_NAMES.map((name) => `${SUMS[name]} as ${name}`)].join(', ')
export const SUMMED_TOTALS = SUMMED.map((name) => `sum(${name})::bigint as ${name}`).join(', ')

/**
 * What was there at a moment, in each row of the relation `series`: what there was before the first roll-up from then on;
 * where there is none, what there is now. Old roll-ups may be gone. As a lateral join, called `opening`.
 */
export function openingSql(series: string, width: string, at: string): string {
  const opening = GAUGES.map(
    (gauge) => `coalesce(next.${gauge} - next.${gauge}_change, ${series}.${gauge}) as ${gauge}`,
  )
  return `
    left join lateral (
      select * from analytics_roll_ups as later
      where later.series_id = ${series}.series_id and later.width = ${width} and later.ts >= ${at}
      order by later.ts limit 1
    ) as next on true
    cross join lateral (select ${opening.join(', ')}) as opening`
}
/** With openingSql: as a change from nothing. */
export const OPENING_AS_SUMS = [...GAUGES.map((gauge) => `opening.${gauge}`), ...SUM_NAMES.map(() => '0')].join(', ')

/** A fact as a row: what unnest(FACT_ARRAYS) makes of factArrays(). */
export const FACT_COLUMNS = ['ts', 'kind', ...CHANGES, 'duration_ms', 'failed', 'exit_code']
const FACT_TYPES = [
  'timestamptz',
  'analytics_event_kind',
  ...CHANGES.map(() => 'smallint'),
  'bigint',
  'boolean',
  'integer',
]

/** Placeholders from `$first` on. */
export function factArraysSql(first: number): string {
  return FACT_TYPES.map((type, index) => `$${first + index}::${type}[]`).join(', ')
}

export function factArrays(facts: readonly Fact[]): unknown[][] {
  return [
    facts.map(({ ms }) => new Date(ms)),
    facts.map(({ kind }) => kind),
    ...GAUGES.map((gauge) => facts.map(({ difference }) => difference[gauge] ?? 0)),
    facts.map(({ duration_ms }) => duration_ms),
    facts.map(({ failed }) => failed),
    facts.map(({ exit_code }) => exit_code),
  ]
}

/** Adds the facts of the CTE `facts` to the roll-ups; `before`: rows of a series each, with what was there before. */
function rollUpSql(before: string): string {
  const columns = [...GAUGES, ...SUMMED]
  return `
    units as (
      select series_id, width, date_bin(make_interval(secs => width), ts, 'epoch') as ts, ${SUMMED_TOTALS}
      from (select series_id, ts, ${FACT_AS_SUMS} from facts where kind <> 'lobby_exited') as summed
      cross join unnest(${WIDTHS_SQL}) as width
      group by series_id, width, 3
    ),
    rolled_up as (
      insert into analytics_roll_ups (series_id, width, ts, ${columns.join(', ')})
      select series_id, width, units.ts,
        ${GAUGES.map((gauge) => `before.${gauge} + sum(${gauge}_change) over so_far`).join(', ')}, ${SUMMED.join(', ')}
      from units join (${before}) as before using (series_id)
      window so_far as (partition by series_id, width order by units.ts)
      on conflict (series_id, width, ts) do update set
        ${GAUGES.map((gauge) => `${gauge} = excluded.${gauge}`).join(', ')},
        ${SUMMED.map((name) => `${name} = analytics_roll_ups.${name} + excluded.${name}`).join(', ')}
    ),
    exited as (
      insert into analytics_exit_codes (series_id, width, ts, exit_code, lobby_count)
      select series_id, width, date_bin(make_interval(secs => width), ts, 'epoch'), exit_code, count(*)
      from facts cross join unnest(${WIDTHS_SQL}) as width
      where kind = 'lobby_exited'
      group by series_id, width, 3, exit_code
      on conflict (series_id, width, ts, exit_code) do update set
        lobby_count = analytics_exit_codes.lobby_count + excluded.lobby_count
    )`
}

const ADD_SQL = `
  with facts as (
    insert into analytics_events (series_id, ${FACT_COLUMNS.join(', ')})
    select * from unnest($1::integer[], ${factArraysSql(2)})
    returning *
  ),
  ${rollUpSql(`select series_id, ${GAUGES.join(', ')} from analytics_series`)}
  update analytics_series
  set ${GAUGES.map((gauge) => `${gauge} = analytics_series.${gauge} + totals.${gauge}_change`).join(', ')}
  from (select series_id, ${CHANGES.map((name) => `sum(${name}) as ${name}`).join(', ')} from facts
    where kind <> 'lobby_exited' group by 1) as totals
  where totals.series_id = analytics_series.series_id`

/** Adds facts up; the partitions of their days are there. `idOf`: of their series. */
export async function addFacts(
  db: ClientBase,
  facts: readonly Fact[],
  idOf: (series: Series) => number,
): Promise<void> {
  if (facts.length === 0) return
  const series_ids = facts.map(({ series }) => idOf(series))
  await db.query({ name: 'analytics-add', text: ADD_SQL, values: [series_ids, ...factArrays(facts)] })
}

const nameOf = ({ namespace_id, region, game_mode }: Series): string => `${namespace_id} ${region} ${game_mode}`

/** The ids of series, which are made where there are none yet. */
export async function seriesIds(db: ClientBase, wanted: readonly Series[]): Promise<(series: Series) => number> {
  const series = [...new Map(wanted.map((one) => [nameOf(one), one])).values()]
  const columns = [
    series.map(({ namespace_id }) => namespace_id),
    series.map(({ region }) => region),
    series.map(({ game_mode }) => game_mode),
  ]
  const named = 'unnest($1::uuid[], $2::text[], $3::text[]) as named (namespace_id, region, game_mode)'
  await db.query(
    `insert into analytics_series (namespace_id, region, game_mode)
      select * from ${named} where not exists (
        select from analytics_series as there where there.namespace_id = named.namespace_id
          and there.region = named.region and there.game_mode = named.game_mode
      ) on conflict do nothing`,
    columns,
  )
  const { rows } = await db.query<Series & { series_id: number }>(
    `select series_id, namespace_id, region, game_mode from analytics_series
      join ${named} using (namespace_id, region, game_mode)`,
    columns,
  )
  const ids = new Map(rows.map((row) => [nameOf(row), row.series_id]))
  return (one) => ids.get(nameOf(one))!
}

/** What was there before the day of `facts`, after which roll-ups are right: what was there after it, without it. */
const BEFORE_DAY_SQL = `
  select analytics_series.series_id, ${GAUGES.map((gauge) => `opening.${gauge} - sum(facts.${gauge}_change) as ${gauge}`).join(', ')}
  from facts join analytics_series using (series_id) ${openingSql('analytics_series', String(DAY_S), '$2')}
  group by analytics_series.series_id, ${GAUGES.map((gauge) => `opening.${gauge}`).join(', ')}`

/**
 * Makes the roll-ups of a day (UTC) anew, of the events that are kept of it: for days whose roll-ups are wrong or missing,
 * the last of them first.
 */
export async function rollUpAgain(pool: Pool, day_ms: number): Promise<void> {
  const day = [new Date(day_ms), new Date(day_ms + DAY_S * 1_000)]
  await inTransaction(pool, async (client) => {
    await client.query('set local statement_timeout = 0')
    await client.query("select from journal_readers where reader = 'analytics' for update")
    await client.query('delete from analytics_roll_ups where ts >= $1 and ts < $2', day)
    await client.query('delete from analytics_exit_codes where ts >= $1 and ts < $2', day)
    await client.query(
      `with facts as (select * from analytics_events where ts >= $1 and ts < $2), ${rollUpSql(BEFORE_DAY_SQL)} select`,
      day,
    )
  })
}
