// Forwards one request to a backend, and the response back. A request whose connection could not be made may be tried again.
// Once its head has been sent it is never sent twice, because its effect on the backend is unknown.
//
// The client's body is not read before the backend takes it, and neither side is read faster than the other one writes. A
// response that could be read in two ways is refused, and its connection is closed. A request to a role goes over a trunk
// (trunks.ts) where it can: request-class.ts says which do.
import { type Admitted, headerOf } from '@musterhost/contract/edge'
import { endForwarded } from '../../observe/forwarded-ray.ts'
import type { Recorder } from '../../observe/recorder.ts'
import { forwardBody, lastChunk } from '../http/body.ts'
import type { Exchange } from '../http/exchange.ts'
import { findHeadEnd, mayBecomeHead } from '../http/lines.ts'
import type { Refuse } from '../http/refuse.ts'
import { breakResponse, endResponse } from '../http/response.ts'
import { type ResponseHead, readResponseHead, STATUS_FINAL_MIN, STATUS_SWITCHING } from '../http/response-head.ts'
import { type Ticks, ticksOf } from '../http/ticks.ts'
import {
  HEADER_BYTES_MAX,
  INTERIM_RESPONSES_MAX,
  ROLE_SOCKETS_MAX,
  SOCKETS_PER_TARGET_MAX,
  UNREPORTED_WAIT_MS,
} from '../limits.ts'
import type { NodeInternals } from '../node-internals.ts'
import type { FlowFacts, Flows } from '../presence/flows.ts'
import type { Address, RoutedPort } from '../routes/routes.ts'
import { splice } from '../splice.ts'
import { breakOff } from '../tls/tls.ts'
import { type Backend, ForwardedRequest } from './forwarded-request.ts'
import { type PoolName, poolFull } from './pools.ts'
import { classOf, goesByTrunk } from './request-class.ts'
import { startResponse } from './response-start.ts'
import { encodeRequest, TrunkedResponses } from './trunked.ts'
import { Trunks } from './trunks.ts'
import { upstreamHead } from './upstream-head.ts'
import { type UpstreamConnection, UpstreamPool } from './upstream-pool.ts'

type Upstream = UpstreamConnection<ForwardedRequest>

const UNREPORTED_TICKS = ticksOf(UNREPORTED_WAIT_MS)

type ForwarderOptions = {
  ticks: Ticks
  internals: NodeInternals
  refuse: Refuse
  flows: Flows
  recorder: Recorder
  /** Proves this edge to the roles. */
  proof: string
}

export class Forwarder {
  readonly #ticks: Ticks
  readonly #refuse: Refuse
  readonly #flows: Flows
  readonly #recorder: Recorder
  readonly #pool: UpstreamPool<ForwardedRequest>
  readonly #abandon = (request: ForwardedRequest): void => this.abandon(request)
  readonly #trunks: Trunks<ForwardedRequest>
  /** Requests in a queue that go over HTTP, because their role has no trunks. Nothing says that they wait. */
  readonly #unreported = new Set<ForwardedRequest>()

