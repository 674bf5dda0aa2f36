// The lobbies of a game that were created in a time, as CSV. Names and tags are players' and developers' own words: no
// cell of it is a formula, or drives a terminal.
import { csvCell } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { listNamespaces } from '../namespaces/namespaces.ts'
import { timestamp } from '../times.ts'
import { hasFailed, LOBBY_COLUMNS, type LobbyRow } from './rows.ts'

/** Rows of one query. */
const ROWS_AT_ONCE = 1_000
/** Rows of an exported history. */
const ROWS_MAX = 1_000_000

/** Lobbies that were created at `query_start` or later, and before `query_end`. */
export type QueryWindow = { game_id: string; query_start: number; query_end: number }

type CsvRow = LobbyRow & {
  namespace: string
  version_id: string
  version: string | null
  publicity: string
  is_custom: boolean
  max_players_normal: number
  players: string
  tags: string
}

const CELLS: readonly (readonly [name: string, cell: (row: CsvRow) => string])[] = [
  ['lobby_id', (row) => row.lobby_id],
  ['namespace_id', (row) => row.namespace_id],
  ['namespace', (row) => row.namespace],
  ['version_id', (row) => row.version_id],
  ['version', (row) => row.version ?? ''],
  ['game_mode', (row) => row.game_mode],
  ['region', (row) => row.region],
  ['publicity', (row) => row.publicity],
  ['is_custom', (row) => String(row.is_custom)],
  ['max_players_normal', (row) => String(row.max_players_normal)],
  ['players', (row) => row.players],
  ['tags', (row) => row.tags],
  ['create_ts', (row) => timestamp(row.create_ts)],
  ['start_ts', (row) => time(row.start_ts)],
  ['ready_ts', (row) => time(row.ready_ts)],
  ['stop_ts', (row) => time(row.stop_ts)],
  ['stop_reason', (row) => row.stop_reason ?? ''],
  ['exit_ts', (row) => time(row.exit_ts)],
  ['exit_code', (row) => String(row.exit_code ?? '')],
  ['exit_reason', (row) => row.exit_reason ?? ''],
  ['failed', (row) => String(row.stop_ts !== null && hasFailed(row))],
]

/** Selects the lobbies of a namespace that were created after a lobby, the oldest first. */
const SQL = `
  select ${LOBBY_COLUMNS}, n.name_id as namespace, l.version_id, v.display_name as version, l.publicity, l.is_custom,
    l.max_players_normal, l.tags::text as tags,
    (select count(*) from players p where p.lobby_id = l.lobby_id and not p.is_spectator)::text as players
  from (
    select * from lobbies
    where namespace_id = $1 and create_ts < $2 and (create_ts, lobby_id) > ($3, $4)
    order by create_ts, lobby_id limit ${ROWS_AT_ONCE}
  ) as l
  join namespaces n on n.namespace_id = l.namespace_id
  left join versions v on v.version_id = l.version_id
  left join lobby_runs r on r.lobby_id = l.lobby_id
  order by l.create_ts, l.lobby_id`

const FIRST_ID = '00000000-0000-0000-0000-000000000000'

/** Rows are asked for as they are fetched, so that neither memory nor a connection waits for a slow reader. */
export async function* lobbyCsv(
  ctx: Context,
  { game_id, query_start, query_end }: QueryWindow,
  rows_max = ROWS_MAX,
): AsyncGenerator<string> {
  yield `${CELLS.map(([name]) => name).join()}\r\n`
  let count = 0
  const { rows: namespaces, is_cut } = await listNamespaces(ctx, game_id)
  for (const { namespace_id } of namespaces) {
    let [create_ts, lobby_id] = [new Date(query_start), FIRST_ID]
    for (;;) {
      const { rows: found } = await ctx.pool.query<CsvRow>(SQL, [
        namespace_id,
        new Date(query_end),
        create_ts,
        lobby_id,
      ])
      const rows = found.slice(0, rows_max - count)
      if (rows.length > 0) yield rows.map((row) => `${CELLS.map(([, cell]) => csvCell(cell(row))).join()}\r\n`).join('')
      count += rows.length
      if (rows.length < found.length) return yield cutRow(count)
      const last = rows.at(-1)
      if (last === undefined || rows.length < ROWS_AT_ONCE) break
      ;[create_ts, lobby_id] = [last.create_ts, last.lobby_id]
    }
  }
  if (is_cut) yield cutRow(count)
}

/** The last row of a file that does not have all lobbies: words in place of the first cell, nothing in the others. */
function cutRow(count: number): string {
  const words = `is_cut: there are more lobbies than these ${count}. Export a shorter time.`
  return `${CELLS.map((_, index) => (index === 0 ? csvCell(words) : '')).join()}\r\n`
}

function time(ts: Date | null): string {
  return ts === null ? '' : timestamp(ts)
}
