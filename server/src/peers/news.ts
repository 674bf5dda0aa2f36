// Events for a WebSocket whose namespace has its books in another process: that process is asked, as by a long poll.
import { ApiError, type ErrorCode, type ResponseOf, watchEvents } from '@musterhost/contract'
import { queryOf, type ReadNews } from '../http/identity/live.ts'
import { ShardMoved } from '../matchmaker/shards/shard-moved.ts'
import type { OwnerForwarder } from './owner-forwarder.ts'

/** Reads with `readHere`, and in the other process where that throws ShardMoved. */
export function newsOfOwner(forwarder: OwnerForwarder, readHere: ReadNews): ReadNews {
  return async (opening, last_index, socket) => {
    try {
      return await readHere(opening, last_index, socket)
    } catch (error) {
      if (!(error instanceof ShardMoved)) throw error
      const { caller, client_ip, token } = opening
      const query = new URLSearchParams(
        Object.entries(queryOf(opening, last_index)).map(([name, value]) => [name, `${value}`]),
      )
      const path = query.size === 0 ? watchEvents.path : `${watchEvents.path}?${query}`
      const headers = { 'x-forwarded-for': client_ip, authorization: `Bearer ${token}` }
      const asked = { method: watchEvents.method, path, headers, body: null, is_repeatable: true, gone: socket.over }
      const response = await forwarder.ask(asked, caller, { shard: error.shard, steps: {} })
      if (response === null) return null
      const said = JSON.parse(response.body.toString()) as ResponseOf<typeof watchEvents> & { code?: ErrorCode }
      if (response.status !== STATUS_OK) throw new ApiError(said.code ?? 'API_NOT_AVAILABLE')
      return { is_empty: said.events.length === 0, index: said.watch.index, text: response.body }
    }
  }
}

const STATUS_OK = 200
