// Two sockets joined after a 101: bytes in, bytes out, each side as fast as the other takes them. The end of one
// direction is passed on and the other may finish. A side that is lost abnormally resets the other: a backend that never
// closes half-open sockets would otherwise keep a descriptor for every player whose connection broke.
import type { Socket } from 'node:net'
import { HALF_CLOSED_MS_MAX, SPLICE_IDLE_MS_MAX, TCP_KEEP_ALIVE_MS } from './limits.ts'
import { breakOff } from './tls.ts'

/** Both sockets belong to the splice from here on; it ends with them. */
export function splice(client: Socket, upstream: Socket): void {
  let half_closed: NodeJS.Timeout | undefined
  const resetBoth = () => {
    breakOff(client)
    upstream.resetAndDestroy()
  }
  const startHalfClosed = () => {
    half_closed ??= setTimeout(resetBoth, HALF_CLOSED_MS_MAX)
  }

  // Why a socket broke does not matter, and both have a close event after it.
  client.on('error', ignore)
  upstream.on('error', ignore)
  client.setTimeout(SPLICE_IDLE_MS_MAX, resetBoth)
  upstream.setTimeout(0)
  for (const socket of [client, upstream]) {
    socket.setNoDelay(true)
    socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS)
  }
  carry(client, upstream, startHalfClosed)
  carry(upstream, client, startHalfClosed)

  client.once('close', () => {
    clearTimeout(half_closed)
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
