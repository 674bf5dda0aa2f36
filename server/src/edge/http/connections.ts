// Clients' connections: requests are read from them and answered one after the other, in order. What a client sends
// ahead waits, up to READ_AHEAD_BYTES_MAX of it here and the rest in the system's buffers; so does a body that nobody can
// take yet. Each wait has its maximum, looked at with every tick.
import type { Socket } from 'node:net'
import { ApiError } from '@muster/contract'
import type { Guest } from '../connection-limits.ts'
import {
  DRAIN_BYTES_MAX,
  DRAIN_MS_MAX,
  HEADER_BYTES_MAX,
  HEADER_MS_MAX,
  KEEP_ALIVE_MS_MAX,
  LATE_ENDED_AT_ONCE_MAX,
  READ_AHEAD_BYTES_MAX,
  REQUEST_IDLE_MS_MAX,
} from '../limits.ts'
import type { ArrivingBodies } from '../proxy/arriving-bodies.ts'
import { isSecure } from '../tls/tls.ts'
import { breakAnswer } from './answer.ts'
import { type Body, carryBody, createBody, skipBody } from './body.ts'
import { tolerateWriteErrors } from './early-responses.ts'
import type { ClientConnectionHandlers, Connection, Exchange } from './exchange.ts'
import { type RequestHead, readRequestHead } from './head.ts'
import { findHeadEnd, mayBecomeHead } from './lines.ts'
import type { Refuse } from './refuse.ts'
import { listen } from './socket-listeners.ts'
import { type Ticks, ticksOf } from './ticks.ts'

export type Connections = {
  /** Takes a connection from here on. */
  serve: (socket: Socket, guest: Guest) => void
  /** Ends those without a request; the others end with their answer. */
  close: () => void
}

export type ConnectionsOptions = {
  ticks: Ticks
  refuse: Refuse
  bodies: ArrivingBodies
  onRequest: (exchange: Exchange) => void
  /** Nobody waits for the answer any more. */
  onLost: (exchange: Exchange) => void
}

const HEADER_TICKS = ticksOf(HEADER_MS_MAX)
const KEEP_ALIVE_TICKS = ticksOf(KEEP_ALIVE_MS_MAX)
const IDLE_TICKS = ticksOf(REQUEST_IDLE_MS_MAX)
const DRAIN_TICKS = ticksOf(DRAIN_MS_MAX)

