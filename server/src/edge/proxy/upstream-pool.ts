// Connections from the edge to backends. Each carries one request at a time, and is kept for the next one when request and
// response are complete. The most recently used connection is used first, so surplus ones grow old and are closed. A
// connection that carries a WebSocket handshake is never shared.
import type { Socket } from 'node:net'
import type { Body } from '../http/body.ts'
import type { BodyUpstream } from '../http/exchange.ts'
import { type Listeners, listen } from '../http/socket-listeners.ts'
import { type Ticks, ticksOf } from '../http/ticks.ts'
import {
  CONNECT_MS_MAX,
  FREE_SOCKET_MS_MAX,
  FREE_SOCKETS_MAX,
  FREE_SOCKETS_PER_TARGET_MAX,
  HANDSHAKE_MS_MAX,
} from '../limits.ts'
import { connectSharingReads, type NodeInternals } from '../node-internals.ts'
import type { Address } from '../routes/routes.ts'
import { isSecure } from '../tls/tls.ts'

/** The connections to one address, from one address. */
type Target<Request> = { key: string; count: number; free: UpstreamConnection<Request>[] }

export class UpstreamConnection<Request> implements BodyUpstream {
  readonly socket: Socket
  readonly target: Target<Request>
  /** For a WebSocket handshake, after which the connection belongs to one client. */
  readonly is_single: boolean
  is_connected = false
  /** The request that it carries; null: it is free. */
  request: Request | null = null
  /** The head of the request has been sent: it must not be sent again. */
  is_begun = false
  /** The tick at which the current wait began. */
  since: number
  /** What broke the connection. A failed write leaves it open, so that a response can still be read. */
  error: NodeJS.ErrnoException | null = null
  /** The beginning of a response's head. `scanned`: how much of it was scanned without finding the head's end. */
  pending: Buffer | null = null
  scanned = 0
  interim_responses = 0
  /** Null: the head of the response has not arrived yet. */
  response_body: Body | null = null
  to_chunks = false
  keeps_alive = false
  unlisten: () => void = () => {}
  readonly #internals: NodeInternals
  #expects_more_body = false

  constructor(
    socket: Socket,
    from: { target: Target<Request>; is_single: boolean; since: number; internals: NodeInternals },
  ) {
    this.socket = socket
    this.target = from.target
    this.is_single = from.is_single
    this.since = from.since
    this.#internals = from.internals
  }

  /**
   * Must be called before the first part of a body is written. A backend may respond and close before it has read all of the
   * body; later writes then fail. Such a failure is only recorded, because the response is still to be read.
   */
  expectMoreBody(): void {
    if (this.#expects_more_body) return
    this.#expects_more_body = true
    this.#internals.tolerateWriteErrors(this.socket, (error) => {
      if (this.request === null) return false
      this.error = error
      return true
    })
  }
}

export type UpstreamPoolOptions<Request> = {
  ticks: Ticks
  internals: NodeInternals
  onConnected: (upstream: UpstreamConnection<Request>) => void
  /** `length` bytes have arrived. `is_own`: nothing else uses their memory; otherwise they are valid until this returns. */
  onBytes: (upstream: UpstreamConnection<Request>, bytes: Buffer, length: number, is_own: boolean) => void
  onDrain: (upstream: UpstreamConnection<Request>) => void
  /** The backend has ended its sending side. */
  onEnd: (upstream: UpstreamConnection<Request>) => void
  onLost: (upstream: UpstreamConnection<Request>) => void
}

const CONNECT_TICKS = ticksOf(CONNECT_MS_MAX)
const FREE_TICKS = ticksOf(FREE_SOCKET_MS_MAX)
const HANDSHAKE_TICKS = ticksOf(HANDSHAKE_MS_MAX)

export class UpstreamPool<Request> {
  readonly #options: UpstreamPoolOptions<Request>
  readonly #targets = new Map<string, Target<Request>>()
  readonly #open = new Set<UpstreamConnection<Request>>()
  #free_count = 0

