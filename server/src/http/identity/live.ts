// Events by WebSocket, at the address of the long poll. A socket receives what a long poll would return, whenever there is
// news. Each message is read from the book after the index of the last message, so a client that opens a new socket with its
// last index misses nothing.
import { ApiError, watchEvents } from '@muster/contract'
import type { CallerOf } from '../../caller.ts'
import { mainUrl } from '../../config/addresses.ts'
import { preparedText } from '../../json-text.ts'
import { eventsFor, requireIndex } from '../../matchmaker/calls/events.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import type { MountOptions } from '../implement.ts'
import type { Opening, SocketRoute } from '../sockets.ts'

export function liveEvents({ ctx, namespaceOfOrigin }: MountOptions, matchmaker: Matchmaker): SocketRoute {
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
      const listener = identityOf(opening)
      const isGone = (): boolean => !socket.isOpen()
      let told = opening.query.watch_index
      for (let is_first = true; socket.isOpen(); is_first = false) {
        const news = await eventsFor(matchmaker.context(), listener, told, isGone)
        told = news.index
        if (!news.is_empty || is_first) await socket.send(preparedText(news.answer) ?? '')
      }
    },
  }
}

function identityOf({ caller }: Opening): CallerOf<'identity'> {
  if (caller.kind === 'identity') return caller
  throw new ApiError('API_FORBIDDEN')
}
