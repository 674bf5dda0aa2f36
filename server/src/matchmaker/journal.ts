// The journal: what the books are, as rows that are only ever appended. One row holds all that one shard decided since
// the row before it. It is truth, event, outbox and replay in one.
import type { Pool } from 'pg'
import type { Change } from './changes.ts'

export const SHARD_COUNT = 64
/** A reload reads this many rows at a time. */
const READ_ROWS_MAX = 1_000

export type Entry = { namespace_id: string; changes: readonly Change[] }

/** `format` grows with the first change that older code could not read. A takeover row has no entries. */
export type Page = { format: 1; ms: number; entries: readonly Entry[] }

/** Which shard's journal a namespace is written in: by the last bits of its id, which are random. */
export function shardOf(namespace_id: string): number {
  return Number.parseInt(namespace_id.slice(-4), 16) % SHARD_COUNT
}

/** JSON in bytes: no text that a player or developer sends can make the database refuse the row. */
export function encodePage(page: Page): Buffer {
  return Buffer.from(JSON.stringify(page))
}

export function decodePage(payload: Buffer): Page {
  const page = JSON.parse(payload.toString()) as Page
  if (page.format !== 1) throw new Error(`the journal holds a page of format ${page.format}, newer than this program`)
  return page
}

/** The pages after `seq`, in order, up to and including `last`. */
export async function* readPages(
  pool: Pool,
  range: { shard: number; after: number; last: number },
): AsyncGenerator<Page> {
  let after = range.after
  while (after < range.last) {
    const { rows } = await pool.query<{ seq: number; payload: Buffer }>({
      name: 'journal-read',
      text: 'select seq, payload from journal where shard = $1 and seq > $2 and seq <= $3 order by seq limit $4',
      values: [range.shard, after, range.last, READ_ROWS_MAX],
    })
    for (const row of rows) {
      if (row.seq !== after + 1) throw new Error(`shard ${range.shard} has no row ${after + 1} in its journal`)
      after = row.seq
      yield decodePage(row.payload)
    }
    if (rows.length === 0) throw new Error(`shard ${range.shard} has no row ${after + 1} in its journal`)
  }
}
