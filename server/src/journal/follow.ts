// Follows a shard: passes its rows after a seq to the reader, in order, as they are committed. The matchmaker notifies the
// channel 'journal' of shards with new rows (matchmaker/watch/readers.ts). The rows are also read every second.
import type { Context } from '../context.ts'
import { type Watch, watchChannel } from '../database/poller.ts'
import { CHANNELS } from '../wire/channels.ts'
import { JournalGap, READ_ROWS_MAX, type Row, readRows } from './read.ts'

const CHECK_EVERY_MS = 1_000

export type Following = {
  shard: number
  /** The last seq that the reader already has. */
  after: number
  /** Awaited. A row on which it throws is passed again by the next poll. */
  take: (row: Row) => void | Promise<void>
  /** The next row has been removed as old. No further row is passed, and the reader must read the tables again. */
  onGap: () => void
}

/** Follows until `close`, which waits for a row that is being taken. */
export function followShard(
  ctx: Pick<Context, 'pool' | 'listener' | 'log'>,
  following: Following,
): Pick<Watch, 'close'> {
  const { shard, take } = following
  let { after } = following
  let is_over = false

  async function read(): Promise<void> {
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
    channel: CHANNELS.journal,
    concerns: (payload) => payload === '' || payload.split(',').includes(String(shard)),
    every_ms: CHECK_EVERY_MS,
    async run() {
      if (is_over) return
      try {
        await read()
      } catch (error) {
        if (!(error instanceof JournalGap)) throw error
        is_over = true
        following.onGap()
      }
    },
    failure: 'journal could not be read; retrying',
  })
  return {
    close() {
      is_over = true
      return watch.close()
    },
  }
}
