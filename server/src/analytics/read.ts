// Reads the numbers of a window in one snapshot: for each requested line, the state at the end of every bucket and what
// happened in it. Roll-ups of the lines (below a minute: events) and what is not aggregated yet are added up by bucket. Only
// the columns of the requested lines are read. Bucket -1 is what came before the window, besides what the roll-ups know of
// its beginning.
import type { ClientBase } from 'pg'
import { type Buckets, DAY_S, MINUTE_S } from './buckets.ts'
import { type Fact, GAUGES, type Gauges } from './facts.ts'
import { addedSql, FACT_COLUMNS, factArrays, factArraysSql, openingSql, SUM_NAMES, type Sums } from './roll-ups.ts'

/** How numbers are identified: `only` selects lines of analytics_lines, `names` are the columns that name each of them. */
const KINDS = {
  all: { names: [], only: 'lines.region is null and lines.game_mode is null', gauges: GAUGES, sums: SUM_NAMES },
  region: {
    names: ['region'],
    only: 'lines.region is not null',
    gauges: ['lobby_count', 'player_count'],
    sums: ['played_count', 'played_ms'],
  },
  game_mode: {
    names: ['game_id', 'game_mode'],
    only: 'lines.game_mode is not null',
    gauges: ['lobby_count', 'player_count'],
    sums: ['played_count', 'played_ms'],
  },
} as const satisfies Record<string, Kind>
type Kind = {
  names: readonly ('region' | 'game_id' | 'game_mode')[]
  only: string
  gauges: readonly (keyof Gauges)[]
  sums: readonly (keyof Sums)[]
}

export type LineKind = keyof typeof KINDS
type ColumnOf<K extends LineKind> = (typeof KINDS)[K]['gauges' | 'sums'][number]

/** `of`: a number for each bucket that has begun. */
type Line<Column extends string = string> = {
  /** Values of the kind's names, in their order. */
  names: readonly string[]
  of: Record<Column, number[]>
}
export type Lines = { [K in LineKind]: readonly Line<ColumnOf<K>>[] }
export type ExitRow = { bucket: number; exit_code: number; lobby_count: number }

type Reading = {
  namespace_ids: readonly string[]
  buckets: Buckets
  /** How many buckets have begun. */
  bucket_count: number
  /** Changes that are not aggregated yet. */
  facts: readonly Fact[]
}

/** Seconds since the epoch: a window may begin and end in any year. */
const START_SQL = 'to_timestamp($2::float8)'
const END_SQL = 'to_timestamp($3::float8)'
/** Seconds from the beginning of the window, in whole buckets. */
const BUCKET_SQL = `greatest(-1, floor((date_part('epoch', ts) - $2::float8) / $4::float8))::integer`

/** The lines of one kind of which there was anything; all in all there is always one. */
export async function readLines<K extends LineKind>(
  db: ClientBase,
  reading: Reading,
  kind: K,
): Promise<Line<ColumnOf<K>>[]> {
  const { names, gauges, sums } = KINDS[kind] as Kind
  const { namespace_ids, buckets, bucket_count } = reading
  const openings = await db.query<(string | number)[]>({
    text: openingsSql(KINDS[kind], buckets),
    values: [namespace_ids, buckets.start_ms / 1_000],
    rowMode: 'array',
  })
  const changes = await db.query<(string | number)[]>({
    text: changesSql(KINDS[kind], reading),
    values: valuesOf(reading),
    rowMode: 'array',
  })

  const columns = [...gauges, ...sums]
  const lines = new Map<string, { line: Line; is_there: boolean }>()
  const lineOf = (row: readonly (string | number)[]) => {
    const of_row = row.slice(0, names.length) as string[]
    const key = of_row.join(' ')
    const known = lines.get(key)
    if (known !== undefined) return known
    const of = Object.fromEntries(columns.map((column) => [column, new Array<number>(bucket_count).fill(0)]))
    const made = { line: { names: of_row, of }, is_there: kind === 'all' }
    lines.set(key, made)
    return made
  }
  const add = (row: readonly (string | number)[], bucket: number, from: number, added: readonly string[]): void => {
    const { line } = lineOf(row)
    for (const [index, column] of added.entries()) line.of[column]![bucket]! += row[from + index] as number
  }
  // What was there before counts as a change of the first bucket, and later changes are not reported.
  if (bucket_count > 0) for (const row of openings.rows) add(row, 0, names.length, gauges)
  for (const row of changes.rows) {
    const bucket = row[names.length] as number
    if (Math.max(0, bucket) >= bucket_count) continue
    add(row, Math.max(0, bucket), names.length + 1, bucket < 0 ? gauges : columns)
    if (bucket >= 0) lineOf(row).is_there = true
  }
  if (kind === 'all' && lines.size === 0) lineOf([])
  return [...lines.values()].flatMap(({ line, is_there }) => {
    for (const gauge of gauges) accumulate(line.of[gauge]!)
    return is_there || gauges.some((gauge) => line.of[gauge]!.some((value) => value !== 0)) ? [line] : []
  })
}

