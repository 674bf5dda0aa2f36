// Two sockets joined after a 101, or from their first byte: bytes in, bytes out, each side as fast as the other takes
// them. The end of one direction is passed on and the other may finish, within a time. A side that is lost abnormally resets the other:
// a backend that never closes half-open sockets would otherwise keep a descriptor for every player whose connection
// broke.
import type { Socket } from 'node:net'
import { HALF_CLOSED_MS_MAX, HALF_CLOSED_TOTAL_MS_MAX, SPLICE_IDLE_MS_MAX, TCP_KEEP_ALIVE_MS } from './limits.ts'
import { breakOff } from './tls/tls.ts'

/** `first_byte_ms`: a connection over which nothing has moved yet is given up sooner. */
export type SpliceTimes = { idle_ms: number; first_byte_ms?: number }

/** Looks at the first bytes of the client. It is asked no more once it has let some pass. */
export type Gate = {
  /** What may pass now, with all that was held. */
  take: (chunk: Buffer) => Buffer | 'held' | 'refused'
  /** The same when no more comes. */
  end: () => Buffer | 'held' | 'refused'
}

const AFTER_HANDSHAKE: SpliceTimes = { idle_ms: SPLICE_IDLE_MS_MAX }

/** Both sockets belong to the splice from here on; it ends with them. */
export function splice(
  client: Socket,
  upstream: Socket,
  times: SpliceTimes = AFTER_HANDSHAKE,
  gate: Gate | null = null,
): void {
  const resetBoth = () => {
    breakOff(client)
    upstream.resetAndDestroy()
  }
  let is_half_closed = false
  const startHalfClosed = () => {
    client.setTimeout(HALF_CLOSED_MS_MAX)
    if (is_half_closed || client.destroyed) return
    is_half_closed = true
    // One that sends now and then to a side that never reads would go on for as long as the system's buffers last.
    const deadline = setTimeout(resetBoth, HALF_CLOSED_TOTAL_MS_MAX).unref()
    client.once('close', () => clearTimeout(deadline))
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
  carry(client, upstream, startHalfClosed, gate && { ...gate, refuse: resetBoth })
  carry(upstream, client, startHalfClosed, null)

  client.once('close', () => {
    if (!upstream.destroyed) upstream.resetAndDestroy()
  })
  upstream.once('close', () => {
    if (client.destroyed) return
    if (upstream.readableEnded) startHalfClosed()
    else breakOff(client)
  })
}

function carry(from: Socket, to: Socket, onEnd: () => void, gate: (Gate & { refuse: () => void }) | null): void {
  let undecided = gate
  const pass = (chunk: Buffer): void => {
    // What comes after the other side is gone has nowhere to go, and must not stand in the way of the end.
    if (to.writable && !to.write(chunk)) from.pause()
  }
  const passGate = (verdict: Buffer | 'held' | 'refused'): void => {
    if (verdict === 'held') return
    undecided = null
    if (verdict === 'refused') gate?.refuse()
    else if (verdict.length > 0) pass(verdict)
  }
  from.on('data', (chunk: Buffer) => {
    if (undecided === null) pass(chunk)
    else passGate(undecided.take(chunk))
  })
  to.on('drain', () => from.resume())
  to.once('close', () => from.resume())
  from.once('end', () => {
    if (undecided !== null) passGate(undecided.end())
    to.end()
    onEnd()
  })
}

function ignore(): void {}
