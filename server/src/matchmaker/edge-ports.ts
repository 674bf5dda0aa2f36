// Where the edge listens: it writes edge_ports, and the pool here learns of it, when the edge says that it opened some and
// every PORTS_EVERY_MS in case the word was lost.
import type { Context } from '../context.ts'
import type { Books } from './books.ts'

const PORTS_EVERY_MS = 1_000

export type PortWatch = { close: () => Promise<void> }

/** Resolves when it has looked once, or could not. */
export async function watchPorts(ctx: Context, books: Books): Promise<PortWatch> {
  let is_closed = false
  let looking: Promise<void> | null = null
  let look_again = false

  async function look(): Promise<void> {
    do {
      look_again = false
      try {
        books.openPorts(await ctx.db.selectFrom('edge_ports').select(['transport', 'port']).orderBy('port').execute())
      } catch (error) {
        ctx.log.warn({ err: error }, "the edge's ports could not be read; trying again")
      }
    } while (look_again && !is_closed)
    looking = null
  }

  function wake(): void {
    if (is_closed) return
    if (looking === null) looking = look()
    else look_again = true
  }

  const unsubscribe = ctx.listener.on('edge_ports', wake)
  const timer = setInterval(wake, PORTS_EVERY_MS)
  wake()
  await looking
  return {
    async close() {
      is_closed = true
      clearInterval(timer)
      unsubscribe()
      await looking
    },
  }
}
