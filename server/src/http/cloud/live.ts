// The WebSockets of the hub's pages: the running lobbies of a namespace, and the log of a lobby. Control characters in a
// log are replaced before it is sent.
import {
  ApiError,
  getAnalyticsMatchmakerLive,
  getLobbyLogs,
  type LiveMessage,
  type LogMessage,
  visibleText,
} from '@musterhost/contract'
import type { LiveLobbies } from '../../cloud/lobbies/live.ts'
import { liveLobbies, requireLive } from '../../cloud/lobbies/live-feeds.ts'
import { type LogReaders, requireLobby, requirePosition, streamOf } from '../../cloud/lobbies/logs.ts'
import type { Feed, Feeds, FeedWish } from '../../cloud/lobbies/shared-feeds.ts'
import { mainUrl } from '../../config/addresses.ts'
import type { Context } from '../../context.ts'
import { type Implementation, implement } from '../implement.ts'
import type { OpenSocket, SocketRoute } from '../sockets.ts'

/** A page that receives nothing for longer than this treats the connection as lost. */
const HEARTBEAT_MS = 15_000

export const live: readonly Implementation[] = [
  implement(getAnalyticsMatchmakerLive, ({ ctx, caller, params, query }) =>
    liveLobbies(ctx, caller, { ...params, watch_index: query.watch_index }),
  ),
]

type Params = { game_id: string; namespace_id: string; lobby_id: string }

/** Only pages of the hub may open these sockets. */
export function requireHub(ctx: Context): SocketRoute['requireOrigin'] {
  return (origin) => {
    if (origin === mainUrl(ctx.config)) return
    throw new ApiError('API_FORBIDDEN', {}, { message: 'Only pages of the hub may listen here.' })
  }
}

export function liveLobbiesSocket(ctx: Context, feeds: Feeds<LiveLobbies>): SocketRoute {
  /** Subscribers in the same state receive the same message, which is serialised once. */
  const encoded = new WeakMap<LiveMessage, Buffer>()
  function bytesOf(message: LiveMessage): Buffer {
    const bytes = encoded.get(message) ?? Buffer.from(JSON.stringify(message))
    encoded.set(message, bytes)
    return bytes
  }

  return {
    operation: getAnalyticsMatchmakerLive,
    token_member: 'token',
    requireOrigin: requireHub(ctx),
    admit: ({ caller, params, query }) => requireLive(ctx, caller, wishOf(params, query)),

    async serve(socket, { client_key, params, query }) {
      const { namespace_id, watch_index } = wishOf(params, query)
      const { feed, leave } = await feeds.enter(namespace_id, client_key)
      const sendMessage = (message: LiveMessage): Promise<void> => socket.send(bytesOf(message))
      try {
        let known = feed.live()
        let sent = watch_index === undefined ? known.snapshot() : known.since(watch_index)
        await sendMessage(sent.message)
        await sendNews(socket, feed, {
          next() {
            const live = feed.live()
            if (live === known && live.revision <= sent.revision) return null
            sent = live === known ? live.since(sent.revision) : live.snapshot()
            known = live
            return sendMessage(sent.message)
          },
          beat: () => sendMessage(feed.live().heartbeat()),
        })
      } finally {
        leave()
      }
    },
  }
}

export function lobbyLogSocket(ctx: Context, readers: LogReaders): SocketRoute {
  return {
    operation: getLobbyLogs,
    token_member: 'token',
    requireOrigin: requireHub(ctx),
    async admit({ caller, params, query }) {
      const { game_id, lobby_id } = params as Params
      await requireLobby(ctx, caller, game_id, lobby_id)
      if (query.watch_index !== undefined) requirePosition(query.watch_index)
    },

    async serve(socket, { params, query }) {
      const { lobby_id } = params as Params
      const stream = streamOf(query.stream as 'std_out' | 'std_err')
      let index = query.watch_index
      for (let is_complete = false; !is_complete && socket.isOpen(); ) {
        const deadline_ms = performance.now() + HEARTBEAT_MS
        const isOver = (): boolean => !socket.isOpen() || performance.now() >= deadline_ms
        const news = await readers.next(lobby_id, stream, index, isOver)
        const lines = news.lines.map(({ ts, bytes }) => ({ ts: ts.toISOString(), text: visibleText(bytes.toString()) }))
        ;({ index, is_complete } = news)
        const has_news = lines.length > 0 || is_complete
        const message: LogMessage = has_news
          ? { kind: 'lines', index, lines, is_complete }
          : { kind: 'heartbeat', index }
        await socket.send(JSON.stringify(message))
      }
    },
  }
}

export function wishOf(params: unknown, { watch_index }: { watch_index?: string }): FeedWish {
  return { ...(params as Omit<FeedWish, 'watch_index'>), watch_index }
}

/**
 * Sends what is new until the socket is over, and a heartbeat after each silence. `next` returns null where nothing is new.
 */
export async function sendNews(
  { isOpen, over }: OpenSocket,
  feed: Feed<unknown>,
  { next, beat }: { next: () => Promise<void> | null; beat: () => Promise<void> },
): Promise<void> {
  let end = (_has_news: boolean): void => {}
  const silence = (): void => end(false)
  const stopHearing = feed.onNews(() => end(true))
  over.addEventListener('abort', silence)
  try {
    while (isOpen()) {
      const sending = next()
      if (sending !== null) {
        await sending
        continue
      }
      const { promise, resolve } = Promise.withResolvers<boolean>()
      end = resolve
      const timer = setTimeout(silence, HEARTBEAT_MS)
      if (!(await promise)) await beat()
      clearTimeout(timer)
    }
  } finally {
    over.removeEventListener('abort', silence)
    stopHearing()
  }
}
