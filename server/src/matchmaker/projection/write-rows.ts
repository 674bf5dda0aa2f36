// The statement that writes rows of the projected tables: a guard, an insert for each table that depends on the guard, and
// the notification of runners and edges. The guard lets a statement through only if no later one has been written.
import type { RowSnapshots } from './affected-rows.ts'
import { forEachTable, TABLE_NAMES, type TableName, tableOf } from './projected-tables.ts'
import type { ProjectedColumn } from './tables/descriptor.ts'

/** The rows of one statement. */
export type RowsToWrite = Record<TableName, object[]>

const FIRST_ROWS_PARAMETER = 4

const WRITE_SQL = `
  with guard as (
    update shards set projected_seq = $2 where shard = $1 and projected_seq <= $2 returning shard
  ), ${TABLE_NAMES.map((name, index) => insertSql(name, FIRST_ROWS_PARAMETER + index)).join(', ')}
  select pg_notify(channel, '') from guard, unnest($3::text[]) as channel`

/** `c0`, `c1`: short names and plain numbers, because there may be ten thousand players a second. */
function insertSql(name: TableName, parameter: number): string {
  const { key, columns } = tableOf(name)
  const names = Object.keys(columns)
  const values = names.map((column, index) => valueSql(columns[column]!, `c${index}`))
  const fields = names.map((column, index) => `c${index} ${fieldType(columns[column]!)}`)
  const updated = names.filter((column) => columns[column]![1] === 'updated')
  return `written_${name} as (
    insert into ${name} (shard, ${names.join(', ')}) select shard, ${values.join(', ')}
    from guard, json_to_recordset($${parameter}) as image (${fields.join(', ')})
    on conflict (${key.join(', ')}) do update set ${updated.map((column) => `${column} = excluded.${column}`).join(', ')}
  )`
}

function valueSql([type]: ProjectedColumn, field: string): string {
  return type === 'time' ? `to_timestamp(${field}::float8 / 1000)` : field
}

function fieldType([type]: ProjectedColumn): string {
  return type === 'time' ? 'bigint' : type
}

/** `channels`: those that are notified when the rows are visible. */
export function writeQuery(shard: number, seq: number, rows: RowsToWrite, channels: ReadonlySet<string>) {
  const values: unknown[] = [shard, seq, [...channels]]
  for (const name of TABLE_NAMES) values.push(jsonOf(name, rows[name]))
  return { name: 'project', text: WRITE_SQL, values }
}

const COLUMN_NAMES = forEachTable((name) => Object.keys(tableOf(name).columns))
const FIELD_NAMES = forEachTable((name) => COLUMN_NAMES[name].map((_, index) => `c${index}`))

function jsonOf(name: TableName, rows: readonly object[]): string {
  if (rows.length === 0) return '[]'
  const columns = COLUMN_NAMES[name]
  const fields = FIELD_NAMES[name]
  const encoded = (rows as readonly Record<string, unknown>[]).map((row) => {
    const fields_of_row: Record<string, unknown> = {}
    for (let index = 0; index < columns.length; index++) {
      const value = row[columns[index]!]
      if (value !== null) fields_of_row[fields[index]!] = value
    }
    return fields_of_row
  })
  return JSON.stringify(encoded)
}

/** The rows in parts of at most `rows_max`. At least one part, also without any row, because the seq must be written. */
export function partsOf(snapshots: RowSnapshots, rows_max: number): RowsToWrite[] {
  const parts: RowsToWrite[] = [forEachTable(() => [])]
  let count = 0
  for (const name of TABLE_NAMES) {
    for (const row of snapshots[name].values()) {
      if (count > 0 && count % rows_max === 0) parts.push(forEachTable(() => []))
      parts.at(-1)![name].push(row)
      count++
    }
  }
  return parts
}
