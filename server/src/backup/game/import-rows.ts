// The rows of one game, from the database of a backup into the platform's. Each table lands in a temporary table first. From there
// its rows are inserted with what is different on this platform: the group, the keys of stored files, the numbers of analytics.
import { pipeline } from 'node:stream/promises'
import type { ClientBase } from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { makeDayPartitions } from '../../database/day-partitions.ts'
import { SEALED_COLUMNS } from '../../tokens/sealed-columns.ts'
import type { Seals } from '../../tokens/seals.ts'
import { dump } from '../rows.ts'
import { GAME_TABLES, type GameTable, rowsOfGame } from './game-tables.ts'

/** `old_seals`: opens the secrets of the backup; null: it has none. `object_keys`: the new key of each old one. */
export type RowImport = {
  source: ClientBase
  target: ClientBase
  game_id: string
  group_id: string
  name_id: string
  object_keys: ReadonlyMap<string, string>
  old_seals: Seals | null
  seals: Seals
  now_ms: number
}

const NEW_LINE = '(select new_id from import_lines where old_id = line_id)'
const NEW_SERIES = '(select new_id from import_series where old_id = series_id)'
/** What a column becomes, in SQL. `$now`, `$group` and `$name` are parameters. Null: the column gets its default. */
const COLUMNS: Partial<Record<GameTable, Record<string, string | null>>> = {
  games: { developer_group_id: '$group', name_id: '$name' },
  // The order of deploys stays: rows are inserted in it.
  namespace_versions: { deploy_number: null, caller_user_id: 'null' },
  upload_files: { object_key: '(select new_key from import_objects where old_key = object_key)', checked_ts: 'null' },
  game_secrets: { creator_user_id: 'null' },
  notice_targets: { group_id: 'null', next_ts: 'null', owner: 'null', owner_until: 'null' },
  // What was due on the way is not made up for.
  schedules: { handled_ts: '$now' },
  // A domain must be proven again, and minutes on the way were not measured.
  status_pages: { domain: 'null', measured_ts: 'null', recent: `'{}'` },
  // Lobbies and players stayed on their machine.
  analytics_lines: {
    line_id: NEW_LINE,
    ...{ lobby_count: '0', lobby_closed_count: '0', lobby_unready_count: '0', lobby_preemptive_count: '0' },
    ...{ player_count: '0', player_unready_count: '0' },
  },
  analytics_series: {
    series_id: NEW_SERIES,
    line_ids: `array(select new_id from unnest(line_ids) with ordinality as line (id, place)
      join import_lines on old_id = id order by place)`,
  },
  analytics_roll_ups: { line_id: NEW_LINE },
  analytics_exit_codes: { line_id: NEW_LINE },
  analytics_events: { series_id: NEW_SERIES },
}

const ORDER: Partial<Record<GameTable, string>> = { namespace_versions: 'order by deploy_number' }

/** Within the caller's transaction. Returns how many rows were inserted. The group is there. */
export async function importRows(rows: RowImport): Promise<number> {
  const { source, target, game_id, object_keys } = rows
  await clearFormer(source, target, game_id)
  await target.query('create temporary table import_objects (old_key text primary key, new_key text) on commit drop')
  await target.query('insert into import_objects select * from unnest($1::text[], $2::text[])', [
    [...object_keys.keys()],
    [...object_keys.values()],
  ])
  let row_count = 0
  for (const table of GAME_TABLES) {
    if (table === 'groups') continue
    const columns = await fetchRows(rows, table)
    await sealAgain(rows, table)
    await numberAgain(target, table)
    if (table === 'analytics_events') await makeEventDays(target)
    row_count += await insertRows(rows, table, columns)
  }
  return row_count
}

/** A deleted game of this id leaves analytics, which a sweep removes later. */
async function clearFormer(source: ClientBase, target: ClientBase, game_id: string): Promise<void> {
  const { rows } = await source.query<{ namespace_id: string }>(
    'select namespace_id from namespaces where game_id = $1',
    [game_id],
  )
  const ids = [rows.map(({ namespace_id }) => namespace_id)]
  const series = 'series_id in (select series_id from analytics_series where namespace_id = any($1))'
  const lines = 'line_id in (select line_id from analytics_lines where namespace_id = any($1))'
  await target.query(
    `delete from analytics_players where lobby_id in (select lobby_id from analytics_lobbies where ${series})`,
    ids,
  )
  for (const table of ['analytics_lobbies', 'analytics_events'])
    await target.query(`delete from ${table} where ${series}`, ids)
  for (const table of ['analytics_roll_ups', 'analytics_exit_codes'])
    await target.query(`delete from ${table} where ${lines}`, ids)
  for (const table of ['analytics_series', 'analytics_lines', 'status_days'])
    await target.query(`delete from ${table} where namespace_id = any($1)`, ids)
}

