// What the projection knows about one table: its columns, and how its rows follow from a book and its changes. Writing,
// loading and affected rows all derive from it.
import type { Change } from '../../../journal/changes.ts'
import type { Book } from '../../book/state.ts'

/** A type of PostgreSQL. `time`: milliseconds since the epoch in a row, timestamptz in the table. */
type ColumnType = 'uuid' | 'text' | 'boolean' | 'integer' | 'double precision' | 'jsonb' | 'time'
/** `fixed`: never changes after the insert. */
export type ProjectedColumn = readonly [type: ColumnType, 'fixed' | 'updated']

/**
 * `Row`: what is written, but for the column `shard`, which every table has. `Value`: what the book holds for a row.
 * `Selected`: a row as the driver reads it. `Stored`: what a book loads from it.
 */
export type ProjectedTable<Row extends object, Value, Selected extends { namespace_id: string }, Stored> = {
  name: string
  /** The primary key; with two columns, the first is the namespace. */
  key: readonly (keyof Row & string)[]
  columns: Record<keyof Row & string, ProjectedColumn>
  /** Adds the ids of the values that the change affects. To be called before the change is applied. */
  addAffected(book: Book, change: Change, ids: Set<string>): void
  /** Adds the ids of the values that have not ended, whose deadlines postpone() moves. */
  addUnended(book: Book, ids: Set<string>): void
  valueOf(book: Book, id: string): Value | undefined
  /** A plain copy, because it is taken on the path of a find; write-rows.ts makes JSON of it later. */
  rowOf(namespace_id: string, value: Value): Row
  /** The rows that a book loads. `since_ms`: returns the value of $2. */
  loaded: { where: string; since_ms?: (now_ms: number) => number; order_by?: string }
  storedOf(selected: Selected): Stored
}