  constructor({ ticks, internals, refuse, flows, recorder, proof }: ForwarderOptions) {
    this.#ticks = ticks
    this.#refuse = refuse
    this.#flows = flows
    this.#recorder = recorder
    this.#pool = new UpstreamPool({
      ticks,
      internals,
      onConnected: (upstream) => this.#begin(upstream),
      onBytes: (upstream, bytes, length, is_own) => this.#onBytes(upstream, bytes, length, is_own),
      onDrain: ({ request }) => request?.exchange.connection.handlers.sendBody(request.exchange, ''),
      onEnd: (upstream) => this.#onEnd(upstream),
      onLost: (upstream) => this.#onLost(upstream),
    })
    const leave = (request: ForwardedRequest): void => this.#leavePool(request)
    const responses = new TrunkedResponses({ ticks, refuse, recorder, leave })
    this.#trunks = new Trunks({
      ...{ ticks, proof, encode: encodeRequest },
      onAbsent: (request) => {
        request.stream = null
        this.#unreported.add(request)
        this.#connect(request)
      },
      onUnsent: (request, error) => {
        request.stream = null
        this.#leavePool(request)
        this.#sendAgain(request, error)
      },
      onWaits: (request) => this.#onWaits(request),
      onResponse: (stream, response, part) => responses.pass(stream, response, part),
      onLost: (request) => responses.lose(request),
    })
    ticks.on(() => this.#letPass())
  }

  /** Responds to the exchange with the backend's response, or refuses it. Never throws. */
  send(exchange: Exchange, backend: Backend, address: Address): void {
    const request = new ForwardedRequest(exchange, { backend, address, abandon: this.#abandon })
    exchange.responder = request
    this.#enter(request)
  }

  /** The client is gone: the backend learns it at once. */
  abandon(request: ForwardedRequest): void {
    const { own_connection, stream } = request
    if (own_connection === null) {
      request.stream = null
      this.#leavePool(request)
      stream?.trunk.cancel(stream)
      return
    }
    this.#detach(own_connection, request)
    if (own_connection.is_connected) breakOff(own_connection.socket)
    else own_connection.socket.destroy()
  }

  /** No response will come from this address. */
  drop(address: Address): void {
    this.#trunks.drop(address)
    this.#pool.drop(address)
  }

  close(): void {
    this.#trunks.close()
    this.#pool.close()
  }

  /** Takes a slot at the role, waits in its queue, and sends the request. */
  #enter(request: ForwardedRequest): void {
    const { exchange, backend } = request
    if (backend.role !== null) {
      const name = classOf(exchange.head, exchange.path)
      if (!this.#enterPool(request, name)) return
      request.queue = backend.role.queues[name] ?? null
      if (request.queue?.enter(request) === false) return
    }
    this.#pass(request)
  }

  /** The request may reach its backend now. */
  #pass(request: ForwardedRequest): void {
    const { exchange, backend, address } = request
    const is_for_trunk = backend.role !== null && goesByTrunk(exchange.head, exchange.path)
    const trunk = is_for_trunk ? this.#trunks.at(address) : null
    if (trunk !== null) request.stream = trunk.send(request)
    else {
      if (is_for_trunk && request.queue !== null) this.#unreported.add(request)
      this.#connect(request)
    }
  }

  /** The role has said that the request waits: it makes room for the next one. */
  #onWaits(request: ForwardedRequest): void {
    const { stream } = request
    this.#leavePool(request)
    if (this.#enterPool(request, 'parked')) return
    request.stream = null
    stream?.trunk.cancel(stream)
  }

  /** Sends the request over a free connection, or over a new one once it is made. */
  #connect(request: ForwardedRequest): void {
    const { exchange, backend } = request
    const sockets_max = backend.role === null ? SOCKETS_PER_TARGET_MAX : ROLE_SOCKETS_MAX
    const upstream = this.#pool.take(request.address, { is_single: exchange.head.is_upgrade, sockets_max })
    if (upstream === null) {
      this.#leavePool(request)
      this.#refuse.request(exchange, backend.unavailable())
      return
    }
    upstream.request = request
    request.own_connection = upstream
    if (upstream.is_connected) this.#begin(upstream)
  }

  #sendAgain(request: ForwardedRequest, error: NodeJS.ErrnoException): void {
    const { exchange, backend } = request
    const attempt = request.attempt + 1
    backend.again(exchange, attempt, error, request.address).then(
      (address) => {
        if (exchange.is_over) return
        if (address === null) {
          this.#refuse.request(exchange, backend.unavailable())
          return
        }
        const { local_address } = request.address
        request.address = local_address === undefined ? address : { ...address, local_address }
        request.attempt = attempt
        this.#enter(request)
      },
      (reason: unknown) => this.#refuse.request(exchange, reason),
    )
  }

  /** Returns false when there is no slot, and the request is refused. A lobby has no pools. */
  #enterPool(request: ForwardedRequest, name: PoolName): boolean {
    const { role } = request.backend
    if (role === null) return true
    try {
      request.slot = role.pools.enter(name, request.client_key, () => this.#displace(request, name))
      return true
    } catch (error) {
      this.#refuse.request(request.exchange, error)
      return false
    }
  }

  /** Gives back the slot, and lets the next request of the queue pass. */
  #leavePool(request: ForwardedRequest): void {
    request.slot?.leave()
    request.slot = null
    this.#leaveQueue(request)
  }

  #leaveQueue(request: ForwardedRequest): void {
    const { queue } = request
    this.#unreported.delete(request)
    request.queue = null
    const next = queue?.leave(request) ?? null
    if (next !== null) this.#pass(next)
  }

  /** Requests that take long let the next ones pass, but keep their slots. */
  #letPass(): void {
    for (const request of this.#unreported) {
      const { own_connection } = request
      if (own_connection === null || this.#ticks.now - own_connection.since >= UNREPORTED_TICKS)
        this.#leaveQueue(request)
    }
  }

  /** The request's slot has been given to another client. */
  #displace(request: ForwardedRequest, name: PoolName): void {
    const { exchange } = request
    request.slot = null
    // A WebSocket has no exchange to refuse any more.
    if (exchange.is_over) {
      breakOff(exchange.connection.socket)
      return
    }
    this.abandon(request)
    this.#refuse.request(exchange, poolFull(name))
  }

  #begin(upstream: Upstream): void {
    const request = upstream.request!
    const { exchange } = request
    const { connection, body, head } = exchange
    const text = upstreamHead(request)
    upstream.is_begun = true
    upstream.since = this.#ticks.now
    if (head.expects_continue && !body.is_done) {
      upstream.socket.write(text, 'latin1')
      connection.socket.write(CONTINUE, 'latin1')
      connection.handlers.sendBody(exchange, '')
    } else {
      connection.handlers.sendBody(exchange, text)
    }
  }

  #onBytes(upstream: Upstream, chunk: Buffer, length: number, is_own: boolean): void {
    const { request, pending } = upstream
    if (request === null) {
      // The backend sent bytes without a request.
      upstream.socket.destroy()
      return
    }
    const { connection } = request.exchange
    const bytes = pending === null ? chunk : Buffer.concat([pending, chunk.subarray(0, length)])
    const end = pending === null ? length : bytes.length
    connection.since = this.#ticks.now
    upstream.pending = null
    let at = 0
    let before = ''
    while (upstream.response_body === null) {
      const head_end = findHeadEnd(bytes, at, at + upstream.scanned, end)
      if (head_end === -1) {
        if (mayBecomeResponse(upstream, bytes, at, end)) keepPartialHead(upstream, bytes, at, end)
        else this.#onMalformed(upstream, request)
        return
      }
      const options = { to_head: request.exchange.method === 'HEAD', allowed: request.backend.response_allowed }
      const head = head_end - at > HEADER_BYTES_MAX ? null : readResponseHead(bytes, at, head_end, options)
      upstream.scanned = 0
      at = head_end + 2
      if (head === null || !isExpected(upstream, head)) {
        this.#onMalformed(upstream, request)
        return
      }
      if (head.status === STATUS_SWITCHING) {
        this.#switchProtocols(upstream, request, head, bytes.subarray(at, end))
        return
      }
      if (head.status >= STATUS_FINAL_MIN) before = this.#beginResponse(upstream, request, head)
    }
    const { response_body } = upstream
    const from = { bytes, start: at, end, is_own: is_own || pending !== null }
    const body_end = forwardBody(response_body, from, connection.socket, before, upstream.to_chunks)
    if (response_body.is_broken) this.#onMalformed(upstream, request)
    else if (response_body.is_done) this.#finish(upstream, request, body_end === end)
    else if (connection.socket.writableNeedDrain) upstream.socket.pause()
  }

  /** Returns the head of the response as the client receives it. */
  #beginResponse(upstream: Upstream, request: ForwardedRequest, head: ResponseHead): string {
    const shard = head.shard === null ? null : Number(head.shard)
    const { text, body, to_chunks } = startResponse(request, { ...head, shard }, this.#ticks)
    upstream.response_body = body
    upstream.keeps_alive = head.keeps_alive && head.framing !== 'until_end' && !upstream.is_single
    upstream.to_chunks = to_chunks
    return text
  }

  /** Separates a request from its connection. */
  #detach(upstream: Upstream, request: ForwardedRequest): void {
    upstream.request = null
    request.own_connection = null
    this.#leavePool(request)
  }

  /** The response is complete. `is_clean`: no byte follows it. */
  #finish(upstream: Upstream, request: ForwardedRequest, is_clean: boolean): void {
    const { exchange } = request
    this.#detach(upstream, request)
    upstream.response_body = null
    const is_reusable = is_clean && upstream.keeps_alive && exchange.body.is_done && upstream.error === null
    if (is_reusable) this.#pool.putBack(upstream)
    else upstream.socket.destroy()
    endForwarded(this.#recorder, exchange.ray)
    endResponse(exchange)
  }

  /** The backend's bytes are no response, or no longer one. */
  #onMalformed(upstream: Upstream, request: ForwardedRequest): void {
    const { exchange, backend } = request
    const has_begun = upstream.response_body?.has_begun ?? false
    this.#detach(upstream, request)
    breakOff(upstream.socket)
    exchange.is_response_begun = has_begun
    this.#refuse.request(exchange, backend.unavailable())
  }

  #onEnd(upstream: Upstream): void {
    const { request, response_body } = upstream
    // After a failed write, Node reports a reset connection to the reader as an end.
    if (request !== null && response_body?.framing === 'until_end' && upstream.error === null) {
      const last = lastChunk(upstream.to_chunks)
      if (last !== '') request.exchange.connection.socket.write(last, 'latin1')
      this.#finish(upstream, request, false)
    } else {
      upstream.socket.destroy()
    }
  }

  #onLost(upstream: Upstream): void {
    const { request } = upstream
    if (request === null) return
    const { exchange, backend } = request
    this.#detach(upstream, request)
    if (exchange.is_over) return
    const error = upstream.error ?? new Error('The connection was closed.')
    if (!upstream.is_begun) this.#sendAgain(request, error)
    else if (exchange.is_response_begun) breakResponse(exchange)
    else this.#refuse.request(exchange, backend.unavailable())
  }

  /** The WebSocket handshake has succeeded: both sockets are joined. `first`: the bytes after the response. */
  #switchProtocols(upstream: Upstream, request: ForwardedRequest, head: ResponseHead, first: Buffer): void {
    const { exchange, slot, backend } = request
    const { connection } = exchange
    const client = connection.raw!
    request.slot = null
    if (slot !== null) client.once('close', () => slot.leave())
    this.#detach(upstream, request)
    exchange.is_over = true
    this.#pool.release(upstream)
    const sent_ahead = connection.handlers.release(connection)
    client.write(
      `HTTP/1.1 101 ${head.reason}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${head.lines}${subprotocolLine(exchange, head)}\r\n`,
      'latin1',
    )
    if (first.length > 0) client.write(first)
    if (sent_ahead !== null) upstream.socket.write(sent_ahead)
    const joined = splice(client, upstream.socket)
    if (exchange.lobby !== null) this.#flows.add(joined, factsOf(exchange, exchange.lobby))
    else if (backend.role === null) this.#flows.addLink(client)
    client.resume()
    upstream.socket.resume()
  }
}

