// Clients' connections. Requests of one connection are read and responded to one after the other, in order. Requests that a
// client pipelines wait, up to READ_AHEAD_BYTES_MAX of them here and the rest in the system's buffers. A body waits likewise
// until something takes it. Every wait has a maximum, which is checked with every tick.
import type { Socket } from 'node:net'
import { ApiError } from '@musterhost/contract'
import { startReading, stopReading } from '../handles.ts'
import { HangUps } from '../hang-ups.ts'
import {
  DRAIN_BYTES_MAX,
  DRAIN_MS_MAX,
  HEADER_BYTES_MAX,
  HEADER_MS_MAX,
  KEEP_ALIVE_MS_MAX,
  READ_AHEAD_BYTES_MAX,
  REQUEST_IDLE_MS_MAX,
} from '../limits.ts'
import type { AdmittedConnection } from '../presence/connection-limits.ts'
import { isSecure, serverNameOf } from '../tls/tls.ts'
import { type Body, forwardBody, skipBody } from './body.ts'
import type { ClientSocket } from './client-socket.ts'
import { type ClientConnectionHandlers, type Connection, createExchange, type Exchange } from './exchange.ts'
import { type RequestHead, readRequestHead } from './head.ts'
import { LateCheck } from './late-check.ts'
import { findHeadEnd, mayBecomeHead } from './lines.ts'
import type { Refuse } from './refuse.ts'
import { breakResponse } from './response.ts'
import { listen } from './socket-listeners.ts'
import { type Ticks, ticksOf } from './ticks.ts'

/** `peer`: by which the edge's connections are limited. `lobby_id`: where the last request went. */
export type IdleFacts = { readonly peer: string; readonly lobby_id: string | null }

/** A connection that waits for a request, and may wait for it in another process. */
export type IdleConnection = IdleFacts & {
  readonly socket: Socket
  /** Reads nothing more. Returns false when a request has begun, and then continues. */
  hold: () => boolean
  /** Continues after `hold`. */
  resume: () => void
  /** Closes the descriptor of this process; another process has the connection. */
  release: () => void
}

export type ConnectionsOptions = {
  ticks: Ticks
  refuse: Refuse
  bodies: SmallBodies
  onRequest: (exchange: Exchange) => void
}

/** Collects small bodies before their requests are forwarded (proxy/arriving-bodies.ts). */
export type SmallBodies = {
  /** Adds a chunk to the body that is being collected. Returns the whole body once it is complete. */
  take: (exchange: Exchange, chunk: Buffer) => Buffer | null
  /** Stops collecting. */
  drop: (exchange: Exchange) => void
  /** Refuses an exchange whose body arrives too slowly. Returns whether it did. */
  refuseSlow: (exchange: Exchange) => boolean
}

const HEADER_TICKS = ticksOf(HEADER_MS_MAX)
const KEEP_ALIVE_TICKS = ticksOf(KEEP_ALIVE_MS_MAX)
const IDLE_TICKS = ticksOf(REQUEST_IDLE_MS_MAX)
const DRAIN_TICKS = ticksOf(DRAIN_MS_MAX)

/** What is known of a connection before its first request. `host` to `client_key`: those of an earlier stream, if any. */
type ConnectionFacts = Pick<
  Connection,
  'raw' | 'is_secure' | 'server_name' | 'visits' | 'host' | 'client_ip' | 'client_key'
>
export type StreamFacts = Omit<ConnectionFacts, 'raw' | 'is_secure'>

export class Connections implements ClientConnectionHandlers {
  readonly #options: ConnectionsOptions
  readonly #open = new Set<Connection>()
  readonly #hang_ups = new HangUps<Connection>((connection) => this.#onHungUp(connection))
  #is_closing = false