/** Changes become what is there after them. */
function accumulate(values: number[]): void {
  for (let index = 1; index < values.length; index++) values[index]! += values[index - 1]!
}

function openingsSql({ names, only, gauges }: Kind, { read_width }: Buckets): string {
  return `
    select ${[...names, ...gauges.map((gauge) => `coalesce(sum(opening.${gauge}), 0)::bigint`)].join(', ')}
    from analytics_lines as lines join namespaces using (namespace_id)
    ${openingSql(gauges, read_width ?? MINUTE_S, `date_trunc('minute', ${START_SQL})`)}
    where namespace_id = any($1) and ${only}
    ${names.length === 0 ? '' : `group by ${names.join(', ')}`}`
}

function changesSql({ names, only, gauges, sums }: Kind, reading: Reading): string {
  const { read_width } = reading.buckets
  const changes = gauges.map((gauge) => `${gauge}_change`)
  const columns = [...changes, ...sums]
  const named = [...names, 'ts'].join(', ')
  return `
    with ${factsSql(reading)}
    units as (
      select ${named}, ${columns.map(addedSql).join(', ')} from facts where kind <> 'lobby_exited' and ts < ${END_SQL}
      ${
        read_width === null
          ? ''
          : `union all
      select ${named}, ${columns.join(', ')}
      from analytics_lines as lines join namespaces using (namespace_id)
      ${rollUpsSql('analytics_roll_ups', columns, read_width)}
      where namespace_id = any($1) and ${only}`
      }
    )
    select ${[...names, `${BUCKET_SQL} as bucket`, ...columns.map((column) => `sum(${column})::bigint`)].join(', ')}
    from units group by ${[...names, 'bucket'].join(', ')}`
}

/**
 * Joins each row of `lines` with its roll-ups of the window, by their key. `offset 0` keeps the planner from reading the
 * roll-ups of all lines for a part of them, or a day for a minute (factsSql).
 */
function rollUpsSql(table: string, columns: readonly string[], width: number): string {
  return `cross join lateral (
        select ts, ${columns.join(', ')} from ${table} as roll_up
        where roll_up.line_id = lines.line_id and width = ${width} and ts >= ${START_SQL} and ts < ${END_SQL} offset 0
      ) as roll_ups`
}

/** Facts that are not rolled up, each with its namespace's game. */
function factsSql({ buckets }: Reading): string {
  const columns = ['game_id', 'region', 'game_mode', ...FACT_COLUMNS].join(', ')
  return `
    facts as (
      select ${columns}
      from unnest($5::uuid[], $6::text[], $7::text[], ${factArraysSql(8)})
        as tail (namespace_id, region, game_mode, ${FACT_COLUMNS.join(', ')})
      join namespaces using (namespace_id)
      ${
        buckets.read_width === null
          ? `union all
      select ${columns}
      from analytics_series join namespaces using (namespace_id) cross join lateral (
        select ${FACT_COLUMNS.join(', ')} from analytics_events as event
        where event.series_id = analytics_series.series_id
          and ts >= date_trunc('minute', ${START_SQL}) and ts < ${END_SQL} offset 0
      ) as events
      where namespace_id = any($1)`
          : ''
      }
    ),`
}

export async function readExitCodes(db: ClientBase, reading: Reading): Promise<ExitRow[]> {
  const { read_width } = reading.buckets
  const { rows } = await db.query<ExitRow>(
    `with ${factsSql(reading)}
    exits as (
      select ts, exit_code, 1 as lobby_count from facts
      where kind = 'lobby_exited' and ts >= ${START_SQL} and ts < ${END_SQL}
      ${
        read_width === null
          ? ''
          : `union all
      select ts, exit_code, roll_ups.lobby_count
      from analytics_lines as lines
      ${rollUpsSql('analytics_exit_codes', ['exit_code', 'lobby_count'], read_width)}
      where namespace_id = any($1) and ${KINDS.all.only}`
      }
    )
    select ${BUCKET_SQL} as bucket, exit_code, sum(lobby_count)::bigint as lobby_count from exits group by 1, 2`,
    valuesOf(reading),
  )
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
  { namespace_ids, facts }: Pick<Reading, 'namespace_ids' | 'facts'>,
): Promise<Pick<Gauges, 'lobby_count' | 'player_count'>> {
  const { rows } = await db.query<Pick<Gauges, 'lobby_count' | 'player_count'>>(
    `select coalesce(sum(lobby_count), 0)::bigint as lobby_count, coalesce(sum(player_count), 0)::bigint as player_count
      from analytics_lines as lines where namespace_id = any($1) and ${KINDS.all.only}`,
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
    `select from analytics_lines as lines where namespace_id = any($1) and ${KINDS.all.only} and exists (
      select from analytics_roll_ups as older
      where older.line_id = lines.line_id and older.width = ${DAY_S} and older.ts < $2
    ) limit 1`,
    [namespace_ids, new Date(before_ms)],
  )
  return rowCount !== 0
}