const landing = (table: GameTable): string => `import_${table}`

/** Returns the names of the columns. */
async function fetchRows({ source, target, game_id }: RowImport, table: GameTable): Promise<string[]> {
  const { rows } = await target.query<{ name: string }>(
    `select attname as name from pg_attribute
      where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
    [table],
  )
  const columns = rows.map(({ name }) => name)
  const listed = columns.map((name) => `"${name}"`).join(', ')
  await target.query(
    `create temporary table ${landing(table)} on commit drop as select ${listed} from ${table} where false`,
  )
  const into = target.query(copyFrom(`copy ${landing(table)} (${listed}) from stdin`))
  await dump(source, `select ${listed} from ${table} where ${rowsOfGame(game_id)[table]}`, (body) =>
    pipeline(body, into),
  )
  return columns
}

/** Seals secrets with a key of this platform. Throws an Error where the keys of the backup do not open one. */
async function sealAgain({ target, old_seals, seals, now_ms }: RowImport, table: GameTable): Promise<void> {
  const sealed = SEALED_COLUMNS.find((one) => one.table === table)
  if (sealed === undefined) return
  const { id, column, purposeOf } = sealed
  const { rows } = await target.query<{ id: string; seal: string }>(
    `select ${id}::text as id, ${column} as seal from ${landing(table)} where ${column} is not null`,
  )
  for (const row of rows) {
    const purpose = purposeOf(row.id)
    const text = old_seals?.open(purpose, row.seal) ?? null
    if (text === null) throw new Error(`The backup has no keys, and ${column} of ${table} ${row.id} is sealed.`)
    await target.query(`update ${landing(table)} set ${column} = $2 where ${id} = $1`, [
      row.id,
      seals.seal(purpose, text, now_ms),
    ])
  }
}

/** Numbers of another database may be taken here. */
async function numberAgain(target: ClientBase, table: GameTable): Promise<void> {
  const numbered = (
    { analytics_lines: ['line_id', 'import_lines'], analytics_series: ['series_id', 'import_series'] } as const
  )[table as 'analytics_lines']
  if (numbered === undefined) return
  const [column, name] = numbered
  await target.query(
    `create temporary table ${name} on commit drop as
      select ${column} as old_id, nextval(pg_get_serial_sequence('${table}', '${column}'))::integer as new_id
      from ${landing(table)}`,
  )
  await target.query(`create index on ${name} (old_id)`)
}

async function makeEventDays(target: ClientBase): Promise<void> {
  const { rows } = await target.query<{ day: Date }>(
    `select distinct date_trunc('day', ts at time zone 'UTC') at time zone 'UTC' as day from import_analytics_events`,
  )
  await makeDayPartitions(
    target,
    'analytics_events',
    rows.map(({ day }) => day.getTime()),
  )
}

async function insertRows(
  { target, group_id, name_id, now_ms }: RowImport,
  table: GameTable,
  all_columns: readonly string[],
): Promise<number> {
  const changed = COLUMNS[table] ?? {}
  const columns = all_columns.filter((name) => changed[name] !== null)
  const values: unknown[] = []
  const parameters: Record<string, unknown> = { $group: group_id, $name: name_id, $now: new Date(now_ms) }
  const types: Record<string, string> = { $group: 'uuid', $name: 'text', $now: 'timestamptz' }
  const selected = columns.map((name) => {
    const value = changed[name] ?? `"${name}"`
    if (!(value in parameters)) return value
    values.push(parameters[value])
    return `$${values.length}::${types[value]}`
  })
  const { rowCount } = await target.query(
    `insert into ${table} (${columns.map((name) => `"${name}"`).join(', ')})
      select ${selected.join(', ')} from ${landing(table)} ${ORDER[table] ?? ''}`,
    values,
  )
  return rowCount ?? 0
}
