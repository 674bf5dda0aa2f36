// Reads a shard into memory: the tables as they reflect the journal at projected_seq, and the journal after that. Only the
// shard's writer calls this, after its takeover, so that no append is in flight meanwhile.
import type { Pool, PoolClient } from 'pg'
import type { Logger } from 'pino'
import { inSnapshot } from '../../database/transaction.ts'
import type { Change } from '../../journal/changes.ts'
import { readPages } from '../../journal/read.ts'
import { apply, load, postpone } from '../book/evolve.ts'
import { Book } from '../book/state.ts'
import {
  type AffectedRows,
  addAffected,
  addUnended,
  noAffectedRows,
  noRowSnapshots,
  type RowSnapshots,
  takeSnapshots,
} from './affected-rows.ts'
import { forEachTable, type StoredOf, TABLE_NAMES, type TableName, tableOf } from './projected-tables.ts'

export type LoadedShard = {
  books: Map<string, Book>
  /** Rows that are newer in the journal than in the tables. */
  snapshots: RowSnapshots
}

export type NewBook = (namespace_id: string) => Book

/** `takeover`: the writer's own row, which has the latest time of the journal. */
export async function loadShard(
  pool: Pool,
  shard: number,
  takeover: { seq: number; ms: number },
  log: Logger,
  newBook: NewBook = () => new Book(),
): Promise<LoadedShard> {
  const books = new Map<string, Book>()
  const { projected_seq, stored } = await readTables(pool, shard, takeover.ms)
  for (const [namespace_id, rows] of stored) load(bookOf(books, namespace_id, newBook), rows)

  const affected = new Map<string, AffectedRows>()
  let is_moved = false
  for await (const page of readPages(pool, { shard, after: projected_seq, last: takeover.seq })) {
    const { moved_ms = 0 } = page
    if (moved_ms > 0) {
      is_moved = true
      for (const book of books.values()) postpone(book, moved_ms)
    }
    for (const { namespace_id, changes } of page.entries) {
      const book = bookOf(books, namespace_id, newBook)
      const rows = affected.get(namespace_id) ?? noAffectedRows()
      affected.set(namespace_id, rows)
      applyAll(book, changes, rows, (change) => {
        log.error({ namespace_id, change }, 'the tables have lost a lobby or player that the journal changes')
      })
    }
  }
  const snapshots = noRowSnapshots()
  for (const [namespace_id, book] of books) {
    const rows = affected.get(namespace_id) ?? noAffectedRows()
    // The tables must have the moved deadlines before they reflect the journal row that moved them.
    if (is_moved) addUnended(book, rows)
    takeSnapshots(book, namespace_id, rows, snapshots)
  }
  return { books, snapshots }
}

export function bookOf(books: Map<string, Book>, namespace_id: string, newBook: NewBook): Book {
  let book = books.get(namespace_id)
  if (book === undefined) {
    book = newBook(namespace_id)
    books.set(namespace_id, book)
  }
  return book
}

function applyAll(
  book: Book,
  changes: readonly Change[],
  affected: AffectedRows,
  onLost: (change: Change) => void,
): void {
  for (const change of changes) {
    if (!canApply(book, change)) {
      onLost(change)
      continue
    }
    addAffected(book, change, affected)
    apply(book, change)
  }
}

/**
 * Only a row that the database refused (projection.ts) is missing here. That lobby or player is lost; all others of the shard
 * must still be read.
 */
function canApply(book: Book, change: Change): boolean {
  switch (change.kind) {
    case 'lobby_created':
    case 'client_verified':
    case 'client_counted':
    case 'version_draining':
    case 'party_put':
    case 'ticket_put':
      return true
    case 'ticket_ended':
      return book.matching.get(change.player_id) !== undefined
    case 'party_ended':
      return book.parties.get(change.party_id) !== undefined
    case 'player_reserved':
      return book.lobbies.has(change.player.lobby_id)
    case 'player_connected':
    case 'player_dropped':
    case 'player_removed':
      return book.players.has(change.player_id)
    default:
      return book.lobbies.has(change.lobby_id)
  }
}

/** What the tables hold of one namespace. */
type StoredRows = { [N in TableName]: StoredOf<N>[] }

/** One snapshot of the database, so that the rows and the seq that they reflect belong together. */
async function readTables(
  pool: Pool,
  shard: number,
  now_ms: number,
): Promise<{ projected_seq: number; stored: Map<string, StoredRows> }> {
  await pool.query('insert into shards (shard, projected_seq) values ($1, 0) on conflict do nothing', [shard])
  return inSnapshot(pool, async (client) => {
    const { rows } = await client.query<{ projected_seq: number; are_filled: boolean[] }>(
      `select projected_seq, ${areFilledSql('$1', '$2')} as are_filled from shards where shard = $1`,
      [shard, loadedSince(now_ms)],
    )
    const { projected_seq, are_filled } = rows[0]!
    const stored = new Map<string, StoredRows>()
    // Most shards of most platforms are empty, and a start reads 64 of them.
    for (const [index, name] of TABLE_NAMES.entries()) {
      if (are_filled[index] === true) await readTable(client, name, shard, now_ms, stored)
    }
    return { projected_seq, stored }
  })
}

/** For each table whether it has a row that is loaded. `since`: the parameter with the values of loadedSince(). */
export function areFilledSql(shard: string, since: string): string {
  const exist = TABLE_NAMES.map((name, index) => {
    const where = tableOf(name).loaded.where.replace('$2', `(${since}::timestamptz[])[${index + 1}]`)
    return `exists (select from ${name} where ${name}.shard = ${shard} and (${where}))`
  })
  return `array[${exist.join(', ')}]`
}

/** For each table the time from which its rows are loaded. */
export function loadedSince(now_ms: number): Date[] {
  return TABLE_NAMES.map((name) => sinceOf(name, now_ms))
}

function sinceOf(name: TableName, now_ms: number): Date {
  return new Date(tableOf(name).loaded.since_ms?.(now_ms) ?? now_ms)
}

async function readTable(
  client: PoolClient,
  name: TableName,
  shard: number,
  now_ms: number,
  stored: Map<string, StoredRows>,
): Promise<void> {
  const { loaded, storedOf } = tableOf(name)
  const order = loaded.order_by === undefined ? '' : `order by ${loaded.order_by}`
  const since = loaded.since_ms === undefined ? [] : [sinceOf(name, now_ms)]
  const { rows } = await client.query<{ namespace_id: string }>(
    `select * from ${name} where shard = $1 and (${loaded.where}) ${order}`,
    [shard, ...since],
  )
  for (const row of rows) {
    const of_namespace = stored.get(row.namespace_id) ?? (forEachTable(() => []) as StoredRows)
    stored.set(row.namespace_id, of_namespace)
    const values: unknown[] = of_namespace[name]
    values.push(storedOf(row))
  }
}
