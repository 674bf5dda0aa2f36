// Requests over trunks, as the forwarder sends them and passes their responses on. The role has checked the lines of its
// response, and says its length, so they reach the client as they came.
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { endForwarded } from '../../observe/forwarded-ray.ts'
import type { Recorder } from '../../observe/recorder.ts'
import { type FrameBatch, STREAM_CREDIT_BYTES, type TrunkBody, type TrunkResponse } from '../../wire/trunk-frames.ts'
import { forwardBody, lastChunk } from '../http/body.ts'
import type { BodyUpstream } from '../http/exchange.ts'
import type { Framing } from '../http/forwarded-lines.ts'
import type { Refuse } from '../http/refuse.ts'
import { breakResponse, endResponse } from '../http/response.ts'
import type { Ticks } from '../http/ticks.ts'
import type { ForwardedRequest } from './forwarded-request.ts'
import { startResponse } from './response-start.ts'
import type { TrunkStream } from './trunks.ts'
import { hasLength } from './upstream-head.ts'

/** Receives a whole small body from a client's connection, in place of a connection to a backend. */
class BodySink implements BodyUpstream {
  readonly is_begun = true
  readonly socket: Socket
  #body: string | Buffer = ''

  constructor() {
    const sink = {
      writableNeedDrain: false,
      cork: () => {},
      uncork: () => {},
      write: (data: string | Buffer) => {
        this.#body = data
        return true
      },
    }
    this.socket = sink as unknown as Socket
  }

  expectMoreBody(): void {}

  /** Returns the body of the request, all of which has arrived. A string is latin1. */
  bodyOf(request: ForwardedRequest): string | Buffer {
    const { exchange } = request
    if (exchange.body.is_done) return ''
    request.sink = this
    this.#body = ''
    // It is written in one piece, because all of it has arrived.
    exchange.connection.handlers.sendBody(exchange, '')
    request.sink = null
    return this.#body
  }
}

const sink = new BodySink()

export function encodeRequest(request: ForwardedRequest, number: number, batch: FrameBatch): void {
  const { exchange } = request
  const { head, method, path, client_ip, ray_id, is_secure } = exchange
  const [has_length, asks_shard] = [hasLength(exchange), exchange.role_lines !== '']
  const about = { method, path, client_ip, ray_id: ray_id ?? '', lines: head.lines, is_secure, has_length, asks_shard }
  batch.request(number, about, sink.bodyOf(request))
}

type ResponsesOptions = {
  ticks: Ticks
  refuse: Refuse
  recorder: Recorder
  /** The request has its response, or gets none: it gives back its slot. */
  leave: (request: ForwardedRequest) => void
}

export class TrunkedResponses {
  readonly #options: ResponsesOptions

  constructor(options: ResponsesOptions) {
    this.#options = options
  }

  /** Passes a part of a response on. Returns false for one that contradicts its head. */
  pass(
    stream: TrunkStream<ForwardedRequest>,
    response: TrunkResponse | null,
    { bytes, body_start, end, is_last }: TrunkBody & { bytes: Buffer; end: number },
  ): boolean {
    const { ticks, recorder, leave } = this.#options
    const { request } = stream
    const { exchange } = request
    const { connection } = exchange
    connection.since = ticks.now
    const before = response === null ? '' : this.#start(stream, response)
    const body = stream.body!
    const from = { bytes, start: body_start, end, is_own: false }
    if (before !== '' || end > body_start) {
      const body_end = forwardBody(body, from, connection.socket, before, stream.to_chunks)
      if (body_end !== end) return false
    }
    if (!is_last) {
      this.#owe(stream, end - body_start)
      return !body.is_done
    }
    const is_whole = body.is_done || body.framing === 'until_end'
    if (!is_whole) return false
    const last = body.framing === 'until_end' ? lastChunk(stream.to_chunks) : ''
    if (last !== '') connection.socket.write(last, 'latin1')
    request.stream = null
    leave(request)
    endForwarded(recorder, exchange.ray)
    endResponse(exchange)
    return true
  }

  /** No response will come, or not the rest of it. */
  lose(request: ForwardedRequest): void {
    const { exchange, backend } = request
    request.stream = null
    this.#options.leave(request)
    if (exchange.is_over) return
    if (exchange.is_response_begun) breakResponse(exchange)
    else this.#options.refuse.request(exchange, backend.unavailable())
  }

  #start(stream: TrunkStream<ForwardedRequest>, response: TrunkResponse): string {
    const { request } = stream
    const { status, lines, body_length, ray_kept, shard } = response
    const reason = STATUS_CODES[status] ?? ''
    const framing: Framing = body_length ?? 'until_end'
    const head = { status, reason, lines, framing, has_date: false, ray_kept, shard }
    const { text, body, to_chunks } = startResponse(request, head, this.#options.ticks)
    stream.body = body
    stream.to_chunks = to_chunks
    return text
  }

  /** The role may send more once the client has taken what arrived, so that only so much waits for a slow client. */
  #owe(stream: TrunkStream<ForwardedRequest>, length: number): void {
    stream.owed_bytes += length
    const { writableNeedDrain } = stream.request.exchange.connection.socket
    if (!writableNeedDrain && stream.owed_bytes >= STREAM_CREDIT_BYTES / 2) stream.trunk.credit(stream)
  }
}
