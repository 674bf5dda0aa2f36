// The requests for seats of a namespace as they end: as a list, and over a WebSocket.
import { type FindsMessage, getAnalyticsMatchmakerFinds } from '@musterhost/contract'
import { type LiveFinds, newestFinds, requireFinds } from '../../cloud/lobbies/find-feeds.ts'
import type { Feeds } from '../../cloud/lobbies/shared-feeds.ts'
import type { Context } from '../../context.ts'
import { type Implementation, implement } from '../implement.ts'
import type { SocketRoute } from '../sockets.ts'
import { hasNewsInTime, requireHub } from './live.ts'

export const finds: readonly Implementation[] = [
  implement(getAnalyticsMatchmakerFinds, ({ ctx, caller, params, query }) =>
    newestFinds(ctx, caller, params, query.watch_index),
  ),
]

type Params = { game_id: string; namespace_id: string }

export function findsSocket(ctx: Context, feeds: Feeds<LiveFinds>): SocketRoute {
  return {
    operation: getAnalyticsMatchmakerFinds,
    token_member: 'token',
    requireOrigin: requireHub(ctx),
    admit: ({ caller, params, query }) => requireFinds(ctx, caller, params as Params, query.watch_index),

    async serve(socket, { client_key, params, query }) {
      const { feed, leave } = await feeds.enter((params as Params).namespace_id, client_key)
      let wake = (): void => {}
      const stopHearing = feed.onNews(() => wake())
      const sendMessage = (message: FindsMessage): Promise<void> => socket.send(JSON.stringify(message))
      try {
        const { watch_index } = query
        const known = watch_index === undefined ? null : feed.live().totalAt(Number(watch_index))
        let sent = known ?? feed.live().total
        if (known === null) await sendMessage(feed.live().snapshot())
        while (socket.isOpen()) {
          const finds = feed.live()
          if (finds.total > sent) {
            const message = finds.since(sent)
            sent = finds.total
            await sendMessage(message)
            continue
          }
          const has_news = await hasNewsInTime(socket.over, (heard) => {
            wake = heard
          })
          if (!has_news) await sendMessage({ kind: 'heartbeat', index: String(feed.live().seq) })
        }
      } finally {
        stopHearing()
        leave()
      }
    },
  }
}
