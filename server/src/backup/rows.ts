// The rows of a backup. Which tables and columns there are is asked of the database, so a migration needs no line here.
// Where a table comes from is another matter: from our own migrations, which a backup names with their checksums.
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import type { ClientBase } from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { makeDayPartition, readPartitionName } from '../database/day-partitions.ts'
import { UNUSED_TABLES } from '../database/former-migrations.ts'
import type { BackedSequence, BackedTable } from './manifest.ts'

/** Tables whose rows are of one running platform: the migrations make their own, a lease is of who holds it. */
const NOT_BACKED = [
  ...[
    'migrations',
    'additive_migrations',
    'node_versions',
    'matchmakers',
    'shard_leases',
    'port_claims',
    'shard_room',
    'place_room',
    'runners',
    'node_use',
    'log_questions',
    'log_answers',
  ],
  ...['edges', 'edge_reports', 'lobby_connections', 'lobby_traffic', 'lobby_usage'],
  ...['edge_players', 'edge_admissions'],
  ...UNUSED_TABLES,
  // What was done to this platform, not what it holds.
  ...['backups', 'verifications', 'restores', 'job_runs'],
]

export type Table = Pick<BackedTable, 'name' | 'columns'>

/** The platform's tables, by name, with the columns that hold values of their own. */
export async function readTables(client: ClientBase): Promise<Table[]> {
  const { rows } = await client.query<Table>(
    `select c.relname as name, array_agg(a.attname::text order by a.attnum) as columns
      from pg_class c join pg_attribute a on a.attrelid = c.oid
      where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and c.relname <> all($1)
        and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
      group by c.relname order by c.relname`,
    [NOT_BACKED],
  )
  return rows
}

/** They are no part of a snapshot: read after the rows, they are at least as far. */
export async function readSequences(client: ClientBase): Promise<BackedSequence[]> {
  const { rows: names } = await client.query<{ name: string }>(
    `select relname as name from pg_class
      where relnamespace = current_schema()::regnamespace and relkind = 'S' order by relname`,
  )
  const sequences: BackedSequence[] = []
  for (const { name } of names) {
    const { rows } = await client.query<Omit<BackedSequence, 'name'>>(
      `select last_value::text, is_called from ${quote(name)}`,
    )
    sequences.push({ name, ...rows[0]! })
  }
  return sequences
}

/** Streams the rows' text to `write`, which reads it to its end; returns how many rows there were. */
export async function dump(
  client: ClientBase,
  what: Table | string,
  write: (body: AsyncIterable<Uint8Array>) => Promise<unknown>,
): Promise<number> {
  const text = typeof what === 'string' ? `(${what})` : `${quote(what.name)} (${what.columns.map(quote).join(', ')})`
  const stream = client.query(copyTo(`copy ${text} to stdout`))
  await write(stream)
  return stream.rowCount
}

/** The opposite; `path` is the file that dump() filled. */
export async function load(client: ClientBase, table: Table, path: string): Promise<number> {
  const stream = client.query(copyFrom(`copy ${quote(table.name)} (${table.columns.map(quote).join(', ')}) from stdin`))
  await pipeline(createReadStream(path), stream)
  return stream.rowCount
}

/**
 * Fills the platform's tables, which are those of the backup's migrations and are emptied first, within the transaction of
 * the caller. What refers to what is set aside and checked at the end, for all rows at once: the tables need no order.
 */
export async function loadTables(
  client: ClientBase,
  tables: readonly BackedTable[],
  fileOf: (name: string) => string,
): Promise<void> {
  await makePartitions(client, tables)
  const there = await readTables(client)
  const strange = tables.find(({ name }) => !there.some((table) => table.name === name))
  if (strange) throw new Error(`The backup has a table ${strange.name} that its migrations do not make.`)
  const { rows: references } = await client.query<{ name: string; table_name: string; definition: string }>(
    `select con.conname as name, c.relname as table_name, pg_get_constraintdef(con.oid) as definition
      from pg_constraint con join pg_class c on c.oid = con.conrelid
      where con.contype = 'f' and c.relnamespace = current_schema()::regnamespace order by c.relname, con.conname`,
  )
  for (const { name, table_name } of references)
    await client.query(`alter table ${quote(table_name)} drop constraint ${quote(name)}`)
  if (there.length > 0) await client.query(`truncate ${there.map(({ name }) => quote(name)).join(', ')}`)
  for (const table of tables) {
    const row_count = await load(client, table, fileOf(table.name))
    if (row_count !== table.row_count)
      throw new Error(`The backup holds ${row_count} rows of ${table.name} and names ${table.row_count}.`)
  }
  for (const { name, table_name, definition } of references)
    await client.query(`alter table ${quote(table_name)} add constraint ${quote(name)} ${definition}`)
}

/** Days that the platform has made partitions for as it went (database/day-partitions.ts). */
async function makePartitions(client: ClientBase, tables: readonly BackedTable[]): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = current_schema()::regnamespace and relkind = 'p'`,
  )
  const parents = new Set(rows.map(({ name }) => name))
  for (const { name } of tables) {
    const partition = readPartitionName(name)
    if (partition !== null && parents.has(partition.table)) await makeDayPartition(client, partition)
  }
}

export async function setSequences(client: ClientBase, sequences: readonly BackedSequence[]): Promise<void> {
  for (const { name, last_value, is_called } of sequences)
    await client.query('select setval($1::regclass, $2::bigint, $3)', [quote(name), last_value, is_called])
}

/** The first table that holds a row; null when the database is new, or has been migrated and nothing else. */
export async function findRows(client: ClientBase): Promise<string | null> {
  for (const { name } of await readTables(client)) {
    // A migration fills it.
    if (name === 'platform_ids') continue
    const { rowCount } = await client.query(`select from ${quote(name)} limit 1`)
    if (rowCount !== 0) return name
  }
  return null
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
