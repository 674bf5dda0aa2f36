// Events by WebSocket, at the address of the long poll. A socket receives what a long poll would return, whenever there is
// news. Each message is read from the book after the index of the last message, so a client that opens a new socket with its
// last index misses nothing.
import { ApiError, watchEvents } from '@musterhost/contract'
import { mainUrl } from '../../config/addresses.ts'
import { type EventsQuery, eventsFor, requireIndex } from '../../matchmaker/calls/events.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { preparedText } from '../../text/json-text.ts'
import type { CallerOf } from '../../tokens/caller.ts'
import type { MountOptions } from '../mount-options.ts'
import type { Opening, OpenSocket, SocketRoute } from '../sockets.ts'

export function liveEvents({ ctx, namespaceOfOrigin }: MountOptions, read: ReadNews): SocketRoute {
  return {
    operation: watchEvents,
    token_member: 'identity_token',

    /** The page must belong to the identity's own namespace. */
    async requireOrigin(origin, caller) {
      if (origin === mainUrl(ctx.config)) return
      if (caller.kind === 'identity' && (await namespaceOfOrigin(origin)) === caller.namespace_id) return
      const message = 'This origin does not stand for the namespace of the identity.'
      throw new ApiError('API_FORBIDDEN', {}, { message })
    },

    admit({ query }) {
      if (query.watch_index !== undefined) requireIndex(query.watch_index)
    },

    async serve(socket, opening) {
      let last_index = opening.query.watch_index
      for (let is_first = true; socket.isOpen(); is_first = false) {
        const news = await read(opening, last_index, socket)
        if (news === null) continue
        last_index = news.index
        if (!news.is_empty || is_first) await socket.send(news.text)
      }
    },
  }
}

export type News = { is_empty: boolean; index: string; text: string | Buffer }

/** Resolves to the news after the index `last_index`, once there is some. Null: read again. */
export type ReadNews = (opening: Opening, last_index: string | undefined, socket: OpenSocket) => Promise<News | null>

/** Reads the books of this process. Throws ShardMoved where another process has them. */
export function readNews(matchmaker: Matchmaker): ReadNews {
  return async (opening, last_index, socket) => {
    const isGone = (): boolean => !socket.isOpen()
    const query = queryOf(opening, last_index)
    const { answer, ...news } = await eventsFor(matchmaker.context(), identityOf(opening), query, isGone)
    return { ...news, text: preparedText(answer) ?? '' }
  }
}

/** The query of the long poll that returns the next news. */
export function queryOf({ query }: Opening, last_index: string | undefined): EventsQuery {
  return {
    ...(last_index !== undefined && { watch_index: last_index }),
    ...(query.waiting_every_s !== undefined && { waiting_every_s: Number(query.waiting_every_s) }),
  }
}

function identityOf({ caller }: Opening): CallerOf<'identity'> {
  if (caller.kind === 'identity') return caller
  throw new ApiError('API_FORBIDDEN')
}
