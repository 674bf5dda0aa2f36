// The requests for seats of a namespace as they end: as a list, and over a WebSocket.
import { type FindsMessage, getAnalyticsMatchmakerFinds } from '@musterhost/contract'
import { type LiveFinds, newestFinds, requireFinds } from '../../cloud/lobbies/find-feeds.ts'
import type { Feeds } from '../../cloud/lobbies/shared-feeds.ts'
import type { Context } from '../../context.ts'
import { type Implementation, implement } from '../implement.ts'
import type { SocketRoute } from '../sockets.ts'
import { requireHub, sendNews, wishOf } from './live.ts'

export const finds: readonly Implementation[] = [
  implement(getAnalyticsMatchmakerFinds, ({ ctx, caller, params, query }) =>
    newestFinds(ctx, caller, { ...params, watch_index: query.watch_index }),
  ),
]

export function findsSocket(ctx: Context, feeds: Feeds<LiveFinds>): SocketRoute {
  return {
    operation: getAnalyticsMatchmakerFinds,
    token_member: 'token',
    requireOrigin: requireHub(ctx),
    admit: ({ caller, params, query }) => requireFinds(ctx, caller, wishOf(params, query)),

    async serve(socket, { client_key, params, query }) {
      const { namespace_id, watch_index } = wishOf(params, query)
      const { feed, leave } = await feeds.enter(namespace_id, client_key)
      const sendMessage = (message: FindsMessage): Promise<void> => socket.send(JSON.stringify(message))
      try {
        const known = watch_index === undefined ? null : feed.live().totalAt(Number(watch_index))
        let sent = known ?? feed.live().total
        if (known === null) await sendMessage(feed.live().snapshot())
        await sendNews(socket, feed, {
          next() {
            const finds = feed.live()
            if (finds.total <= sent) return null
            const message = finds.since(sent)
            sent = finds.total
            return sendMessage(message)
          },
          beat: () => sendMessage({ kind: 'heartbeat', index: String(feed.live().seq) }),
        })
      } finally {
        leave()
      }
    },
  }
}