  constructor(options: ConnectionsOptions) {
    this.#options = options
    new LateCheck(options.ticks, this.#open, (connection) => this.#endLate(connection))
  }

  /** Reads requests from a connection. */
  serve(socket: Socket, admitted: AdmittedConnection): Connection {
    const connection = this.#begin(socket, admitted, {
      ...{ raw: socket, is_secure: isSecure(socket), server_name: serverNameOf(socket), visits: null },
      ...{ host: null, client_ip: '', client_key: '' },
    })
    admitted.isBusy = () => isBusy(connection)
    return connection
  }

  /** Reads the one request of a stream, whose head is sent by `socket` as if it came over a connection. */
  serveStream(socket: ClientSocket, admitted: AdmittedConnection, facts: StreamFacts): Connection {
    return this.#begin(socket, admitted, { raw: null, is_secure: true, ...facts })
  }

  /** Refuses what is no request, and ends the connection. */
  refuse(connection: Connection, error: unknown, is_head: boolean): void {
    this.#refuseBytes(connection, error, is_head)
  }

  #begin(socket: ClientSocket, admitted: AdmittedConnection, facts: ConnectionFacts): Connection {
    const { ticks } = this.#options
    const connection: Connection = {
      ...{ socket, admitted, ticks, handlers: this, peer: admitted.peer, ...facts },
      ...{ pending: null, scanned: 0, exchange: null },
      ...{ has_requested: false, is_ending: false, is_consuming: false, since: ticks.now, skip_left: 0 },
      ...{ pace: null, lobby_id: null, is_counted: false, player: null },
      unlisten: () => {},
    }
    this.#open.add(connection)
    connection.unlisten = listen(socket, {
      data: (chunk: Buffer) => this.#onData(connection, chunk),
      drain: () => this.#onDrain(connection),
      end: () => this.#hang_ups.add(connection),
      close: () => this.#onClose(connection),
    })
    return connection
  }

  /** The connections without TLS, player or request. */
  idle(): IdleConnection[] {
    return [...this.#open].flatMap((connection) => {
      const { raw: socket, peer, lobby_id } = connection
      if (socket === null || !isIdle(connection, socket)) return []
      const resume = (): void => startReading(socket)
      return {
        ...{ socket, peer, lobby_id, resume },
        hold() {
          stopReading(socket)
          const is_held = isIdle(connection, socket)
          if (!is_held) resume()
          return is_held
        },
        release: () => {
          this.release(connection)
          socket.destroy()
        },
      }
    })
  }

  /** Each connection ends after its next response. */
  retire(): void {
    this.#is_closing = true
  }

  /** Ends the connections that have no request. The others end after their response. */
  close(): void {
    this.retire()
    for (const { exchange, socket } of this.#open) if (exchange === null) socket.destroySoon()
  }

  sendBody(exchange: Exchange, before: string): void {
    const { connection, body } = exchange
    const upstream = exchange.responder!.upstream!
    const bytes = connection.pending
    connection.since = this.#options.ticks.now
    if (!isAllThere(body, bytes)) upstream.expectMoreBody()
    if (body.is_done || bytes === null) {
      if (before !== '') upstream.socket.write(before, 'latin1')
    } else {
      const from = { bytes, start: 0, end: bytes.length, is_own: true }
      keepRest(connection, bytes, forwardBody(body, from, upstream.socket, before, body.framing === 'chunked'))
      if (body.is_broken) {
        this.#lose(exchange)
        if (exchange.is_response_begun) breakResponse(exchange)
        else this.#refuseBytes(connection, new ApiError('API_BAD_REQUEST'), exchange.method === 'HEAD')
        return
      }
    }
    this.#consume(connection)
  }

  onResponseDone(exchange: Exchange): void {
    const { connection } = exchange
    if (exchange.body.is_done || !exchange.keeps_alive) {
      this.#next(exchange)
    } else {
      connection.since = this.#options.ticks.now
      connection.skip_left = DRAIN_BYTES_MAX
      this.#consume(connection)
    }
  }

  release(connection: Connection): Buffer | null {
    const { pending } = connection
    this.#open.delete(connection)
    connection.admitted.isBusy = () => true
    connection.exchange = null
    connection.pending = null
    connection.unlisten()
    return pending
  }

  #onData(connection: Connection, chunk: Buffer): void {
    if (connection.is_ending) {
      skip(connection, chunk.length)
      return
    }
    // The time for a head runs from the connection's start, or from the request's first byte.
    const { exchange, pending, has_requested } = connection
    const is_progress = exchange === null ? pending === null && has_requested : !exchange.is_response_done
    if (is_progress) connection.since = this.#options.ticks.now
    if (exchange !== null && exchange.arriving !== null) {
      this.#collect(exchange, chunk)
      return
    }
    connection.pending = connection.pending === null ? chunk : Buffer.concat([connection.pending, chunk])
    this.#consume(connection)
  }

  /** Adds a chunk to a small body that is being collected. */
  #collect(exchange: Exchange, chunk: Buffer): void {
    const { connection, arriving } = exchange
    connection.pending = this.#options.bodies.take(exchange, chunk)
    if (connection.pending === null) return
    arriving!.onArrived()
    this.#consume(connection)
  }

  /** Consumes pending bytes as far as a request or a body takes them. */
  #consume(connection: Connection): void {
    const { socket } = connection
    if (connection.is_consuming) return
    connection.is_consuming = true
    while (connection.pending !== null && !connection.is_ending && this.#consumeSome(connection, connection.pending)) {}
    connection.is_consuming = false
    const { pending, exchange } = connection
    const is_full = pending !== null && pending.length >= READ_AHEAD_BYTES_MAX
    const is_stuck = exchange?.responder?.upstream?.socket.writableNeedDrain && !exchange.body.is_done
    if (is_full || is_stuck) socket.pause()
    else if (socket.isPaused()) socket.resume()
  }

  /** Returns false when no more can be consumed for now. */
  #consumeSome(connection: Connection, bytes: Buffer): boolean {
    const { exchange } = connection
    // A client that does not read its responses gets no further ones.
    if (exchange === null) return !connection.socket.writableNeedDrain && this.#readRequest(connection, bytes)
    const { body } = exchange
    if (body.is_done) return false
    if (exchange.is_response_done) {
      const at = skipBody(body, bytes, 0, bytes.length)
      keepRest(connection, bytes, at)
      skip(connection, at)
      if (body.is_broken) this.#end(connection)
      else if (body.is_done) this.#next(exchange)
      return true
    }
    const upstream = exchange.responder?.upstream ?? null
    if (upstream === null || !upstream.is_begun || upstream.socket.writableNeedDrain) return false
    this.sendBody(exchange, '')
    return true
  }

  #readRequest(connection: Connection, bytes: Buffer): boolean {
    let start = 0
    // Some clients send an empty line after a body.
    while (bytes[start] === CR && bytes[start + 1] === LF) start += 2
    const head_end = findHeadEnd(bytes, start, connection.scanned, bytes.length)
    if (head_end === -1) {
      this.#refuseImpossibleHead(connection, bytes, start)
      connection.scanned = bytes.length
      return false
    }
    connection.scanned = 0
    connection.has_requested = true
    connection.since = this.#options.ticks.now
    let exchange: Exchange
    try {
      if (head_end - start > HEADER_BYTES_MAX) throw new ApiError('API_HEADERS_TOO_LARGE')
      const head = readRequestHead(bytes, start, head_end)
      if (connection.raw === null) markAsStream(head)
      exchange = createExchange(connection, head)
    } catch (error) {
      this.#refuseBytes(connection, error, isHead(bytes, start))
      return false
    }
    keepRest(connection, bytes, head_end + 2)
    if (this.#is_closing) exchange.keeps_alive = false
    connection.exchange = exchange
    this.#options.onRequest(exchange)
    return true
  }

  /** Refuses bytes that cannot become a head, whatever follows them. */
  #refuseImpossibleHead(connection: Connection, bytes: Buffer, start: number): void {
    const is_long = bytes.length - start > HEADER_BYTES_MAX
    if (!is_long && mayBecomeHead(bytes, Math.max(start, connection.scanned - 1), bytes.length)) return
    const error = new ApiError(is_long ? 'API_HEADERS_TOO_LARGE' : 'API_BAD_REQUEST')
    this.#refuseBytes(connection, error, isHead(bytes, start))
  }

  #next(exchange: Exchange): void {
    const { connection } = exchange
    exchange.is_over = true
    connection.exchange = null
    connection.since = this.#options.ticks.now
    if (exchange.keeps_alive && !connection.is_ending) this.#consume(connection)
    else this.#end(connection)
  }

  #onDrain(connection: Connection): void {
    connection.since = this.#options.ticks.now
    connection.exchange?.responder?.onDrain()
    if (!connection.is_ending) this.#consume(connection)
  }

  /** A client that ends its sending side counts as gone. */
  #onHungUp(connection: Connection): void {
    const { exchange } = connection
    // Meanwhile it was closed, or taken over without a notice of its end.
    if (!this.#open.has(connection)) {
      connection.socket.destroy()
      return
    }
    if (exchange !== null && !exchange.is_over) this.#lose(exchange)
    if (exchange?.is_response_begun && !exchange.is_response_done) breakResponse(exchange)
    else this.#end(connection)
  }

  #onClose(connection: Connection): void {
    const { exchange } = connection
    this.#open.delete(connection)
    connection.pending = null
    if (exchange !== null && !exchange.is_over) this.#lose(exchange)
  }

  #lose(exchange: Exchange): void {
    exchange.is_over = true
    this.#options.bodies.drop(exchange)
    if (!exchange.is_response_done) exchange.responder?.onLost()
  }

  /** Written bytes still leave. Received ones are read for a while: closing earlier would reset what was written. */
  #end(connection: Connection): void {
    connection.is_ending = true
    connection.pending = null
    connection.skip_left = DRAIN_BYTES_MAX
    connection.since = this.#options.ticks.now
    connection.socket.end()
    connection.socket.resume()
  }

  #refuseBytes(connection: Connection, error: unknown, is_head = false): void {
    this.#options.refuse.socket(connection.socket, error, is_head)
    this.#end(connection)
  }

  /** Returns whether the connection was late. */
  #endLate(connection: Connection): boolean {
    const { exchange, socket } = connection
    const waited = this.#options.ticks.now - connection.since
    if (connection.is_ending) {
      if (waited <= (socket.writableFinished ? DRAIN_TICKS : IDLE_TICKS)) return false
      socket.destroy()
    } else if (exchange !== null && !exchange.is_response_done) {
      if (waited <= IDLE_TICKS) return this.#options.bodies.refuseSlow(exchange)
      socket.destroy()
    } else if (exchange !== null) {
      if (waited <= DRAIN_TICKS) return false
      this.#end(connection)
    } else if (connection.pending !== null) {
      if (waited <= HEADER_TICKS) return false
      this.#refuseBytes(connection, new ApiError('API_REQUEST_TIMEOUT'))
    } else {
      if (waited <= (connection.has_requested ? KEEP_ALIVE_TICKS : HEADER_TICKS)) return false
      this.#end(connection)
    }
    return true
  }
}

