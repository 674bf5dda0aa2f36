// One request on its way to a backend and the answer on its way back. A request whose connection could not even be made
// may be tried again; once it has been sent, it is never sent twice: what it did over there is not known. The client's
// body is not read before there is somebody to read it, and neither side is read faster than the other takes it. An
// answer that could be read in two ways is none, and the connection that it came on serves nobody else. A role may park a
// request: then it waits there without a connection, and its response is fetched when there is one (parking.ts).

import { endForwarded, readForwardedHead } from '../../observe/forwarded-ray.ts'
import type { Recorder } from '../../observe/recorder.ts'
import { CHANNEL_PROTOCOL, PARKING_OFFER } from '../../parking-protocol.ts'
import { breakAnswer, connectionLines, endAnswer, rayLine } from '../http/answer.ts'
import { carryBody, createBody, lastChunk } from '../http/body.ts'
import type { Exchange, ParkedRequest, Upstream, UpstreamConnection } from '../http/exchange.ts'
import { type AnswerHead, linesWithout, readAnswerHead, STATUS_FINAL_MIN, STATUS_SWITCHING } from '../http/head.ts'
import { findHeadEnd, mayBecomeHead } from '../http/lines.ts'
import type { Refuse } from '../http/refuse.ts'
import type { Ticks } from '../http/ticks.ts'
import {
  CLAIMS_MAX,
  HEADER_BYTES_MAX,
  INTERIM_ANSWERS_MAX,
  ROLE_SOCKETS_MAX,
  SOCKETS_PER_TARGET_MAX,
} from '../limits.ts'
import type { Address } from '../routes.ts'
import { splice } from '../splice.ts'
import { breakOff } from '../tls/tls.ts'
import { type PoolName, poolFull } from './pools.ts'
import { classOf } from './request-class.ts'
import { createUpstreamPool } from './upstream-pool.ts'

export type Forward = {
  /** Answers `exchange` with what the upstream answers, or refuses it. Never throws. */
  send: (exchange: Exchange, upstream: Upstream, address: Address) => void
  /** Nobody waits for the answer any more: the backend is told at once. */
  abandon: (exchange: Exchange) => void
  /** The response to a parked request is there: fetches it, when it is its turn. */
  claim: (exchange: Exchange) => void
  /** There will be no response to a parked request. */
  lose: (exchange: Exchange) => void
  close: () => void
}

/** Methods for which a backend assumes a body, unless told otherwise, are told. */
const METHODS_WITHOUT_BODY = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'])

type Options = { ticks: Ticks; refuse: Refuse; recorder: Recorder }