export function createConnections(options: ConnectionsOptions): Connections {
  const { ticks, refuse, bodies } = options
  const open = new Set<Connection>()
  const keeper: ClientConnectionHandlers = { onAnswered, sendBody, release }
  let is_closing = false
  /** Where the look for late connections goes on; null: it has come to its end. */
  let looking: Iterator<Connection> | null = null
  ticks.on(() => {
    if (looking !== null) return
    looking = open.values()
    lookOn()
  })

  /** Thousands may be late at once: other requests are served between two batches. */
  function lookOn(): void {
    let ended_count = 0
    for (let next = looking!.next(); !next.done; next = looking!.next()) {
      if (!endLate(next.value) || ++ended_count < LATE_ENDED_AT_ONCE_MAX) continue
      setImmediate(lookOn)
      return
    }
    looking = null
  }

  function serve(socket: Socket, guest: Guest): void {
    const connection: Connection = {
      ...{ socket, guest, ticks, keeper, peer: guest.peer, is_secure: isSecure(socket) },
      ...{ host: null, client: '', source: '', pending: null, looked_at: 0, exchange: null },
      ...{ has_asked: false, is_ending: false, is_taking: false, since: ticks.now, skip_left: 0 },
      ...{ pace: null, lobby_id: null, is_counted: false },
      unlisten: () => {},
    }
    open.add(connection)
    guest.isBusy = () => connection.exchange !== null && connection.exchange.parked === null
    const listeners = {
      data: (chunk: Buffer) => onData(connection, chunk),
      drain: () => onDrain(connection),
      end: () => onEnd(connection),
      close: () => onClose(connection),
    }
    connection.unlisten = listen(socket, listeners)
  }

  function onData(connection: Connection, chunk: Buffer): void {
    if (connection.is_ending) {
      skip(connection, chunk.length)
      return
    }
    // The time for a head runs from the connection's first moment, or from the request's first byte.
    const { exchange, pending, has_asked } = connection
    if (exchange === null ? pending === null && has_asked : !exchange.is_answered) connection.since = ticks.now
    if (exchange !== null && exchange.arriving !== null) {
      takeArriving(exchange, chunk)
      return
    }
    connection.pending = connection.pending === null ? chunk : Buffer.concat([connection.pending, chunk])
    take(connection)
  }

  function takeArriving(exchange: Exchange, chunk: Buffer): void {
    const { connection, arriving } = exchange
    connection.pending = bodies.take(exchange, chunk)
    if (connection.pending === null) return
    arriving!.onArrived()
    take(connection)
  }

  /** Takes what is there as far as somebody wants it. */
  function take(connection: Connection): void {
    const { socket } = connection
    if (connection.is_taking) return
    connection.is_taking = true
    while (connection.pending !== null && !connection.is_ending && takeSome(connection, connection.pending)) {}
    connection.is_taking = false
    const { pending, exchange } = connection
    const is_full = pending !== null && pending.length >= READ_AHEAD_BYTES_MAX
    const is_stuck = exchange?.wire?.socket.writableNeedDrain && !exchange.body.is_done
    if (is_full || is_stuck) socket.pause()
    else if (socket.isPaused()) socket.resume()
  }

  /** False: nobody can take more for now. */
  function takeSome(connection: Connection, bytes: Buffer): boolean {
    const { exchange } = connection
    // Who does not read the answers that he has gets no more of them.
    if (exchange === null) return !connection.socket.writableNeedDrain && takeRequest(connection, bytes)
    const { body, wire } = exchange
    if (body.is_done) return false
    if (exchange.is_answered) {
      const at = skipBody(body, bytes, 0, bytes.length)
      rest(connection, bytes, at)
      skip(connection, at)
      if (body.is_broken) end(connection)
      else if (body.is_done) next(exchange)
      return true
    }
    if (wire === null || !wire.is_begun || wire.socket.writableNeedDrain) return false
    sendBody(exchange, '')
    return true
  }

  function takeRequest(connection: Connection, bytes: Buffer): boolean {
    let start = 0
    // Some send an empty line behind a body.
    while (bytes[start] === CR && bytes[start + 1] === LF) start += 2
    const head_end = findHeadEnd(bytes, start, connection.looked_at, bytes.length)
    if (head_end === -1) {
      const is_long = bytes.length - start > HEADER_BYTES_MAX
      if (is_long || !mayBecomeHead(bytes, Math.max(start, connection.looked_at - 1), bytes.length))
        refuseBytes(
          connection,
          new ApiError(is_long ? 'API_HEADERS_TOO_LARGE' : 'API_BAD_REQUEST'),
          isHead(bytes, start),
        )
      connection.looked_at = bytes.length
      return false
    }
    connection.looked_at = 0
    connection.has_asked = true
    connection.since = ticks.now
    let exchange: Exchange
    try {
      if (head_end - start > HEADER_BYTES_MAX) throw new ApiError('API_HEADERS_TOO_LARGE')
      exchange = createExchange(connection, readRequestHead(bytes, start, head_end))
    } catch (error) {
      refuseBytes(connection, error, isHead(bytes, start))
      return false
    }
    rest(connection, bytes, head_end + 2)
    if (is_closing) exchange.keeps_alive = false
    connection.exchange = exchange
    options.onRequest(exchange)
    return true
  }

  function sendBody(exchange: Exchange, before: string): void {
    const { connection, body, wire } = exchange
    const bytes = connection.pending
    const { socket } = wire!
    connection.since = ticks.now
    if (!isAllThere(body, bytes)) tolerateWriteErrors(wire!)
    if (body.is_done || bytes === null) {
      if (before !== '') socket.write(before, 'latin1')
    } else {
      const from = { bytes, start: 0, end: bytes.length, is_own: true }
      rest(connection, bytes, carryBody(body, from, socket, before, body.framing === 'chunked'))
      if (body.is_broken) {
        lose(exchange)
        if (exchange.is_answering) breakAnswer(exchange)
        else refuseBytes(connection, new ApiError('API_BAD_REQUEST'), exchange.method === 'HEAD')
        return
      }
    }
    take(connection)
  }

  function onAnswered(exchange: Exchange): void {
    const { connection } = exchange
    if (exchange.body.is_done || !exchange.keeps_alive) {
      next(exchange)
    } else {
      connection.since = ticks.now
      connection.skip_left = DRAIN_BYTES_MAX
      take(connection)
    }
  }

  function next(exchange: Exchange): void {
    const { connection } = exchange
    exchange.is_over = true
    connection.exchange = null
    connection.since = ticks.now
    if (exchange.keeps_alive && !connection.is_ending) take(connection)
    else end(connection)
  }

  function onDrain(connection: Connection): void {
    connection.since = ticks.now
    connection.exchange?.wire?.socket.resume()
    connection.exchange?.onDrain?.()
    if (!connection.is_ending) take(connection)
  }

  /** Who says that he will send nothing any more has hung up. */
  function onEnd(connection: Connection): void {
    const { exchange } = connection
    if (exchange !== null && !exchange.is_over) lose(exchange)
    if (exchange?.is_answering && !exchange.is_answered) breakAnswer(exchange)
    else end(connection)
  }

  function onClose(connection: Connection): void {
    const { exchange } = connection
    open.delete(connection)
    connection.pending = null
    if (exchange !== null && !exchange.is_over) lose(exchange)
  }

  function lose(exchange: Exchange): void {
    exchange.is_over = true
    bodies.drop(exchange)
    if (!exchange.is_answered) options.onLost(exchange)
  }

  /** What has been written still leaves, and what still comes is read for a while: closing on it would take that back. */
  function end(connection: Connection): void {
    connection.is_ending = true
    connection.pending = null
    connection.skip_left = DRAIN_BYTES_MAX
    connection.since = ticks.now
    connection.socket.end()
    connection.socket.resume()
  }

  /** Bytes were dropped. Past the limit no more are read, and the client has until DRAIN_MS_MAX to read the response. */
  function skip(connection: Connection, length: number): void {
    connection.skip_left -= length
    if (connection.skip_left < 0) connection.socket.pause()
  }

  function refuseBytes(connection: Connection, error: unknown, is_head = false): void {
    refuse.socket(connection.socket, error, is_head)
    end(connection)
  }

  /** Returns whether the connection was late, which costs more than the look. */
  function endLate(connection: Connection): boolean {
    const { exchange, socket } = connection
    const waited = ticks.now - connection.since
    if (connection.is_ending) {
      if (waited <= (socket.writableFinished ? DRAIN_TICKS : IDLE_TICKS)) return false
      socket.destroy()
    } else if (exchange !== null && !exchange.is_answered) {
      if (waited <= IDLE_TICKS) return bodies.refuseSlow(exchange)
      socket.destroy()
    } else if (exchange !== null) {
      if (waited <= DRAIN_TICKS) return false
      end(connection)
    } else if (connection.pending !== null) {
      if (waited <= HEADER_TICKS) return false
      refuseBytes(connection, new ApiError('API_REQUEST_TIMEOUT'))
    } else {
      if (waited <= (connection.has_asked ? KEEP_ALIVE_TICKS : HEADER_TICKS)) return false
      end(connection)
    }
    return true
  }

  function release(connection: Connection): Buffer | null {
    const { pending } = connection
    open.delete(connection)
    connection.guest.isBusy = () => true
    connection.exchange = null
    connection.pending = null
    connection.unlisten()
    return pending
  }

  return {
    serve,
    close: () => {
      is_closing = true
      for (const { exchange, socket } of open) if (exchange === null) socket.destroySoon()
    },
  }
}

