// Which rows of the projected tables the changes of a batch make different, and copies of these rows.
import type { Change } from '../../journal/changes.ts'
import type { Book } from '../book/state.ts'
import { type RowOf, TABLE_NAMES, type TableName, tableOf } from './projected-tables.ts'

/** By table: ids of the values in one namespace's book. */
export type AffectedRows = Record<TableName, Set<string>>

export function noAffectedRows(): AffectedRows {
  return {
    lobbies: new Set(),
    players: new Set(),
    captcha_clients: new Set(),
    draining_versions: new Set(),
    parties: new Set(),
    tickets: new Set(),
  }
}

/** To be called before the change is applied. */
export function addAffected(book: Book, change: Change, affected: AffectedRows): void {
  for (const name of TABLE_NAMES) tableOf(name).addAffected(book, change, affected[name])
}

/** Adds everything that has not ended. */
export function addUnended(book: Book, affected: AffectedRows): void {
  for (const name of TABLE_NAMES) tableOf(name).addUnended(book, affected[name])
}

/** Copies of rows by table and key, of all namespaces of a shard. Times are milliseconds since the epoch. */
export type RowSnapshots = { [N in TableName]: Map<string, RowOf<N>> }

export function noRowSnapshots(): RowSnapshots {
  return {
    lobbies: new Map(),
    players: new Map(),
    captcha_clients: new Map(),
    draining_versions: new Map(),
    parties: new Map(),
    tickets: new Map(),
  }
}

/** Copies the affected rows as the book has them now. */
export function takeSnapshots(book: Book, namespace_id: string, affected: AffectedRows, into: RowSnapshots): void {
  for (const name of TABLE_NAMES) {
    const table = tableOf(name)
    const snapshots: Map<string, object> = into[name]
    for (const id of affected[name]) {
      const value = table.valueOf(book, id)
      const key = table.key.length === 1 ? id : `${namespace_id} ${id}`
      if (value !== undefined) snapshots.set(key, table.rowOf(namespace_id, value))
    }
  }
}

/** Adds the rows of `newer` to `older`, in place of older copies. */
export function addNewer(older: RowSnapshots, newer: RowSnapshots): void {
  for (const name of TABLE_NAMES) {
    const rows: Map<string, object> = older[name]
    for (const [key, row] of newer[name]) rows.set(key, row)
  }
}
