// Reads at which ports the edge listens, for the port pool: the edge writes edge_ports and sends a notification. The table
// is also read every PORTS_EVERY_MS, in case a notification was lost.
import type { Context } from '../../context.ts'
import { type Watch, watchChannel } from '../../database/poller.ts'
import type { Books } from '../shards/books.ts'

const PORTS_EVERY_MS = 5_000

export type PortWatch = Pick<Watch, 'close'>

/** Resolves when the ports have been read once, or could not be. */
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