const CR = 0x0d
const LF = 0x0a

function createExchange(connection: Connection, head: RequestHead): Exchange {
  return {
    connection,
    head,
    method: head.method,
    host: '',
    meaning: null,
    path: '',
    client: '',
    source: '',
    is_secure: connection.is_secure,
    came_at: performance.now(),
    ray_id: null,
    ray: null,
    lobby: null,
    body: createBody(head.framing),
    arriving: null,
    target: null,
    wire: null,
    place: null,
    turns: null,
    parked: null,
    // What comes behind a handshake is not HTTP, whether it was taken or not.
    keeps_alive: head.keeps_alive && !head.is_upgrade,
    is_answering: false,
    is_answered: false,
    is_until_end: false,
    is_over: false,
    onDrain: null,
    onLost: null,
  }
}

/** Whether a request that is not well-formed begins like a HEAD, whose client expects no body. */
function isHead(bytes: Buffer, start: number): boolean {
  return bytes.toString('latin1', start, start + HEAD.length) === HEAD
}

const HEAD = 'HEAD '

/** Nothing of the body comes behind these bytes; of one in chunks nobody knows. */
function isAllThere(body: Body, bytes: Buffer | null): boolean {
  return body.is_done || (body.framing !== 'chunked' && bytes !== null && bytes.length >= body.left)
}

/** What comes behind `at` is still to be taken. */
function rest(connection: Connection, bytes: Buffer, at: number): void {
  connection.pending = at === bytes.length ? null : at === 0 ? bytes : bytes.subarray(at)
}
