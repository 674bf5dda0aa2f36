// Stops the lobbies of namespaces that have expired, in the shards of this process. The api deletes such a namespace when none of its lobbies runs
// (cloud/namespaces/expiry.ts).
import type { Context } from '../../context.ts'
import { type Poller, watchEvery } from '../../database/poller.ts'
import * as decide from '../book/decide.ts'
import type { Books } from '../shards/books.ts'

const STOP_EVERY_MS = 5_000
/** Namespaces whose lobbies one run stops; the rest is for the next. */
const NAMESPACES_MAX = 100
/** Lobbies of one namespace that one run stops. */
const LOBBIES_MAX = 1_000

export function stopExpiredLobbies(ctx: Context, books: Books): Pick<Poller, 'close'> {
  return watchEvery(ctx, STOP_EVERY_MS, {
    run: () => stopLobbies(ctx, books),
    failure: 'lobbies of expired namespaces could not be stopped; trying again',
  })
}

async function stopLobbies(ctx: Context, books: Books): Promise<void> {
  const { rows } = await ctx.pool.query<{ namespace_id: string }>({
    name: 'expired-namespaces',
    text: 'select namespace_id from namespaces where expire_ts <= $1 order by expire_ts limit $2',
    values: [new Date(ctx.now()), NAMESPACES_MAX],
  })
  for (const { namespace_id } of rows) {
    const lobbies = [...(books.book(namespace_id)?.lobbies.values() ?? [])]
    const running = lobbies.filter((lobby) => lobby.stop_ms === null).slice(0, LOBBIES_MAX)
    for (const { lobby_id } of running) {
      await books.commit(namespace_id, (book, { now_ms }) => decide.stop(book, lobby_id, 'requested', now_ms))
    }
    if (running.length === 0) continue
    ctx.log.info({ namespace_id, lobby_count: running.length }, 'stopped the lobbies of an expired namespace')
  }
}
