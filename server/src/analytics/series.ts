// What is counted apart: the lobbies and players of a namespace in one region and one game mode. Rows name a series, and
// the lines that it adds to, by numbers.
import type { ClientBase } from 'pg'

export type Series = { namespace_id: string; region: string; game_mode: string }

const nameOf = ({ namespace_id, region, game_mode }: Series): string => `${namespace_id} ${region} ${game_mode}`

/** The ids of series, which are made where there are none yet, and their lines too. */
export async function seriesIds(db: ClientBase, wanted: readonly Series[]): Promise<(series: Series) => number> {
  const series = [...new Map(wanted.map((one) => [nameOf(one), one])).values()]
  const columns = [
    series.map(({ namespace_id }) => namespace_id),
    series.map(({ region }) => region),
    series.map(({ game_mode }) => game_mode),
  ]
  const read = (): Promise<{ rows: (Series & { series_id: number })[] }> =>
    db.query(
      `select series_id, namespace_id, region, game_mode from analytics_series
        join ${NAMED_SQL} using (namespace_id, region, game_mode)`,
      columns,
    )
  let { rows } = await read()
  if (rows.length < series.length) {
    await db.query(MAKE_LINES_SQL, columns)
    await db.query(MAKE_SERIES_SQL, columns)
    rows = (await read()).rows
  }
  const ids = new Map(rows.map((row) => [nameOf(row), row.series_id]))
  return (one) => ids.get(nameOf(one))!
}

const NAMED_SQL = 'unnest($1::uuid[], $2::text[], $3::text[]) as named (namespace_id, region, game_mode)'
const MAKE_LINES_SQL = `
  insert into analytics_lines (namespace_id, region, game_mode)
  select namespace_id, region, game_mode from ${NAMED_SQL}
  group by grouping sets ((namespace_id), (namespace_id, region), (namespace_id, game_mode))
  on conflict do nothing`
const MAKE_SERIES_SQL = `
  insert into analytics_series (namespace_id, region, game_mode, line_ids)
  select *, array(
    select line_id from analytics_lines as line
    where line.namespace_id = named.namespace_id
      and coalesce(line.region, named.region) = named.region
      and coalesce(line.game_mode, named.game_mode) = named.game_mode
    order by line.region is not null, line.game_mode is not null
  ) from ${NAMED_SQL} on conflict do nothing`
