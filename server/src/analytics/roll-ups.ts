// The tables in which facts are added up. analytics_events has them one by one, in one partition a day. analytics_roll_ups
// adds up those of a line in a minute, a year and widths between. analytics_exit_codes counts the exit codes of a namespace
// in the same way. The additions are written here once, as SQL, for the aggregation and for queries.
import type { ClientBase } from 'pg'
import { MINUTE_S, ROLL_UP_WIDTHS } from './buckets.ts'
import { type Fact, GAUGES } from './facts.ts'
import type { Series } from './series.ts'

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
export type Sums = Record<keyof typeof SUMS, number>

export const SUM_NAMES = Object.keys(SUMS) as (keyof typeof SUMS)[]
/** Changes of the gauges, as columns. */
const CHANGES = GAUGES.map((gauge) => `${gauge}_change`)
/** Summed columns of a roll-up, and of a fact that is read as one. */
const SUMMED = [...CHANGES, ...SUM_NAMES]

/** What a fact adds to a column of roll-ups, as a column of that name. */
export function addedSql(column: string): string {
  return column in SUMS ? `${SUMS[column as keyof Sums]} as ${column}` : column
}

/** Only durations are too long for an integer. */
const totalSql = (column: string): string =>
  `sum(${column})::${column.endsWith('_ms') ? 'bigint' : 'integer'} as ${column}`
const TOTALS = SUMMED.map(totalSql).join(', ')

/**
 * What there was at a moment in each row of `lines`, for these gauges: what there was before the first roll-up from then
 * on; where there is none, what there is now. Old roll-ups may be gone. As a lateral join, called `opening`.
 */
export function openingSql(gauges: readonly string[], width: number, at: string): string {
  const opening = gauges.map((gauge) => `coalesce(next.${gauge} - next.${gauge}_change, lines.${gauge}) as ${gauge}`)
  return `
    left join lateral (
      select * from analytics_roll_ups as later
      where later.line_id = lines.line_id and later.width = ${width} and later.ts >= ${at}
      order by later.ts limit 1
    ) as next on true
    cross join lateral (select ${opening.join(', ')}) as opening`
}

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

/** Units of each width are added up of those of the widest one that divides it. */
function unitsSql(): string {
  return ROLL_UP_WIDTHS.map((width) => {
    const ts = `date_bin('${width} s', ts, 'epoch') as ts`
    const narrower = ROLL_UP_WIDTHS.findLast((other) => other < width && width % other === 0)
    const source =
      width === MINUTE_S
        ? `(
        select line_ids, ts, ${SUMMED.map(addedSql).join(', ')}
        from facts join analytics_series using (series_id) where kind <> 'lobby_exited'
      ) as added cross join unnest(line_ids) as line_id`
        : `units_${narrower}`
    return `units_${width} as (select line_id, ${ts}, ${TOTALS} from ${source} group by 1, 2)`
  }).join(',\n')
}

/**
 * The statement that adds facts up. `facts`: a query that returns them as rows of analytics_events; those of a line come in
 * the order of their times, from statement to statement. `is_new`: their lines have no roll-ups yet, so none are looked up.
 */
export function addUpSql(facts: string, { is_new = false } = {}): string {
  return `
  with facts as (${facts}),
  ${unitsSql()},
  units as (${ROLL_UP_WIDTHS.map((width) => `select ${width} as width, * from units_${width}`).join(' union all ')}),
  rolled_up as (
    insert into analytics_roll_ups (line_id, width, ts, ${[...GAUGES, ...SUMMED].join(', ')})
    select line_id, width, ts,
      ${GAUGES.map((gauge) => `lines.${gauge} + sum(${gauge}_change) over so_far`).join(', ')}, ${SUMMED.join(', ')}
    from units join analytics_lines as lines using (line_id)
    window so_far as (partition by width, line_id order by ts)
    ${
      is_new
        ? ''
        : `on conflict (line_id, width, ts) do update set
      ${GAUGES.map((gauge) => `${gauge} = excluded.${gauge}`).join(', ')},
      ${SUMMED.map((name) => `${name} = analytics_roll_ups.${name} + excluded.${name}`).join(', ')}`
    }
  ),
  exited as (
    insert into analytics_exit_codes (line_id, width, ts, exit_code, lobby_count)
    select line_ids[1], width, date_bin(make_interval(secs => width), ts, 'epoch'), exit_code, count(*)
    from facts join analytics_series using (series_id) cross join unnest(array[${ROLL_UP_WIDTHS.join(', ')}]) as width
    where kind = 'lobby_exited'
    group by 1, 2, 3, 4
    on conflict (line_id, width, ts, exit_code) do update set
      lobby_count = analytics_exit_codes.lobby_count + excluded.lobby_count
  )
  update analytics_lines
  set ${GAUGES.map((gauge) => `${gauge} = analytics_lines.${gauge} + totals.${gauge}_change`).join(', ')}
  from (select line_id, ${CHANGES.map(totalSql).join(', ')} from units_${ROLL_UP_WIDTHS.at(-1)} group by 1) as totals
  where totals.line_id = analytics_lines.line_id`
}

const ADD_SQL = addUpSql(`
    insert into analytics_events (series_id, ${FACT_COLUMNS.join(', ')})
    select * from unnest($1::integer[], ${factArraysSql(2)})
    returning *`)

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
