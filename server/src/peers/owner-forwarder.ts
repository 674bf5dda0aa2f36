// Sends a request to the matchmaker that has the books of its namespace (shard-protocol.ts). While a shard moves from one
// process to another, its requests wait here. A request is sent again only where nothing of it was carried out: the connection
// was refused, or the other process did not have the shard. A repeatable request is also sent again when its process has lost
// the shard, or the connection. The response is small, and kept until all of it is there.
import { type ClientRequest, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'
import { ApiError, type Operation } from '@musterhost/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../context.ts'
import { readBounded } from '../flow/read-bounded.ts'
import { rayOf } from '../http/ray.ts'
import type { ShardOwner } from '../matchmaker/shards/shard-leases.ts'
import type { ShardOwners } from '../matchmaker/start.ts'
import { endForwarded, readForwardedHead } from '../observe/forwarded-ray.ts'
import { phase } from '../observe/ray.ts'
import { targetOf, whenLate } from '../outbound/tcp-probe.ts'
import type { ProcessTls } from '../process-tls/process-tls.ts'
import type { Caller } from '../tokens/caller.ts'
import { edgeProof } from '../tokens/edge-proof.ts'
import {
  CALLER_HEADER,
  EDGE_PROOF_HEADER,
  MOVED_HEADER,
  RAY_HEADER,
  RAY_KEPT_HEADER,
  RELAY_HEADER,
  STEPS_HEADER,
} from '../wire/headers.ts'
import { decodeHeader, encodeHeader, MOVED_STATUS } from '../wire/shard-protocol.ts'
import { OwnerConnections } from './owner-connections.ts'

/** Requests being forwarded. */
const FORWARDED_MAX = 16_384
/** How long a request waits for a process that has its shard. The books wait as long for their journal. */
const OWNER_WAIT_MS_MAX = 5_000
/** From a try to the next one at another process. */
const OWNER_PAUSE_MS = 50
/** The same at the process that could not be reached. */
const SAME_OWNER_PAUSE_MS = 250
const CONNECT_MS_MAX = 1_000
/** The same where another process can send the request on. */
const CONNECT_RELAYED_MS_MAX = 300
/** After this time without a byte a connection is closed. It is longer than any long poll. */
const SILENCE_MS_MAX = 120_000
/** The longest response: a page of lobbies with their states. */
const RESPONSE_BYTES_MAX = 16 * 1024 * 1024

/** The headers of a request that the other process reads. */
const REQUEST_HEADERS = ['authorization', 'content-type', 'idempotency-key', 'user-agent', 'origin']
/** Headers that this process sets itself, or that are about one connection. */
const OWN_RESPONSE_HEADERS =
  /^(?:connection|keep-alive|transfer-encoding|content-length|date|vary|x-ray-id|x-muster-.*|access-control-.*)$/

/** A request that another process has sent here. */
type Received = {
  caller: Caller
  /** What the process before has done of it. */
  steps: Steps
  /** It may be sent on from here. */
  is_relay: boolean
}
type OutgoingRequest = {
  method: string
  path: string
  headers: OutgoingHttpHeaders
  body: Buffer | null
  /** It may be sent again whatever became of it. */
  is_repeatable: boolean
  gone: AbortSignal
}
/** A request for a shard that is elsewhere. `steps`: what was done of it; changed here to what other processes have done. */
export type Begun = { shard: number; steps: Steps }
export type OwnersResponse = { status: number; headers: IncomingMessage['headers']; body: Buffer }

type Steps = Record<string, unknown>
type Process = { writer: string; address: string }
/** What became of one try. `unsent`: nothing was carried out. */
type Try =
  | { kind: 'response'; response: OwnersResponse }
  | { kind: 'moved'; steps: Steps | null }
  | { kind: 'unsent' }
  | { kind: 'lost' }

export class OwnerForwarder {
  readonly #ctx: Context
  readonly #owners: ShardOwners
  readonly #proof: string
  readonly #connections: OwnerConnections
  #count = 0

  constructor(ctx: Context, owners: ShardOwners, tls: ProcessTls) {
    this.#ctx = ctx
    this.#connections = new OwnerConnections(tls)
    this.#owners = owners
    this.#proof = edgeProof(ctx.keys)
  }

  /** Whether another process has sent the request here. */
  isReceived({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
    return headers[CALLER_HEADER] !== undefined && headers[EDGE_PROOF_HEADER] === this.#proof
  }

  /** Null: the request came from a client, not from another process. */
  receivedOf({ headers }: Pick<IncomingMessage, 'headers'>): Received | null {
    const caller = headers[CALLER_HEADER]
    if (typeof caller !== 'string' || !this.isReceived({ headers })) return null
    const steps = headers[STEPS_HEADER]
    return {
      caller: decodeHeader<Caller>(caller),
      steps: typeof steps === 'string' ? decodeHeader<Steps>(steps) : {},
      is_relay: headers[RELAY_HEADER] !== undefined,
    }
  }

  /** The shard of the caller's namespace, where its books are in another process; else null. */
  shardElsewhere(caller: Caller): number | null {
    const namespace_id = namespaceOf(caller)
    return namespace_id === null || this.#owners.has(namespace_id) ? null : this.#owners.shardOf(namespace_id)
  }

  /** Null for a caller without a namespace. */
  shardOf(caller: Caller): number | null {
    const namespace_id = namespaceOf(caller)
    return namespace_id === null ? null : this.#owners.shardOf(namespace_id)
  }

  /** The response to a request that another process has sent here, and whose shard is not here. */
  replyMoved(reply: FastifyReply, steps: Steps): FastifyReply {
    return reply
      .code(MOVED_STATUS)
      .header(MOVED_HEADER, isEmpty(steps) ? 'none' : encodeHeader(steps))
      .send()
  }

  /** Replies with the response of the process that has the shard. Null: the shard is here now, and `steps` are up to date. */
  async forward(
    from: FastifyRequest,
    reply: FastifyReply,
    begun: Begun,
    { gone, repeatable }: { gone: AbortSignal } & Pick<Operation, 'repeatable'>,
  ): Promise<FastifyReply | null> {
    const ray = rayOf(from)
    phase(ray, 'forward')
    const { client_ip, caller } = from.admitted!
    const headers: OutgoingHttpHeaders = { 'x-forwarded-for': client_ip, [RAY_HEADER]: from.id }
    for (const name of REQUEST_HEADERS) if (from.headers[name] !== undefined) headers[name] = from.headers[name]
    const is_repeatable = repeatable || from.method === 'GET' || from.headers['idempotency-key'] !== undefined
    const asked = { method: from.method, path: from.url, headers, body: from.raw_body, is_repeatable, gone }
    const response = await this.ask(asked, caller, begun)
    if (response === null) return null
    readForwardedHead(ray, (response.headers[RAY_KEPT_HEADER] as string | undefined) ?? null)
    reply.raw.once('finish', () => endForwarded(this.#ctx.recorder, ray))
    const shown = Object.entries(response.headers).filter(([name]) => !OWN_RESPONSE_HEADERS.test(name))
    return reply.code(response.status).headers(Object.fromEntries(shown)).send(response.body)
  }

  /** The response of the process that has the shard. Null: it is this process. Throws API_NOT_AVAILABLE. */
  async ask(asked: OutgoingRequest, caller: Caller, begun: Begun): Promise<OwnersResponse | null> {
    if (this.#count >= FORWARDED_MAX) throw notAvailable()
    this.#ctx.metrics.forwarded_requests.inc()
    this.#count++
    try {
      return await this.#ask(asked, caller, begun)
    } finally {
      this.#count--
    }
  }

  close(): void {
    this.#connections.close()
  }

  async #ask(asked: OutgoingRequest, caller: Caller, begun: Begun): Promise<OwnersResponse | null> {
    let until_ms = this.#ctx.elapsed() + OWNER_WAIT_MS_MAX
    for (;;) {
      const owner = this.#owners.ownerOf(begun.shard)
      if (owner?.address === null) return null
      let pause_ms = SAME_OWNER_PAUSE_MS
      if (owner !== null) {
        const tried = await this.#tryBoth(asked, caller, begun, owner as Process)
        if (tried.kind === 'response') return tried.response
        if (tried.kind === 'lost' && !asked.is_repeatable) throw notAvailable()
        if (tried.kind === 'moved') {
          Object.assign(begun.steps, tried.steps)
          until_ms = this.#ctx.elapsed() + OWNER_WAIT_MS_MAX
          pause_ms = 2 * OWNER_PAUSE_MS
        }
      }
      if (asked.gone.aborted || this.#ctx.elapsed() >= until_ms) throw notAvailable()
      await this.#untilMoved(begun.shard, owner, pause_ms)
    }
  }

  /** Waits for another owner, at most for `ms`. */
  async #untilMoved(shard: number, owner: ShardOwner | null, ms: number): Promise<void> {
    const until_ms = this.#ctx.elapsed() + ms
    do await Promise.race([this.#owners.refresh(), delay(OWNER_PAUSE_MS)])
    while (this.#owners.ownerOf(shard)?.writer === owner?.writer && this.#ctx.elapsed() < until_ms)
  }

  /** Directly and, where no connection can be made, through another process. */
  async #tryBoth(asked: OutgoingRequest, caller: Caller, begun: Begun, owner: Process): Promise<Try> {
    const { address } = owner
    const relay = this.#owners.peers().find((other) => other !== address && !this.#connections.isAway(other))
    const direct = { ...owner, via: address, connect_ms: relay === undefined ? CONNECT_MS_MAX : CONNECT_RELAYED_MS_MAX }
    if (relay === undefined) return this.#try(asked, caller, begun, direct)
    const relayed = { ...owner, via: relay, connect_ms: CONNECT_MS_MAX }
    const [first, second] = this.#connections.isAway(address) ? [relayed, direct] : [direct, relayed]
    const tried = await this.#try(asked, caller, begun, first)
    return tried.kind === 'unsent' ? this.#try(asked, caller, begun, second) : tried
  }

  /** `via`: where the request is sent: to the owner, or to a process that sends it on. */
  async #try(
    asked: OutgoingRequest,
    caller: Caller,
    { shard, steps }: Begun,
    owner: Process & { via: string; connect_ms: number },
  ): Promise<Try> {
    const ending = new AbortController()
    const signal = AbortSignal.any([ending.signal, asked.gone])
    const headers = {
      ...asked.headers,
      [EDGE_PROOF_HEADER]: this.#proof,
      [CALLER_HEADER]: encodeHeader(caller),
      ...(owner.via === owner.address ? {} : { [RELAY_HEADER]: '1' }),
      ...(isEmpty(steps) ? {} : { [STEPS_HEADER]: encodeHeader(steps) }),
      ...(asked.body === null ? {} : { 'content-length': asked.body.length }),
    }
    const { agent, end } = await this.#connections.begin(owner.via)
    const target = { ...targetOf(owner.via), agent, timeout: SILENCE_MS_MAX, signal }
    const call = request({ ...target, method: asked.method, path: asked.path, headers })
    call.on('timeout', () => call.destroy())
    let is_sent = false
    // The process may be suspended: its lease ends, and the response may come much later.
    const unfollow = asked.is_repeatable ? this.#owners.onLost(owner.writer, shard, () => ending.abort()) : () => {}
    try {
      await connected(call, owner.connect_ms)
      is_sent = true
      call.end(asked.body ?? undefined)
      const response = await responseOf(call)
      const moved = response.headers[MOVED_HEADER]
      if (response.status !== MOVED_STATUS || typeof moved !== 'string') return { kind: 'response', response }
      return { kind: 'moved', steps: moved === 'none' ? null : decodeHeader<Steps>(moved) }
    } catch (error) {
      if (!isOutage(error)) throw error
      if (!is_sent && !signal.aborted) this.#connections.failed(owner.via)
      return { kind: is_sent ? 'lost' : 'unsent' }
    } finally {
      end()
      unfollow()
    }
  }
}

function isEmpty(steps: Steps): boolean {
  return Object.keys(steps).length === 0
}

/** The namespace whose books the caller's operations need; null: the operation says it, or there is none. */
function namespaceOf(caller: Caller): string | null {
  return caller.kind === 'namespace' || caller.kind === 'identity' || caller.kind === 'lobby'
    ? caller.namespace_id
    : null
}

function connected(call: ClientRequest, ms: number): Promise<void> {
  return new Promise((resolve, reject) => {
    call.once('error', (error) => reject(error.name === 'AbortError' ? error : noConnection(error)))
    call.once('socket', (socket) => {
      if (isConnected(socket)) return resolve()
      const cancel = whenLate(socket, ms, () => call.destroy())
      socket.once('close', cancel)
      socket.once('connect', cancel)
      socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', resolve)
    })
  })
}

function isConnected(socket: Socket): boolean {
  return !socket.connecting && (!(socket instanceof TLSSocket) || socket.authorized)
}

/** Also when the other process could not prove itself. */
function noConnection(cause: Error): Error {
  return Object.assign(new Error('No connection could be made.', { cause }), { code: 'ECONNREFUSED' })
}

async function responseOf(call: ClientRequest): Promise<OwnersResponse> {
  const message = await new Promise<IncomingMessage>((resolve, reject) => {
    call.once('response', resolve)
    call.on('error', reject)
  })
  const tooLong = () => new Error('a matchmaker sent a response that is too long')
  const body = await readBounded(message, RESPONSE_BYTES_MAX, tooLong)
  return { status: message.statusCode!, headers: message.headers, body }
}

/** Codes of the system, such as ECONNRESET, a refusal of TLS, and the end of a request by its caller or by this process. */
function isOutage(error: unknown): boolean {
  const { code, name } = error as NodeJS.ErrnoException
  return name === 'AbortError' || /^(?:E[A-Z]+|ERR_SSL_.+)$/.test(code ?? '')
}

function notAvailable(): ApiError {
  return new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
}