function factsOf({ connection, client_key }: Exchange, { lobby_id, port_name }: RoutedPort): FlowFacts {
  const { peer, player } = connection
  return {
    ...{ kind: 'http', peer, client_key, number: null, port_name, lobby_id },
    player: player && { ...identityOf(player), is_by_address: false },
  }
}

function identityOf({ leave: _, ...player }: Admitted) {
  return player
}

/** A browser requires one of the subprotocols that it offered. The server did not see that of the token. */
function subprotocolLine({ token_protocol }: Exchange, { lines }: ResponseHead): string {
  if (token_protocol === null || headerOf({ lines }, 'sec-websocket-protocol') !== undefined) return ''
  return `Sec-WebSocket-Protocol: ${token_protocol}\r\n`
}

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'
const RESPONSE_START = Buffer.from('HTTP/1.')

/** Keeps the beginning of a head. It is copied, because the buffer is used again by the next read. */
function keepPartialHead(upstream: Upstream, bytes: Buffer, at: number, end: number): void {
  upstream.pending = Buffer.from(bytes.subarray(at, end))
  upstream.scanned = upstream.pending.length
}

function mayBecomeResponse(upstream: Upstream, bytes: Buffer, at: number, end: number): boolean {
  const length = end - at
  const begin = Math.min(length, RESPONSE_START.length)
  return (
    length <= HEADER_BYTES_MAX &&
    RESPONSE_START.compare(bytes, at, at + begin, 0, begin) === 0 &&
    mayBecomeHead(bytes, at + Math.max(0, upstream.scanned - 1), end)
  )
}

/** Whether this response may come now: an upgrade only after a handshake, and a bounded number of interim responses. */
function isExpected(upstream: Upstream, { status, is_upgrade }: ResponseHead): boolean {
  if (status === STATUS_SWITCHING) return is_upgrade && upstream.is_single
  if (status < STATUS_FINAL_MIN) upstream.interim_responses++
  return upstream.interim_responses <= INTERIM_RESPONSES_MAX
}