  constructor(options: UpstreamPoolOptions<Request>) {
    this.#options = options
    options.ticks.on(() => {
      for (const upstream of this.#open) this.#endLate(upstream)
    })
  }

  /** Returns a free connection or a new one; null: there are too many to this address. */
  take(
    address: Address,
    { is_single, sockets_max }: { is_single: boolean; sockets_max: number },
  ): UpstreamConnection<Request> | null {
    const target = this.#targetOf(address)
    while (!is_single && target.free.length > 0) {
      const upstream = target.free.pop()!
      this.#free_count--
      if (upstream.socket.writable && !upstream.socket.readableEnded) return upstream
      upstream.socket.destroy()
    }
    return target.count < sockets_max ? this.#connect(target, address, is_single) : null
  }

  /** Keeps a connection for the next request. Request and response must be complete, and no further byte received. */
  putBack(upstream: UpstreamConnection<Request>): void {
    const { target, socket } = upstream
    const is_full = this.#free_count >= FREE_SOCKETS_MAX || target.free.length >= FREE_SOCKETS_PER_TARGET_MAX
    if (is_full || !socket.writable) {
      socket.destroy()
      return
    }
    upstream.is_begun = false
    upstream.interim_responses = 0
    upstream.since = this.#options.ticks.now
    target.free.push(upstream)
    this.#free_count++
  }

  /** Gives up the connection: the caller owns its socket from here on. */
  release(upstream: UpstreamConnection<Request>): void {
    const { target } = upstream
    upstream.unlisten()
    upstream.unlisten = () => {}
    if (!this.#open.delete(upstream)) return
    const index = target.free.indexOf(upstream)
    if (index >= 0) {
      target.free.splice(index, 1)
      this.#free_count--
    }
    target.count--
    if (target.count === 0) this.#targets.delete(target.key)
  }

  /** Ends all connections to the address. */
  drop(address: Address): void {
    const target = this.#targetOf(address)
    for (const upstream of this.#open) if (upstream.target === target) upstream.socket.destroy()
    if (target.count === 0) this.#targets.delete(target.key)
  }

  close(): void {
    for (const upstream of this.#open) upstream.socket.destroy()
  }

  #targetOf({ hostname, port, path, local_address = '', tls }: Address): Target<Request> {
    const key = path ?? `${hostname} ${port} ${local_address}${tls === undefined ? '' : ' tls'}`
    let target = this.#targets.get(key)
    if (target === undefined) {
      target = { key, count: 0, free: [] }
      this.#targets.set(key, target)
    }
    return target
  }

  #connect(target: Target<Request>, address: Address, is_single: boolean): UpstreamConnection<Request> {
    const { ticks, internals, onConnected, onBytes, onDrain, onEnd, onLost } = this.#options
    const read = (shared: Buffer, length: number): void => onBytes(upstream, shared, length, false)
    const socket = connectSharingReads(address, { onRead: is_single ? undefined : read })
    const upstream = new UpstreamConnection<Request>(socket, { target, is_single, since: ticks.now, internals })
    target.count++
    this.#open.add(upstream)
    socket.once(isSecure(socket) ? 'secureConnect' : 'connect', () => {
      upstream.is_connected = true
      onConnected(upstream)
    })
    const listeners: Listeners = {
      drain: () => onDrain(upstream),
      end: () => onEnd(upstream),
      error: (error) => {
        upstream.error = error
      },
      close: () => {
        this.release(upstream)
        onLost(upstream)
      },
    }
    if (is_single) listeners.data = (chunk) => onBytes(upstream, chunk, chunk.length, true)
    upstream.unlisten = listen(socket, listeners)
    return upstream
  }

  #endLate(upstream: UpstreamConnection<Request>): void {
    const waited = this.#options.ticks.now - upstream.since
    if (!upstream.is_connected) {
      // A handshake of TLS has a limit of its own.
      if (upstream.socket.connecting && waited > CONNECT_TICKS)
        upstream.socket.destroy(new Error('The connection takes too long.'))
    } else if (upstream.request === null) {
      if (waited >= FREE_TICKS) upstream.socket.destroy()
    } else if (upstream.is_single && upstream.response_body === null && waited > HANDSHAKE_TICKS) {
      upstream.socket.destroy(new Error('The handshake takes too long.'))
    }
  }
}