export function createForward({ ticks, refuse, recorder }: Options): Forward {
  const wires = createUpstreamPool({ ticks, onConnected: begin, onBytes, onDrain, onEnd, onLost })

  /** Parked requests whose response is there, in the order in which it came; and how many are being fetched. */
  const claimable = new Set<Exchange>()
  let claim_count = 0

  function send(exchange: Exchange, upstream: Upstream, address: Address, attempt = 0): void {
    const { role } = upstream
    exchange.target = { upstream, address, attempt }
    if (role !== null && exchange.parked === null) {
      const name = classOf(exchange.head, exchange.path)
      if (!enterPool(exchange, name) || role.turns[name]?.take(exchange) === false) return
    }
    dispatch(exchange)
  }

  /** Sends it over a connection, which may have to be made first. */
  function dispatch(exchange: Exchange): void {
    const { upstream, address, attempt } = exchange.target!
    const is_claim = exchange.parked !== null
    const sockets_max = upstream.role === null ? SOCKETS_PER_TARGET_MAX : ROLE_SOCKETS_MAX
    const wire = wires.take(address, { is_single: exchange.head.is_upgrade, sockets_max })
    if (wire === null) {
      leavePool(exchange)
      refuse.request(exchange, upstream.unavailable())
      return
    }
    if (is_claim) claim_count++
    wire.exchange = exchange
    wire.upstream = upstream
    wire.attempt = attempt
    exchange.wire = wire
    if (wire.is_connected) begin(wire)
  }

  function sendAgain(exchange: Exchange, upstream: Upstream, attempt: number, error: NodeJS.ErrnoException): void {
    upstream.again(exchange, attempt, error).then(
      (address) => {
        if (exchange.is_over) return
        if (address === null) refuse.request(exchange, upstream.unavailable())
        else send(exchange, upstream, address, attempt)
      },
      (reason: unknown) => refuse.request(exchange, reason),
    )
  }

  /** Its place is free, and its turn is the next one's. */
  function leavePool(exchange: Exchange): void {
    exchange.place?.leave()
    exchange.place = null
    const next = exchange.turns?.leave(exchange) ?? null
    if (next !== null) dispatch(next)
  }

  /** False: there is no place, and the request is refused. A lobby has no pools. */
  function enterPool(exchange: Exchange, name: PoolName): boolean {
    const { role } = exchange.target!.upstream
    if (role === null) return true
    try {
      exchange.place = role.pools.enter(name, exchange.source, () => displace(exchange, name))
      return true
    } catch (error) {
      refuse.request(exchange, error)
      return false
    }
  }

  /** Its place is another client's by now. */
  function displace(exchange: Exchange, name: PoolName): void {
    exchange.place = null
    // A WebSocket is nobody's request any more.
    if (exchange.is_over) {
      breakOff(exchange.connection.socket)
      return
    }
    abandon(exchange)
    refuse.request(exchange, poolFull(name))
  }

  function begin(wire: UpstreamConnection): void {
    const exchange = wire.exchange!
    const { connection, body, head } = exchange
    const upstream = wire.upstream!
    const text = exchange.parked === null ? requestHead(exchange, upstream) : claimHead(exchange.parked, upstream)
    wire.is_begun = true
    wire.since = ticks.now
    if (head.expects_continue && !body.is_done) {
      wire.socket.write(text, 'latin1')
      connection.socket.write(CONTINUE, 'latin1')
      connection.keeper.sendBody(exchange, '')
    } else {
      connection.keeper.sendBody(exchange, text)
    }
  }

  function onBytes(wire: UpstreamConnection, chunk: Buffer, length: number, is_own: boolean): void {
    const { exchange } = wire
    if (exchange === null) {
      // Nobody has asked for it.
      wire.socket.destroy()
      return
    }
    const { connection } = exchange
    const { pending } = wire
    const bytes = pending === null ? chunk : Buffer.concat([pending, chunk.subarray(0, length)])
    const end = pending === null ? length : bytes.length
    connection.since = ticks.now
    wire.pending = null
    let at = 0
    let before = ''
    while (wire.answer === null) {
      const head_end = findHeadEnd(bytes, at, at + wire.looked_at, end)
      if (head_end === -1) {
        if (mayBecomeAnswer(wire, bytes, at, end)) hold(wire, bytes, at, end)
        else onNonsense(wire)
        return
      }
      const options = { to_head: exchange.method === 'HEAD', allowed: wire.upstream!.response_allowed }
      const head = head_end - at > HEADER_BYTES_MAX ? null : readAnswerHead(bytes, at, head_end, options)
      wire.looked_at = 0
      at = head_end + 2
      if (head?.status === STATUS_SWITCHING && head.is_upgrade && wire.is_single) {
        switchProtocols(wire, exchange, head, bytes.subarray(at, end))
        return
      }
      if (head === null || head.status === STATUS_SWITCHING || !isBounded(wire, head)) {
        onNonsense(wire)
        return
      }
      const { role } = wire.upstream!
      if (head.parked === PARKING_OFFER) role?.channel.open()
      else if (head.parked !== null && exchange.parked === null && role !== null) {
        park(wire, exchange, head, at === end)
        return
      }
      if (head.status >= STATUS_FINAL_MIN) before = beginRelay(wire, exchange, head)
    }
    const { answer } = wire
    const from = { bytes, start: at, end, is_own: is_own || pending !== null }
    const body_end = carryBody(answer, from, connection.socket, before, wire.to_chunks)
    if (answer.is_broken) onNonsense(wire)
    else if (answer.is_done) finish(wire, exchange, body_end === end)
    else if (connection.socket.writableNeedDrain) wire.socket.pause()
  }

  /** The answer's head as the client gets it. */
  function beginRelay(wire: UpstreamConnection, exchange: Exchange, head: AnswerHead): string {
    const { response_added } = wire.upstream!
    const { framing } = head
    const has_length = framing === 'none' || typeof framing === 'number'
    wire.answer = createBody(framing)
    wire.keeps_alive = head.keeps_alive && framing !== 'until_end' && !wire.is_single
    wire.to_chunks = !has_length && !exchange.head.is_version_1_0
    if (!has_length && !wire.to_chunks) {
      exchange.keeps_alive = false
      exchange.is_until_end = true
    }
    exchange.is_answering = true
    readForwardedHead(exchange.ray, head.ray_kept)
    const date = head.has_date ? '' : ticks.date_line
    const chunks = wire.to_chunks ? 'Transfer-Encoding: chunked\r\n' : ''
    const lines = `${head.lines}${response_added}${date}${chunks}${connectionLines(exchange)}`
    return `HTTP/1.1 ${head.status} ${head.reason}\r\n${lines}\r\n`
  }

  /** The request waits at the role from here on, and its connection serves others. */
  function park(wire: UpstreamConnection, exchange: Exchange, head: AnswerHead, is_clean: boolean): void {
    const { role, unavailable } = wire.upstream!
    const is_whole = exchange.body.is_done && head.framing === 0
    part(wire, exchange)
    if (is_clean && is_whole && head.keeps_alive && wire.error === null) wires.putBack(wire)
    else wire.socket.destroy()
    if (!is_whole || !role!.channel.park(exchange, Number(head.parked))) refuse.request(exchange, unavailable())
    else if (!enterPool(exchange, 'parked')) role!.channel.abandon(exchange)
  }

  function claim(exchange: Exchange): void {
    claimable.add(exchange)
    claimNext()
  }

  function claimNext(): void {
    const [exchange] = claimable
    if (exchange === undefined || claim_count >= CLAIMS_MAX) return
    const { upstream, address } = exchange.target!
    claimable.delete(exchange)
    upstream.role!.channel.forget(exchange)
    send(exchange, upstream, address)
  }

  function lose(exchange: Exchange): void {
    claimable.delete(exchange)
    leavePool(exchange)
    refuse.request(exchange, exchange.target!.upstream.unavailable())
  }

  /** Exchange and wire have nothing to do with each other from here on. */
  function part(wire: UpstreamConnection, exchange: Exchange): void {
    wire.exchange = null
    exchange.wire = null
    leavePool(exchange)
    if (exchange.parked === null) return
    claim_count--
    claimNext()
  }

  /** `is_clean`: nothing has come behind the answer. */
  function finish(wire: UpstreamConnection, exchange: Exchange, is_clean: boolean): void {
    part(wire, exchange)
    wire.answer = null
    if (is_clean && wire.keeps_alive && exchange.body.is_done && wire.error === null) wires.putBack(wire)
    else wire.socket.destroy()
    endForwarded(recorder, exchange.ray)
    endAnswer(exchange)
  }

  /** What came is no answer, or none any more. */
  function onNonsense(wire: UpstreamConnection): void {
    const exchange = wire.exchange!
    const has_begun = wire.answer?.has_begun ?? false
    part(wire, exchange)
    wire.socket.resetAndDestroy()
    exchange.is_answering = has_begun
    refuse.request(exchange, wire.upstream!.unavailable())
  }

  function onDrain({ exchange }: UpstreamConnection): void {
    exchange?.connection.keeper.sendBody(exchange, '')
  }

  function onEnd(wire: UpstreamConnection): void {
    const { exchange, answer } = wire
    // A reset that a write has met is told to the reader as an end.
    if (exchange !== null && answer?.framing === 'until_end' && wire.error === null) {
      const last = lastChunk(wire.to_chunks)
      if (last !== '') exchange.connection.socket.write(last, 'latin1')
      finish(wire, exchange, false)
    } else {
      wire.socket.destroy()
    }
  }

  function onLost(wire: UpstreamConnection): void {
    const { exchange } = wire
    if (exchange === null) return
    part(wire, exchange)
    if (exchange.is_over) return
    const error = wire.error ?? new Error('The connection was closed.')
    if (!wire.is_begun) sendAgain(exchange, wire.upstream!, wire.attempt + 1, error)
    else if (exchange.is_answering) breakAnswer(exchange)
    else refuse.request(exchange, wire.upstream!.unavailable())
  }

  function switchProtocols(wire: UpstreamConnection, exchange: Exchange, head: AnswerHead, first: Buffer): void {
    const { connection } = exchange
    const client = connection.socket
    const { place } = exchange
    exchange.place = null
    if (place !== null) client.once('close', () => place.leave())
    part(wire, exchange)
    exchange.is_over = true
    wires.release(wire)
    const sent_ahead = connection.keeper.release(connection)
    client.write(
      `HTTP/1.1 101 ${head.reason}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${head.lines}\r\n`,
      'latin1',
    )
    if (first.length > 0) client.write(first)
    if (sent_ahead !== null) wire.socket.write(sent_ahead)
    splice(client, wire.socket)
    client.resume()
    wire.socket.resume()
  }

  function abandon(exchange: Exchange): void {
    const { wire } = exchange
    if (wire === null) {
      claimable.delete(exchange)
      leavePool(exchange)
      exchange.target?.upstream.role?.channel.abandon(exchange)
      return
    }
    part(wire, exchange)
    if (wire.is_connected) wire.socket.resetAndDestroy()
    else wire.socket.destroy()
  }

  return { send, abandon, claim, lose, close: wires.close }
}

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'
const ANSWER_BEGINS = Buffer.from('HTTP/1.')

