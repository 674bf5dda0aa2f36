// Reads the journal by seq. A shard's rows become visible in the order of their seq and without gaps, so a reader that
// continues after its last seq misses no row. Only old rows are removed, the oldest first, and not those that a registered
// reader still needs (matchmaker/retention.ts).
import type { ClientBase, Pool } from 'pg'
import { decodePage, type Page } from './pages.ts'

/** Rows read at a time, of some 100 KB each at most. */
export const READ_ROWS_MAX = 1_000

export type Row = { seq: number; page: Page }

/** The next row has been removed as old, so its changes are only in the tables. */
export class JournalGap extends Error {
  constructor(shard: number, seq: number) {
    super(`shard ${shard} has no row ${seq} in its journal`)
    this.name = 'JournalGap'
  }
}

/** The rows after `after`, in order, `rows_max` at most. Throws JournalGap. */
export async function readRows(
  db: Pool | ClientBase,
  { shard, after, rows_max = READ_ROWS_MAX }: { shard: number; after: number; rows_max?: number },
): Promise<Row[]> {
  const { rows } = await db.query<{ seq: number; payload: Buffer }>({
    name: 'journal-read',
    text: 'select seq, payload from journal where shard = $1 and seq > $2 order by seq limit $3',
    values: [shard, after, rows_max],
  })
  return inOrder(rows, shard, after)
}

/** The rows of several shards at once. `after`: the last seq of each. Shards without new rows are omitted. */
export async function readTails(
  db: Pool | ClientBase,
  after: ReadonlyMap<number, number>,
  rows_max: number,
): Promise<Map<number, Row[]>> {
  const { rows } = await db.query<{ shard: number; seq: number; payload: Buffer }>({
    name: 'journal-read-tails',
    text: `select position.shard, tail.seq, tail.payload
      from unnest($1::smallint[], $2::bigint[]) as position (shard, after) cross join lateral (
        select seq, payload from journal where shard = position.shard and seq > position.after order by seq limit $3
      ) as tail`,
    values: [[...after.keys()], [...after.values()], rows_max],
  })
  const tails = [...Map.groupBy(rows, ({ shard }) => shard)]
  return new Map(tails.map(([shard, tail]) => [shard, inOrder(tail, shard, after.get(shard)!)]))
}

function inOrder(rows: readonly { seq: number; payload: Buffer }[], shard: number, after: number): Row[] {
  return rows.map(({ seq, payload }, index) => {
    if (seq !== after + 1 + index) throw new JournalGap(shard, after + 1 + index)
    return { seq, page: decodePage(payload) }
  })
}

/** The pages after `after`, in order, up to and including `last`, which exists. */
export async function* readPages(
  db: Pool | ClientBase,
  { shard, after, last }: { shard: number; after: number; last: number },
): AsyncGenerator<Page> {
  while (after < last) {
    const rows = await readRows(db, { shard, after, rows_max: Math.min(READ_ROWS_MAX, last - after) })
    if (rows.length === 0) throw new JournalGap(shard, after + 1)
    for (const row of rows) yield row.page
    after = rows.at(-1)!.seq
  }
}
