// What lobbies of other processes use, for the room of nodes and regions and for ports; and the ports that lobbies of this process
// do not use any more. Both are as they were a moment ago, and exact where a lobby is appended (shards/port-claims.ts,
// shards/room-claims.ts).
import type { Context } from '../../context.ts'
import { type Watch, watchEvery } from '../../database/poller.ts'
import { SHARD_COUNT } from '../../journal/pages.ts'
import type { Books } from '../shards/books.ts'

const READ_EVERY_MS = 1_000

/** Resolves when it has been read once, or could not be. */
export async function watchOtherLobbies(ctx: Context, books: Books): Promise<Pick<Watch, 'close'>> {
  let was_alone = false
  const watch = watchEvery(ctx, READ_EVERY_MS, {
    async run() {
      await books.releasePorts()
      const is_alone = books.shards().length === SHARD_COUNT
      if (!is_alone || !was_alone) await books.readOthers()
      was_alone = is_alone
    },
    failure: 'the ports of ended lobbies could not be released; trying again',
  })
  await watch.running()
  return watch
}