/** What comes of a head that is not all there is used again by the next read. */
function hold(wire: UpstreamConnection, bytes: Buffer, at: number, end: number): void {
  wire.pending = Buffer.from(bytes.subarray(at, end))
  wire.looked_at = wire.pending.length
}

function mayBecomeAnswer(wire: UpstreamConnection, bytes: Buffer, at: number, end: number): boolean {
  const length = end - at
  const begin = Math.min(length, ANSWER_BEGINS.length)
  return (
    length <= HEADER_BYTES_MAX &&
    ANSWER_BEGINS.compare(bytes, at, at + begin, 0, begin) === 0 &&
    mayBecomeHead(bytes, at + Math.max(0, wire.looked_at - 1), end)
  )
}

/** Answers that only announce another one are passed over, up to a number of them. */
function isBounded(wire: UpstreamConnection, { status }: AnswerHead): boolean {
  if (status < STATUS_FINAL_MIN) wire.interim_answers++
  return wire.interim_answers <= INTERIM_ANSWERS_MAX
}

/** The head of a request as a backend sees it: the one place where the edge speaks to what is behind it. */
function requestHead(exchange: Exchange, upstream: Upstream): string {
  const { head, method, path, client } = exchange
  const { isRequestDropped, request_added } = upstream
  const lines = isRequestDropped === null ? head.lines : linesWithout(head.lines, isRequestDropped)
  const scheme = exchange.is_secure ? 'https' : 'http'
  const forwarded = `X-Forwarded-For: ${client}\r\nX-Forwarded-Proto: ${scheme}\r\n${upstream.role?.channel.park_line ?? ''}`
  const connection = head.is_upgrade ? 'Connection: Upgrade\r\nUpgrade: websocket\r\n' : 'Connection: keep-alive\r\n'
  return `${method} ${path} HTTP/1.1\r\n${lines}${forwarded}${request_added}${rayLine(exchange)}${connection}${framingOf(exchange)}\r\n`
}

/** Fetches the response to a parked request. */
function claimHead({ claim_line }: ParkedRequest, { request_added }: Upstream): string {
  return `GET / HTTP/1.1\r\nHost: ${CHANNEL_PROTOCOL}\r\n${request_added}${claim_line}Connection: keep-alive\r\n\r\n`
}

function framingOf({ head, method }: Exchange): string {
  if (head.framing === 'chunked') return 'Transfer-Encoding: chunked\r\n'
  if (head.framing !== 'none') return `Content-Length: ${head.framing}\r\n`
  return METHODS_WITHOUT_BODY.has(method) ? '' : 'Content-Length: 0\r\n'
}
