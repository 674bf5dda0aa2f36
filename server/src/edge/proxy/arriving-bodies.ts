// Bodies on their way from a client to a role. A small body of a known length is collected before the role gets the request.
// A client that sends one byte and stops then holds a slot and some memory of the edge, but no connection to the role. Most
// bodies arrive together with their head, and are not copied. Larger bodies are streamed. All have a minimum rate.
import { ApiError } from '@musterhost/contract'
import { ClientShare, type SharedShare } from '../../addresses/client-share.ts'
import type { SmallBodies } from '../http/connections.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Refuse } from '../http/refuse.ts'
import { type Ticks, ticksOf } from '../http/ticks.ts'
import {
  ARRIVING_POOL,
  BODY_BYTES_PER_SECOND_MIN,
  HEADER_CHECK_MS,
  LARGE_BODY_PACE_MS,
  type PoolLimits,
  SMALL_BODY_BYTES_MAX,
  SMALL_BODY_GRACE_MS,
  SMALL_BODY_MS_MAX,
} from '../limits.ts'
import { poolFull, slotIn } from './pools.ts'

const MS_PER_SECOND = 1_000
const SMALL_BODY_TICKS = ticksOf(SMALL_BODY_MS_MAX)
const GRACE_TICKS = ticksOf(SMALL_BODY_GRACE_MS)
const PACE_TICKS = ticksOf(LARGE_BODY_PACE_MS)
const BYTES_PER_TICK_MIN = (BODY_BYTES_PER_SECOND_MIN * HEADER_CHECK_MS) / MS_PER_SECOND
const BUFFER_BYTES_MIN = 1_024
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'

export type ArrivingOptions = {
  ticks: Ticks
  refuse: Refuse
  /** The minimum rate of a large body; 0: none. */
  large_bytes_per_second_min: number
  pool?: PoolLimits
  /** The same pool of other edge processes. */
  shared?: SharedShare | null
}

export class ArrivingBodies implements SmallBodies {
  readonly #ticks: Ticks
  readonly #refuse: Refuse
  readonly #share: ClientShare
  readonly #large_bytes_min: number

  constructor({ ticks, refuse, large_bytes_per_second_min, pool = ARRIVING_POOL, shared = null }: ArrivingOptions) {
    this.#ticks = ticks
    this.#refuse = refuse
    this.#share = new ClientShare(pool, shared)
    this.#large_bytes_min = (large_bytes_per_second_min * LARGE_BODY_PACE_MS) / MS_PER_SECOND
  }

  /** Calls `onArrived` once a small body is complete, and at once for every other body. Throws the refusals of slotIn(). */
  collect(exchange: Exchange, onArrived: () => void): void {
    const { connection, body, head, client_key } = exchange
    const pending = connection.pending?.length ?? 0
    const is_small = typeof body.framing === 'number' && body.framing <= SMALL_BODY_BYTES_MAX
    if (!is_small || body.is_done || pending >= body.left) {
      onArrived()
      return
    }
    const slot = slotIn(this.#share, 'arriving', client_key, () => {
      exchange.arriving = null
      exchange.keeps_alive = false
      this.#refuse.request(exchange, poolFull('arriving'))
    })
    if (head.expects_continue) {
      head.expects_continue = false
      connection.socket.write(CONTINUE, 'latin1')
    }
    exchange.arriving = { bytes: Buffer.alloc(0), received: 0, since: this.#ticks.now, slot, onArrived }
    const begun = connection.pending
    connection.pending = null
    if (begun !== null) append(exchange.arriving, begun, body.left)
  }

  take(exchange: Exchange, chunk: Buffer): Buffer | null {
    const { arriving, body } = exchange
    append(arriving!, chunk, body.left)
    if (arriving!.received < body.left) return null
    this.drop(exchange)
    return arriving!.bytes.subarray(0, arriving!.received)
  }

  drop(exchange: Exchange): void {
    exchange.arriving?.slot.leave()
    exchange.arriving = null
  }

  refuseSlow(exchange: Exchange): boolean {
    const is_slow = exchange.arriving === null ? this.#isSlowLarge(exchange) : this.#isSlowSmall(exchange)
    if (!is_slow) return false
    this.drop(exchange)
    exchange.keeps_alive = false
    this.#refuse.request(exchange, new ApiError('API_REQUEST_TIMEOUT', {}, { message: 'The body comes too slowly.' }))
    return true
  }

  #isSlowSmall({ arriving }: Exchange): boolean {
    const { since, received } = arriving!
    const waited = this.#ticks.now - since
    return waited > SMALL_BODY_TICKS || (waited > GRACE_TICKS && received < (waited - GRACE_TICKS) * BYTES_PER_TICK_MIN)
  }

  /** Bytes that have arrived and wait for the role do not count against the client. Lobbies have no minimum rate. */
  #isSlowLarge({ connection, body, responder, lobby }: Exchange): boolean {
    const upstream = responder?.upstream ?? null
    const is_streaming = upstream?.is_begun && lobby === null && !body.is_done
    if (!is_streaming || upstream.socket.writableNeedDrain || connection.pending !== null) {
      connection.pace = null
      return false
    }
    const { bytesRead } = connection.socket
    connection.pace ??= { since: this.#ticks.now, bytes: bytesRead }
    const { since, bytes } = connection.pace
    if (this.#ticks.now - since < PACE_TICKS) return false
    connection.pace = null
    return bytesRead - bytes < this.#large_bytes_min
  }
}

/** Doubles the buffer when it is full: each byte is copied a bounded number of times, however small the chunks are. */
function append(arriving: NonNullable<Exchange['arriving']>, chunk: Buffer, length: number): void {
  const received = arriving.received + chunk.length
  if (received > arriving.bytes.length) {
    const capacity = Math.max(received, Math.min(length, Math.max(BUFFER_BYTES_MIN, arriving.bytes.length * 2)))
    const bytes = Buffer.allocUnsafe(capacity)
    arriving.bytes.copy(bytes, 0, 0, arriving.received)
    arriving.bytes = bytes
  }
  chunk.copy(arriving.bytes, arriving.received)
  arriving.received = received
}
