// Two sockets joined after a 101, or from their first byte: bytes in, bytes out, each side as fast as the other takes
// them. The end of one direction is passed on and the other may finish. A side that is lost abnormally resets the other:
// a backend that never closes half-open sockets would otherwise keep a descriptor for every player whose connection
// broke.
import type { Socket } from 'node:net'
import { HALF_CLOSED_MS_MAX, SPLICE_IDLE_MS_MAX, TCP_KEEP_ALIVE_MS } from './limits.ts'
import { breakOff } from './tls/tls.ts'

/** `first_byte_ms`: a connection over which nothing has moved yet is given up sooner. */
export type SpliceTimes = { idle_ms: number; first_byte_ms?: number }

const AFTER_HANDSHAKE: SpliceTimes = { idle_ms: SPLICE_IDLE_MS_MAX }

/** Both sockets belong to the splice from here on; it ends with them. */
export function splice(client: Socket, upstream: Socket, times: SpliceTimes = AFTER_HANDSHAKE): void {
  const resetBoth = () => {
    breakOff(client)
    upstream.resetAndDestroy()
  }
  let is_half_closed = false
  const startHalfClosed = () => {
    is_half_closed = true
    client.setTimeout(HALF_CLOSED_MS_MAX)
  }

  // Why a socket broke does not matter, and both have a close event after it.
  client.on('error', ignore)
  upstream.on('error', ignore)
  client.on('timeout', resetBoth)
  client.setTimeout(times.first_byte_ms ?? times.idle_ms)
  if (times.first_byte_ms !== undefined) {
    const onFirstByte = () => {
      client.off('data', onFirstByte)
      upstream.off('data', onFirstByte)
      if (!is_half_closed) client.setTimeout(times.idle_ms)
    }
    client.on('data', onFirstByte)
    upstream.on('data', onFirstByte)
  }
  upstream.setTimeout(0)
  for (const socket of [client, upstream]) {
    socket.setNoDelay(true)
    socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS)
  }
  carry(client, upstream, startHalfClosed)
  carry(upstream, client, startHalfClosed)

  client.once('close', () => {
    if (!upstream.destroyed) upstream.resetAndDestroy()
  })
  upstream.once('close', () => {
    if (client.destroyed) return
    if (upstream.readableEnded) startHalfClosed()
    else breakOff(client)
  })
}

function carry(from: Socket, to: Socket, onEnd: () => void): void {
  from.on('data', (chunk: Buffer) => {
    // What comes after the other side is gone has nowhere to go, and must not stand in the way of the end.
    if (to.writable && !to.write(chunk)) from.pause()
  })
  to.on('drain', () => from.resume())
  to.once('close', () => from.resume())
  from.once('end', () => {
    to.end()
    onEnd()
  })
}

function ignore(): void {}
