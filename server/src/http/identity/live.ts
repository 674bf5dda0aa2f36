// Events by WebSocket, at the address of the long poll. A socket receives what a long poll would return, whenever there is
// news. Each message is read from the book after the index of the last message, so a client that opens a new socket with its
// last index misses nothing. Where the books of the namespace are in another process, that process is asked as by a long poll.
import { ApiError, type ErrorCode, type ResponseOf, watchEvents } from '@musterhost/contract'
import type { CallerOf } from '../../caller.ts'
import { mainUrl } from '../../config/addresses.ts'
import { preparedText } from '../../json-text.ts'
import { type EventsAnswer, eventsFor, requireIndex } from '../../matchmaker/calls/events.ts'
import { ShardMoved } from '../../matchmaker/shards/shard-moved.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import type { MountOptions } from '../implement.ts'
import type { OwnerForwarder } from '../owner-forwarder.ts'
import type { Opening, SocketRoute } from '../sockets.ts'

export function liveEvents({ ctx, namespaceOfOrigin, forwarder }: MountOptions, matchmaker: Matchmaker): SocketRoute {
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
        const news = await newsOf(forwarder, opening, socket.over, told, () =>
          eventsFor(matchmaker.context(), listener, told, isGone),
        )
        if (news === null) continue
        told = news.index
        if (!news.is_empty || is_first) await socket.send(news.text)
      }
    },
  }
}

type News = { is_empty: boolean; index: string; text: string | Buffer }

/** `readHere` throws ShardMoved where another process has the books. Null: they are here now. */
async function newsOf(
  forwarder: OwnerForwarder | null,
  { caller, address, token }: Opening,
  over: AbortSignal,
  told: string | undefined,
  readHere: () => Promise<EventsAnswer>,
): Promise<News | null> {
  try {
    const { answer, ...news } = await readHere()
    return { ...news, text: preparedText(answer) ?? '' }
  } catch (error) {
    if (!(error instanceof ShardMoved) || forwarder === null) throw error
    const path = told === undefined ? watchEvents.path : `${watchEvents.path}?watch_index=${told}`
    const headers = { 'x-forwarded-for': address, authorization: `Bearer ${token}` }
    const asked = { method: watchEvents.method, path, headers, body: null, is_repeatable: true, gone: over }
    const response = await forwarder.ask(asked, caller, error)
    if (response === null) return null
    const said = JSON.parse(response.body.toString()) as ResponseOf<typeof watchEvents> & { code?: ErrorCode }
    if (response.status !== STATUS_OK) throw new ApiError(said.code ?? 'API_NOT_AVAILABLE')
    return { is_empty: said.events.length === 0, index: said.watch.index, text: response.body }
  }
}

const STATUS_OK = 200

function identityOf({ caller }: Opening): CallerOf<'identity'> {
  if (caller.kind === 'identity') return caller
  throw new ApiError('API_FORBIDDEN')
}
