// Requests of an edge that wait here without a connection (parking-protocol.ts). A request that takes longer than
// PARK_AFTER_MS is parked, whatever it waits for: a lobby that starts, a long poll, an external service. Its connection
// returns an empty response and serves other requests; the handler is not affected. The response is kept until the edge
// fetches it. When the edge's client hangs up, or the channel is lost, the caller counts as gone. A request that did not come
// through an edge with a channel keeps its connection.
import { type IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { createTimerWhileNeeded } from '../flow/timer-while-needed.ts'
import type { Presence } from '../http/peer-port.ts'
import { CLAIM_HEADER, EDGE_PROOF_HEADER, PARK_HEADER, PARKED_HEADER } from '../wire/headers.ts'
import { CHANNEL_PROTOCOL, createLineReader, PARKING_OFFER, parkingLine } from '../wire/parking-protocol.ts'

/** Most requests have ended by then, and are never parked. Checked every PARK_CHECK_MS. */
const PARK_AFTER_MS = 100
const PARK_CHECK_MS = 50
/** A request beyond this limit keeps its connection. */
const PARKED_MAX = 50_000
/** Edges, including broken channels that have not been noticed yet. */
const CHANNELS_MAX = 64
/** A response that no edge fetches is kept for this long. */
const CLAIM_MS_MAX = 10_000
/** After the end of the connection over which a request was parked, the edge has this long to confirm. */
const CONFIRM_MS_MAX = 1_000
/** When the role stops, parked requests have this long to end and to be fetched. */
const DRAIN_MS_MAX = 3_000
const DRAIN_CHECK_MS = 20

type WaitingRequest = {
  request: FastifyRequest
  reply: FastifyReply
  edge_id: string
  since: number
  parked: Parked | null
  /** The edge has been offered a channel while it waits. */
  has_offer: boolean
  onGone: (() => void)[]
}
type Parked = {
  number: number
  /** The channel over which it was parked. */
  channel: Duplex
  is_gone: boolean
  onGone: readonly (() => void)[]
  /** The edge knows its number. */
  is_confirmed: boolean
  /** Takes the listener off the connection that it came over. */
  unlisten: () => void
  response: LateResponse
  /** When its response was there, by performance.now(). */
  done_at: number | null
}

export class Parking {
  readonly #proof: string
  /** By the id of the edge. */
  readonly #channels = new Map<string, Duplex>()
  /** In the order in which they came. */
  readonly #waiting = new Set<WaitingRequest>()
  /** With a response that is not fetched yet, in the order in which it came. */
  readonly #done = new Set<Parked>()
  readonly #parked = new Map<number, Parked>()
  #last_number = 0
  #is_closing = false
  readonly #checks = createTimerWhileNeeded(PARK_CHECK_MS, () => this.#check())

  constructor(proof: string) {
    this.#proof = proof
  }

  /** Requests that wait without a connection. */
  get count(): number {
    return this.#parked.size
  }

  /** Null: the request keeps its connection. */
  enter(request: FastifyRequest, reply: FastifyReply, since: number): Presence | null {
    const edge_id = request.headers[PARK_HEADER]
    if (typeof edge_id !== 'string' || request.headers[EDGE_PROOF_HEADER] !== this.#proof) return null
    if (!this.#channels.has(edge_id)) reply.header(PARKED_HEADER, PARKING_OFFER)
    const waiting: WaitingRequest = { request, reply, edge_id, since, parked: null, has_offer: false, onGone: [] }
    const { socket } = request.raw
    const { raw: response } = reply
    this.#waiting.add(waiting)
    this.#checks.need()
    return {
      isGone: () => waiting.parked?.is_gone ?? (socket.destroyed && !response.writableEnded),
      onGone: (listener) => {
        waiting.onGone.push(listener)
        response.once('close', () => {
          if (waiting.parked === null) listener()
        })
      },
      end: () => void this.#waiting.delete(waiting),
    }
  }

  /** Whether the upgrade is an edge's, and to be given to accept(). */
  isChannel(request: IncomingMessage): boolean {
    const { headers } = request
    return headers.upgrade === CHANNEL_PROTOCOL && headers[EDGE_PROOF_HEADER] === this.#proof
  }

  accept(request: IncomingMessage, socket: Duplex): void {
    const edge_id = request.headers[PARK_HEADER]
    socket.on('error', () => socket.destroy())
    if (typeof edge_id !== 'string' || this.#channels.size >= CHANNELS_MAX || this.#is_closing) {
      socket.destroy()
      return
    }
    const read = createLineReader((word, number) => this.#onLine(socket, word, number))
    // An edge opens a new channel after it has lost the old one.
    this.#channels.get(edge_id)?.destroy()
    this.#channels.set(edge_id, socket)
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${CHANNEL_PROTOCOL}\r\n\r\n`)
    socket.on('data', (bytes: Buffer) => {
      if (!read(bytes)) socket.destroy()
    })
    socket.on('end', () => socket.destroy())
    socket.once('close', () => {
      if (this.#channels.get(edge_id) === socket) this.#channels.delete(edge_id)
      for (const parked of [...this.#parked.values()]) if (parked.channel === socket) this.#leave(parked)
    })
  }

  /** Sends the response that an edge fetches. False: the request fetches none, and is an ordinary one. */
  claim(request: IncomingMessage, response: ServerResponse): boolean {
    const { headers } = request
    const number = headers[CLAIM_HEADER]
    if (typeof number !== 'string' || headers[EDGE_PROOF_HEADER] !== this.#proof) return false
    const parked = this.#parked.get(Number(number))
    // The edge reads the end of the connection as: there will be no response.
    if (parked?.done_at == null) request.socket.destroy()
    else {
      this.#remove(parked)
      parked.response.sendTo(response)
    }
    return true
  }

  /** Waits for parked requests to end; then closes all channels. */
  async close(): Promise<void> {
    const until = performance.now() + DRAIN_MS_MAX
    this.#is_closing = true
    while (this.#parked.size > 0 && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, DRAIN_CHECK_MS))
    }
    this.#checks.close()
    for (const channel of this.#channels.values()) channel.destroy()
  }

  /** Returns whether the timer is still needed. */
  #check(): boolean {
    const now = performance.now()
    for (const waiting of this.#waiting) {
      if (now - waiting.since < PARK_AFTER_MS || this.#parked.size >= PARKED_MAX || this.#is_closing) break
      const channel = this.#channels.get(waiting.edge_id)
      const { socket } = waiting.request.raw
      if (channel === undefined || channel.destroyed || socket.destroyed) {
        // The response may take long, and other requests wait for this connection.
        if (!waiting.has_offer) socket.write(OFFER)
        waiting.has_offer = true
        continue
      }
      this.#waiting.delete(waiting)
      this.#park(waiting, channel)
    }
    for (const parked of this.#done) {
      if (now - parked.done_at! < CLAIM_MS_MAX) break
      this.#remove(parked)
    }
    return this.#waiting.size > 0 || this.#done.size > 0
  }

  #park(waiting: WaitingRequest, channel: Duplex): void {
    const { request, reply } = waiting
    const { raw: response } = reply
    const number = ++this.#last_number
    const parked: Parked = {
      ...{
        number,
        channel,
        is_gone: false,
        onGone: waiting.onGone,
        is_confirmed: false,
        unlisten: () => {},
        done_at: null,
      },
      response: new LateResponse(request.raw, response.statusCode, () => this.#onDone(parked)),
    }
    waiting.parked = parked
    this.#parked.set(number, parked)
    this.#leaveUnconfirmed(parked, request.raw.socket)
    response.writeHead(STATUS_ACCEPTED, { [PARKED_HEADER]: number, 'content-length': 0 }).end()
    // From here on the framework writes the response to this object.
    ;(reply as { raw: ServerResponse }).raw = parked.response
  }

  /**
   * Until the edge has confirmed, a closed connection is ambiguous. Either the caller has hung up, or the edge has used the
   * connection for another request and closed it: then the confirmation is on its way.
   */
  #leaveUnconfirmed(parked: Parked, socket: Socket): void {
    const onClose = (): void => {
      setTimeout(() => {
        if (!parked.is_confirmed) this.#leave(parked)
      }, CONFIRM_MS_MAX).unref()
    }
    socket.once('close', onClose)
    parked.unlisten = () => socket.off('close', onClose)
  }

  #onLine(channel: Duplex, word: string, number: number): void {
    const found = this.#parked.get(number)
    const parked = found?.channel === channel ? found : undefined
    if (word === 'gone' && parked !== undefined) this.#leave(parked)
    if (word !== 'parked') return
    if (parked === undefined) {
      channel.write(parkingLine('lost', number))
      return
    }
    parked.is_confirmed = true
    parked.unlisten()
    if (parked.done_at !== null) channel.write(parkingLine('done', number))
  }

  #onDone(parked: Parked): void {
    // No client waits for it.
    if (parked.is_gone) return
    parked.done_at = performance.now()
    this.#done.add(parked)
    this.#checks.need()
    if (parked.is_confirmed) parked.channel.write(parkingLine('done', parked.number))
  }

  /** Its caller is gone. */
  #leave(parked: Parked): void {
    if (parked.is_gone) return
    parked.is_gone = true
    this.#remove(parked)
    for (const listener of parked.onGone) listener()
  }

  #remove(parked: Parked): void {
    this.#done.delete(parked)
    this.#parked.delete(parked.number)
    parked.unlisten()
  }
}

const STATUS_ACCEPTED = 202
/** An interim response, which only the edge reads. */
const OFFER = `HTTP/1.1 103 Early Hints\r\n${PARKED_HEADER}: ${PARKING_OFFER}\r\n\r\n`

/** Receives a response as the framework writes it, and sends it later over another connection. */
class LateResponse extends ServerResponse {
  #headers: OutgoingHttpHeaders = {}
  #body: string | Buffer | undefined
  readonly #onDone: () => void

  constructor(request: IncomingMessage, status: number, onDone: () => void) {
    super(request)
    this.statusCode = status
    this.#onDone = onDone
  }

  override writeHead(status: number, ...rest: unknown[]): this {
    this.statusCode = status
    this.#headers = (rest.at(-1) ?? {}) as OutgoingHttpHeaders
    return this
  }

  override end(body?: unknown): this {
    this.#body = (body as string | Buffer | null) ?? undefined
    this.finished = true
    this.#onDone()
    this.emit('finish')
    this.emit('close')
    return this
  }

  sendTo(response: ServerResponse): void {
    response.writeHead(this.statusCode, this.#headers).end(this.#body)
  }
}
