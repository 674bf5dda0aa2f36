// The connections from the edge to what is behind it: each carries one request at a time, and is kept for the next one when
// both sides have said all that they had to say. The one that was used last is used first, so that those that are not
// needed grow old and go. One that carries a WebSocket handshake is of no use to others.

import type { Target, UpstreamConnection } from '../http/exchange.ts'
import { type Listeners, listen } from '../http/socket-listeners.ts'
import { type Ticks, ticksOf } from '../http/ticks.ts'
import {
  CONNECT_MS_MAX,
  FREE_SOCKET_MS_MAX,
  FREE_SOCKETS_MAX,
  FREE_SOCKETS_PER_TARGET_MAX,
  HANDSHAKE_MS_MAX,
} from '../limits.ts'
import type { Address } from '../routes.ts'
import { connectSharingReads } from '../shared-reads.ts'

export type UpstreamPool = {
  /** Null: there are too many to this address. */
  take: (address: Address, options: { is_single: boolean; sockets_max: number }) => UpstreamConnection | null
  /** The request and its answer are over, and nothing else has come. */
  putBack: (wire: UpstreamConnection) => void
  /** The socket is somebody else's from here on. */
  release: (wire: UpstreamConnection) => void
  close: () => void
}

export type UpstreamPoolOptions = {
  ticks: Ticks
  onConnected: (wire: UpstreamConnection) => void
  /** So many bytes have come. `is_own`: their memory is nobody else's; otherwise they are good until this returns. */
  onBytes: (wire: UpstreamConnection, bytes: Buffer, length: number, is_own: boolean) => void
  onDrain: (wire: UpstreamConnection) => void
  /** The other side has finished. */
  onEnd: (wire: UpstreamConnection) => void
  onLost: (wire: UpstreamConnection) => void
}

const CONNECT_TICKS = ticksOf(CONNECT_MS_MAX)
const FREE_TICKS = ticksOf(FREE_SOCKET_MS_MAX)
const HANDSHAKE_TICKS = ticksOf(HANDSHAKE_MS_MAX)

export function createUpstreamPool(options: UpstreamPoolOptions): UpstreamPool {
  const { ticks, onBytes } = options
  const targets = new Map<string, Target>()
  const open = new Set<UpstreamConnection>()
  let free_count = 0
  ticks.on(() => {
    for (const wire of open) endLate(wire)
  })

  function targetOf({ hostname, port }: Address): Target {
    const key = `${hostname} ${port}`
    let target = targets.get(key)
    if (target === undefined) {
      target = { key, count: 0, free: [] }
      targets.set(key, target)
    }
    return target
  }

  function dial(target: Target, address: Address, is_single: boolean): UpstreamConnection {
    const read = (shared: Buffer, length: number): void => onBytes(wire, shared, length, false)
    const socket = connectSharingReads(address, { onRead: is_single ? undefined : read })
    const wire: UpstreamConnection = {
      ...{ socket, target, is_single, is_connected: false, exchange: null, upstream: null, attempt: 0 },
      ...{ is_begun: false, since: ticks.now, error: null, pending: null, looked_at: 0, interim_answers: 0 },
      ...{ outlives_writes: false, answer: null, to_chunks: false, keeps_alive: false, unlisten: () => {} },
    }
    target.count++
    open.add(wire)
    socket.once('connect', () => {
      wire.is_connected = true
      options.onConnected(wire)
    })
    const listeners: Listeners = {
      drain: () => options.onDrain(wire),
      end: () => options.onEnd(wire),
      error: (error) => {
        wire.error = error
      },
      close: () => {
        release(wire)
        options.onLost(wire)
      },
    }
    if (is_single) listeners.data = (chunk) => onBytes(wire, chunk, chunk.length, true)
    wire.unlisten = listen(socket, listeners)
    return wire
  }

  function take(
    address: Address,
    { is_single, sockets_max }: { is_single: boolean; sockets_max: number },
  ): UpstreamConnection | null {
    const target = targetOf(address)
    while (!is_single && target.free.length > 0) {
      const wire = target.free.pop()!
      free_count--
      if (wire.socket.writable && !wire.socket.readableEnded) return wire
      wire.socket.destroy()
    }
    return target.count < sockets_max ? dial(target, address, is_single) : null
  }

  function putBack(wire: UpstreamConnection): void {
    const { target, socket } = wire
    if (free_count >= FREE_SOCKETS_MAX || target.free.length >= FREE_SOCKETS_PER_TARGET_MAX || !socket.writable) {
      socket.destroy()
      return
    }
    wire.is_begun = false
    wire.interim_answers = 0
    wire.since = ticks.now
    target.free.push(wire)
    free_count++
  }

  function release(wire: UpstreamConnection): void {
    const { target } = wire
    wire.unlisten()
    wire.unlisten = () => {}
    if (!open.delete(wire)) return
    const index = target.free.indexOf(wire)
    if (index >= 0) {
      target.free.splice(index, 1)
      free_count--
    }
    target.count--
    if (target.count === 0) targets.delete(target.key)
  }

  function endLate(wire: UpstreamConnection): void {
    const waited = ticks.now - wire.since
    if (!wire.is_connected) {
      if (waited > CONNECT_TICKS) wire.socket.destroy(new Error('The connection takes too long.'))
    } else if (wire.exchange === null) {
      if (waited >= FREE_TICKS) wire.socket.destroy()
    } else if (wire.is_single && wire.answer === null && waited > HANDSHAKE_TICKS) {
      wire.socket.destroy(new Error('The handshake takes too long.'))
    }
  }

  return {
    take,
    putBack,
    release,
    close: () => {
      for (const wire of open) wire.socket.destroy()
    },
  }
}
