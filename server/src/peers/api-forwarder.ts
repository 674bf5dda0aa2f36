// Forwards the api's operations that lobbies call through the matchmaker's process (http/lobby-listener.ts). A request is sent
// once. Only a refused connection is tried again: nothing was sent over it, and the api is being started. Bodies are
// streamed unread in both directions, with backpressure.
import { Agent, type ClientRequest, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { ApiError } from '@musterhost/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ClientShare } from '../addresses/client-share.ts'
import type { Context } from '../context.ts'
import { bucketOf } from '../http/admission.ts'
import { lingerClose } from '../http/lingering-close.ts'
import { rayOf } from '../http/ray.ts'
import { endForwarded, readForwardedHead } from '../observe/forwarded-ray.ts'
import { phase } from '../observe/ray.ts'
import { bareHost } from '../text/bare-host.ts'
import { edgeProof } from '../tokens/edge-proof.ts'
import { EDGE_PROOF_HEADER, RAY_HEADER, RAY_KEPT_HEADER } from '../wire/headers.ts'

/** Requests that are being forwarded. */
const FORWARDED_MAX = 4_096
/** Requests of one lobby that are being forwarded. The api allows one client as many long polls of entries. */
const FORWARDED_PER_LOBBY_MAX = 512
/** Idle connections to the api. */
const FREE_SOCKETS_MAX = 64
/** After this time without a byte a connection is closed. It is longer than any long poll. */
const SILENCE_MS_MAX = 120_000
/** How long a request waits for an api that is being started. The edge waits as long. */
const API_WAIT_MS_MAX = 2_500
const API_PAUSE_MS = 50

/** The headers of a request that the api reads. */
const REQUEST_HEADERS = ['authorization', 'content-type', 'content-encoding', 'idempotency-key', 'user-agent']
/** Headers that are only for this process. */
const OWN_RESPONSE_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'date',
  RAY_KEPT_HEADER,
])

export class ApiForwarder {
  readonly #ctx: Context
  readonly #proof: string
  readonly #agent = new Agent({ keepAlive: true, maxSockets: FORWARDED_MAX, maxFreeSockets: FREE_SOCKETS_MAX })
  readonly #share = new ClientShare({ slots_max: FORWARDED_MAX, client_max: FORWARDED_PER_LOBBY_MAX })

  constructor(ctx: Context) {
    this.#ctx = ctx
    this.#proof = edgeProof(ctx.keys)
  }

  /** Replies with what the api returns. Throws API_RATE_LIMIT and API_NOT_AVAILABLE. */
  async forward(from: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const ray = rayOf(from)
    const gone = new AbortController()
    reply.raw.once('close', () => gone.abort())
    this.#takeSlot(from, reply, gone)
    phase(ray, 'forward')
    const response = await this.#send(from, gone.signal).catch((error: NodeJS.ErrnoException) => {
      if (gone.signal.aborted || SYSTEM_ERROR.test(error.code ?? '')) throw notAvailable()
      throw error
    })
    readForwardedHead(ray, (response.headers[RAY_KEPT_HEADER] as string | undefined) ?? null)
    reply.raw.once('finish', () => endForwarded(this.#ctx.recorder, ray))
    const headers = Object.entries(response.headers).filter(([name]) => !OWN_RESPONSE_HEADERS.has(name))
    // The api has refused the body before all of it arrived.
    if (!from.raw.complete) {
      headers.push(['connection', 'close'])
      lingerClose(from.raw)
    }
    return reply.code(response.statusCode!).headers(Object.fromEntries(headers)).send(response)
  }

  close(): void {
    this.#agent.destroy()
  }

  /** When all slots are taken, a lobby with few requests displaces one of the lobby with the most. */
  #takeSlot({ admitted }: FastifyRequest, reply: FastifyReply, gone: AbortController): void {
    const { caller, client_key } = admitted!
    const slot = this.#share.enter(bucketOf(caller) ?? client_key, () => gone.abort())
    if (slot === 'client_full') throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s: 1 })
    if (slot === 'full') throw notAvailable()
    reply.raw.once('close', slot.leave)
  }

  async #send(from: FastifyRequest, signal: AbortSignal): Promise<IncomingMessage> {
    const call = await this.#connect(from, signal)
    const response = new Promise<IncomingMessage>((resolve, reject) => {
      call.once('response', resolve)
      // It may also come after the response: an api that refuses a body closes its side while the body is still being sent.
      call.on('error', reject)
    })
    if (hasBody(from)) from.raw.pipe(call)
    else call.end()
    return response
  }

  /** Opens a connection for a request, and sends nothing yet. */
  async #connect(from: FastifyRequest, signal: AbortSignal): Promise<ClientRequest> {
    const { internal_host: hostname, api_port: port } = this.#ctx.config
    const target = { hostname: bareHost(hostname), port, agent: this.#agent, timeout: SILENCE_MS_MAX }
    for (let attempt = 1; ; attempt++) {
      const call = request({ ...target, signal, method: from.method, path: from.url, headers: this.#headersOf(from) })
      call.on('timeout', () => call.destroy())
      try {
        await connected(call)
        return call
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ECONNREFUSED') throw error
        if (attempt * API_PAUSE_MS > API_WAIT_MS_MAX) throw error
      }
      await delay(API_PAUSE_MS, undefined, { signal })
    }
  }

  #headersOf(from: FastifyRequest): OutgoingHttpHeaders {
    const headers: OutgoingHttpHeaders = {
      'x-forwarded-for': from.admitted!.client_ip,
      [EDGE_PROOF_HEADER]: this.#proof,
      [RAY_HEADER]: from.id,
    }
    for (const name of REQUEST_HEADERS) if (from.headers[name] !== undefined) headers[name] = from.headers[name]
    // Set explicitly: without it Node sends the body of a DELETE unframed.
    if (isChunked(from)) headers['transfer-encoding'] = 'chunked'
    else if (from.headers['content-length'] !== undefined) headers['content-length'] = from.headers['content-length']
    return headers
  }
}

/** Codes of the system, such as ECONNRESET; Node's own begin with ERR_. */
const SYSTEM_ERROR = /^E[A-Z]+$/

function notAvailable(): ApiError {
  return new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
}

function isChunked({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined
}

function hasBody(from: FastifyRequest): boolean {
  return isChunked(from) || Number(from.headers['content-length'] ?? 0) > 0
}

function connected(call: ClientRequest): Promise<void> {
  return new Promise((resolve, reject) => {
    call.once('error', reject)
    call.once('socket', (socket) => {
      if (socket.connecting) socket.once('connect', resolve)
      else resolve()
    })
  })
}