/** A stream brings its own end, which frames a body of unknown length. */
function markAsStream(head: RequestHead): void {
  head.is_version_1_0 = true
  head.keeps_alive = false
}

/** Whether the connection serves a request, and not only waits for a role. */
export function isBusy({ exchange }: Connection): boolean {
  return exchange !== null && exchange.responder?.is_parked !== true
}

function isIdle({ is_secure, player, exchange, pending, is_ending }: Connection, socket: Socket): boolean {
  const is_quiet = exchange === null && pending === null && !is_ending
  return is_quiet && !is_secure && player === null && !socket.destroyed && socket.writableLength === 0
}

const CR = 0x0d
const LF = 0x0a

/** Bytes were dropped. Beyond the limit no more are read, and the client has DRAIN_MS_MAX to read the response. */
function skip(connection: Connection, length: number): void {
  connection.skip_left -= length
  if (connection.skip_left < 0) connection.socket.pause()
}

/** Whether a malformed request begins like a HEAD, whose client expects no body. */
function isHead(bytes: Buffer, start: number): boolean {
  return bytes.toString('latin1', start, start + HEAD.length) === HEAD
}

const HEAD = 'HEAD '

/** Whether these bytes hold the rest of the body. For a chunked body this is not known. */
function isAllThere(body: Body, bytes: Buffer | null): boolean {
  return body.is_done || (body.framing !== 'chunked' && bytes !== null && bytes.length >= body.left)
}

/** Bytes from `at` on stay pending. */
function keepRest(connection: Connection, bytes: Buffer, at: number): void {
  connection.pending = at === bytes.length ? null : at === 0 ? bytes : bytes.subarray(at)
}
