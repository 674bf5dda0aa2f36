// Where the edge listens: it writes edge_ports, and the pool here learns of it, when the edge says that it opened some and
// every PORTS_EVERY_MS in case the word was lost.
import type { Context } from '../../context.ts'
import { type Watch, watchChannel } from '../../database/poller.ts'
import type { Books } from '../shards/books.ts'

const PORTS_EVERY_MS = 5_000

export type PortWatch = Pick<Watch, 'close'>

/** Resolves when it has looked once, or could not. */
export async function watchPorts(ctx: Context, books: Books): Promise<PortWatch> {
  const watch = watchChannel(ctx, {
    channel: 'edge_ports',
    every_ms: PORTS_EVERY_MS,
    async look() {
      books.openPorts(await ctx.db.selectFrom('edge_ports').select(['transport', 'port']).orderBy('port').execute())
    },
    failure: "the edge's ports could not be read; trying again",
  })
  await watch.looking()
  return watch
}
