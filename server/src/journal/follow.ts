// Following a shard: its rows after a seq, handed over in order as they are committed. The matchmaker says on the channel
// 'journal' which shards have new rows (matchmaker/watch/readers.ts); every second they are looked for in any case.
import type { Context } from '../context.ts'
import { type Watch, watchChannel } from '../database/poller.ts'
import { JournalGap, READ_ROWS_MAX, type Row, readRows } from './read.ts'

/** Its payload: the numbers of the shards, between commas; an empty one stands for all of them. */
export const JOURNAL_CHANNEL = 'journal'
const LOOK_EVERY_MS = 1_000

export type Following = {
  shard: number
  /** The last seq that is known already. */
  after: number
  /** Waited for; a row that it throws on is handed over again with the next look. */
  take: (row: Row) => void | Promise<void>
  /** What comes next has been removed as old: nothing is handed over any more, the tables must be read anew. */
  onGap: () => void
}

/** Until it is closed, which waits for the row that is being taken. */
export function followShard(
  ctx: Pick<Context, 'pool' | 'listener' | 'log'>,
  following: Following,
): Pick<Watch, 'close'> {
  const { shard, take } = following
  let { after } = following
  let is_over = false

  async function look(): Promise<void> {
    for (let count = READ_ROWS_MAX; count === READ_ROWS_MAX && !is_over; ) {
      const rows = await readRows(ctx.pool, { shard, after })
      for (const row of rows) {
        if (is_over) return
        await take(row)
        after = row.seq
      }
      count = rows.length
    }
  }

  const watch = watchChannel(ctx, {
    channel: JOURNAL_CHANNEL,
    concerns: (payload) => payload === '' || payload.split(',').includes(String(shard)),
    every_ms: LOOK_EVERY_MS,
    async look() {
      if (is_over) return
      try {
        await look()
      } catch (error) {
        if (!(error instanceof JournalGap)) throw error
        is_over = true
        following.onGap()
      }
    },
    failure: 'the journal could not be followed; trying again',
  })
  return {
    close() {
      is_over = true
      return watch.close()
    },
  }
}
