// Joins two sockets, after a 101 response or from their first byte. Each side is read as fast as the other one writes. The end
// of one direction is forwarded, and the other direction may finish within a time limit. A side that breaks resets the
// other: a backend that never closes half-open sockets would otherwise keep a descriptor for every broken connection.
import type { Socket } from 'node:net'
import { HALF_CLOSED_MS_MAX, HALF_CLOSED_TOTAL_MS_MAX, SPLICE_IDLE_MS_MAX, TCP_KEEP_ALIVE_MS } from './limits.ts'
import { breakOff } from './tls/tls.ts'

/** Maxima of silence. `first_byte_ms`: for a connection that has not carried a byte yet. */
export type SpliceTimes = { idle_ms: number; first_byte_ms?: number }

/** Inspects the first bytes of the client, until it has let some pass. */
export type FirstBytesFilter = {
  /** Returns all bytes so far when they may pass. `held`: more bytes decide. */
  take: (chunk: Buffer) => FilterVerdict
  /** The same when the client has ended. */
  end: () => FilterVerdict
}

export type FilterVerdict = Buffer | 'held' | 'refused'

const AFTER_HANDSHAKE: SpliceTimes = { idle_ms: SPLICE_IDLE_MS_MAX }

/** Owns both sockets from here on. */
export function splice(
  client: Socket,
  upstream: Socket,
  times: SpliceTimes = AFTER_HANDSHAKE,
  filter: FirstBytesFilter | null = null,
): void {
  const resetBoth = () => {
    breakOff(client)
    breakOff(upstream)
  }
  let is_half_closed = false
  const startHalfClosed = () => {
    client.setTimeout(HALF_CLOSED_MS_MAX)
    if (is_half_closed || client.destroyed) return
    is_half_closed = true
    // A side that sends now and then to one that never reads would last until the system's buffers are full.
    const deadline = setTimeout(resetBoth, HALF_CLOSED_TOTAL_MS_MAX).unref()
    client.once('close', () => clearTimeout(deadline))
  }

  // The reason does not matter: a close event follows every error.
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
  forward(client, upstream, startHalfClosed, filter && { ...filter, refuse: resetBoth })
  forward(upstream, client, startHalfClosed, null)

  client.once('close', () => {
    if (!upstream.destroyed) breakOff(upstream)
  })
  upstream.once('close', () => {
    if (client.destroyed) return
    if (upstream.readableEnded) startHalfClosed()
    else breakOff(client)
  })
}

function forward(
  from: Socket,
  to: Socket,
  onEnd: () => void,
  filter: (FirstBytesFilter & { refuse: () => void }) | null,
): void {
  let undecided = filter
  const pass = (chunk: Buffer): void => {
    // Bytes that arrive after the other side is gone are dropped, and must not delay the end.
    if (to.writable && !to.write(chunk)) from.pause()
  }
  const passFilter = (verdict: FilterVerdict): void => {
    if (verdict === 'held') return
    undecided = null
    if (verdict === 'refused') filter?.refuse()
    else if (verdict.length > 0) pass(verdict)
  }
  from.on('data', (chunk: Buffer) => {
    if (undecided === null) pass(chunk)
    else passFilter(undecided.take(chunk))
  })
  to.on('drain', () => from.resume())
  to.once('close', () => from.resume())
  from.once('end', () => {
    if (undecided !== null) passFilter(undecided.end())
    to.end()
    onEnd()
  })
}

function ignore(): void {}
