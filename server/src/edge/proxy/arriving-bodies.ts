// Bodies on their way from a client to a role. A small body of a known length is collected here before the role is asked:
// a client that sends one byte and stops holds a place and some memory here, and no connection to the role. Most bodies
// come with their head, and pass without a copy. Larger bodies stream, and all must come at a minimum rate.
import { ApiError } from '@muster/contract'
import { ClientShare } from '../../addresses/client-share.ts'
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
import { placeIn, poolFull } from './pools.ts'

export type ArrivingBodies = {
  /** Calls `onArrived` once the body is there, at once if it is. Throws what placeIn() throws. */
  collect: (exchange: Exchange, onArrived: () => void) => void
  /** Of an exchange whose body is being collected: what has come. Returns the bytes that are to be taken, once all are there. */
  take: (exchange: Exchange, chunk: Buffer) => Buffer | null
  /** Nobody waits for the body any more. */
  drop: (exchange: Exchange) => void
  /** With each tick: refuses an exchange whose body comes too slowly. Returns whether it did. */
  refuseSlow: (exchange: Exchange) => boolean
}

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
  /** Of a large body; 0: any rate will do. */
  large_bytes_per_second_min: number
  pool?: PoolLimits
}

export function createArrivingBodies({
  ticks,
  refuse,
  large_bytes_per_second_min,
  pool = ARRIVING_POOL,
}: ArrivingOptions): ArrivingBodies {
  const share = new ClientShare(pool)
  const large_bytes_min = (large_bytes_per_second_min * LARGE_BODY_PACE_MS) / MS_PER_SECOND

  function collect(exchange: Exchange, onArrived: () => void): void {
    const { connection, body, head, source } = exchange
    const pending = connection.pending?.length ?? 0
    const is_small = typeof body.framing === 'number' && body.framing <= SMALL_BODY_BYTES_MAX
    if (!is_small || body.is_done || pending >= body.left) {
      onArrived()
      return
    }
    const place = placeIn(share, 'arriving', source, () => {
      exchange.arriving = null
      exchange.keeps_alive = false
      refuse.request(exchange, poolFull('arriving'))
    })
    if (head.expects_continue) {
      head.expects_continue = false
      connection.socket.write(CONTINUE, 'latin1')
    }
    exchange.arriving = { bytes: Buffer.alloc(0), received: 0, since: ticks.now, place, onArrived }
    const begun = connection.pending
    connection.pending = null
    if (begun !== null) append(exchange.arriving, begun, body.left)
  }

  function take(exchange: Exchange, chunk: Buffer): Buffer | null {
    const { arriving, body } = exchange
    append(arriving!, chunk, body.left)
    if (arriving!.received < body.left) return null
    drop(exchange)
    return arriving!.bytes.subarray(0, arriving!.received)
  }

  function drop(exchange: Exchange): void {
    exchange.arriving?.place.leave()
    exchange.arriving = null
  }

  function refuseSlow(exchange: Exchange): boolean {
    const is_slow = exchange.arriving === null ? isSlowLarge(exchange) : isSlowSmall(exchange)
    if (!is_slow) return false
    drop(exchange)
    exchange.keeps_alive = false
    refuse.request(exchange, new ApiError('API_REQUEST_TIMEOUT', {}, { message: 'The body comes too slowly.' }))
    return true
  }

  function isSlowSmall({ arriving }: Exchange): boolean {
    const { since, received } = arriving!
    const waited = ticks.now - since
    return waited > SMALL_BODY_TICKS || (waited > GRACE_TICKS && received < (waited - GRACE_TICKS) * BYTES_PER_TICK_MIN)
  }

  /** What has come and is not taken waits for the role, and is not the client's fault. */
  function isSlowLarge({ connection, body, wire }: Exchange): boolean {
    const is_streaming = wire?.is_begun && wire.upstream!.role !== null && !body.is_done
    if (!is_streaming || wire.socket.writableNeedDrain || connection.pending !== null) {
      connection.pace = null
      return false
    }
    const { bytesRead } = connection.socket
    connection.pace ??= { since: ticks.now, bytes: bytesRead }
    const { since, bytes } = connection.pace
    if (ticks.now - since < PACE_TICKS) return false
    connection.pace = null
    return bytesRead - bytes < large_bytes_min
  }

  return { collect, take, drop, refuseSlow }
}

/** Grows by doubling: each byte is copied a bounded number of times, in however small pieces it comes. */
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
