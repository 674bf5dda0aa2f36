// Connects an operation of the contract with its handler: checks the request and the caller, counts the rate limit, opens
// the ray and serialises the response. It is written once for all operations, so a handler contains only the operation.
import type { IncomingMessage } from 'node:http'
import {
  ApiError,
  type BodyOf,
  type CallerKind,
  type ErrorDetail,
  NO_BODY,
  type Operation,
  type ParamsOf,
  type QueryOf,
  type RateLimit,
  type ResponseOf,
  validationError,
} from '@muster/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { clientIp, clientKey, type TrustedProxies } from '../addresses/client-ip.ts'
import type { ClientShare } from '../addresses/client-share.ts'
import type { OwnAddresses } from '../addresses/own-addresses.ts'
import type { RateLimiter } from '../addresses/rate-limit.ts'
import type { Caller, CallerOf } from '../caller.ts'
import type { Context } from '../context.ts'
import { type Prepared, preparedText } from '../json-text.ts'
import { phase, type Ray } from '../observe/ray.ts'
import { EDGE_PROOF_HEADER } from '../tokens/edge-proof.ts'
import { authenticate, type OriginLookup } from './auth.ts'
import type { CallerWatch } from './caller-watch.ts'
import { placeErrors } from './errors.ts'
import { freeJsonOf } from './exact-data.ts'
import type { Parking } from './parking.ts'
import { endRay, ownerOf, type RayIds, rayOf } from './ray.ts'
import { answerWatch, isWatch, type WatchShares } from './watches.ts'

export type OperationRequest<O extends Operation, K extends CallerKind = CallerKind> = {
  ctx: Context
  caller: CallerOf<K>
  params: ParamsOf<O>
  query: QueryOf<O>
  body: BodyOf<O>
  ray_id: string
  /** Where its time goes; null: nobody keeps it. */
  ray: Ray | null
  /** The client's own address, seen through the proxies that are trusted. */
  address: string
  /** What limits per client count by: an IPv4 address or an IPv6 /64. */
  client: string
  user_agent: string | null
  idempotency_key: string | null
  /** For logging in, and for nothing else: whose page asks, and what it remembers. */
  origin: string | undefined
  cookie: string | undefined
  setCookie: (cookie: string) => void
  /** Adds the line and column in the body to each message, for operations that return errors instead of throwing. */
  placeErrors: (errors: readonly ErrorDetail[]) => ErrorDetail[]
  /** True once the caller has hung up: nobody will read the answer. */
  isGone: () => boolean
  /** Of a long poll: aborted when nobody waits for its answer any more, or nobody may. */
  gone: AbortSignal
  /** Aborted in the moment in which the caller hangs up. Made when it is asked for: most requests need none. */
  hangUpSignal: () => AbortSignal
}

type Response<O extends Operation> = ResponseOf<O> | Prepared<ResponseOf<O>>
type Handler<O extends Operation, K extends CallerKind = CallerKind> = (
  request: OperationRequest<O, K>,
) => Response<O> | Promise<Response<O>>

/** One handler for each kind of caller that the contract lets in. */
type HandlersByCaller<O extends Operation> = { [K in CallerKind]?: Handler<O, K> }

/** An operation and its handler; the types meet in implement() and are not needed afterwards. */
export type Implementation = { operation: Operation; handle: (request: OperationRequest<Operation>) => unknown }

/**
 * Without `handlers` by caller, one handler serves every caller that the contract lets in. Throws an Error where the
 * handlers are not exactly those of the operation's `auth`: a missing one would be found by its first caller.
 */
export function implement<O extends Operation>(
  operation: O,
  handler: Handler<O> | HandlersByCaller<O>,
): Implementation {
  if (typeof handler === 'function') return { operation, handle: handler as unknown as Implementation['handle'] }
  const handlers = handler as unknown as Readonly<Record<string, Implementation['handle']>>
  const kinds = Object.keys(handlers).sort()
  if (kinds.join() !== [...operation.auth].sort().join()) {
    throw new Error(`${operation.id} takes ${operation.auth.join(', ')}, but has handlers for ${kinds.join(', ')}`)
  }
  return { operation, handle: (request) => handlers[request.caller.kind]!(request) }
}

export type MountOptions = {
  ctx: Context
  trusted: TrustedProxies
  own_addresses: OwnAddresses
  edge_proof: string
  rayIdOf: RayIds
  parking: Parking
  /** Places for requests that did not come through the edge. */
  direct: ClientShare
  limiters: Record<Exclude<RateLimit, 'none'>, RateLimiter>
  namespaceOfOrigin: OriginLookup
  /** Who may wait, and whether they still may. */
  watches: WatchShares
  callers: CallerWatch
}

/** Of a body of somebody who shows no credential: reading and checking it is work that anybody could ask for. */
const STRANGER_BODY_BYTES_MAX = 64 * 1024

/** What does not wait does not ask. */
const NEVER = new AbortController().signal

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,128}$/

/** What is known of a request before its body is read: a stranger's body is not even parsed. */
type Admitted = { caller: Caller; address: string; client: string }

declare module 'fastify' {
  interface FastifyRequest {
    /** Null until its caller is known. */
    admitted: Admitted | null
    /** The JSON body as it came, to say where in it something is wrong; null when it is too large for that. */
    body_bytes: Buffer | null
  }
}

type OnRequest = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void

/** Before the body is read: who calls, whether the contract lets them, their rate, and their share of the requests under way. */
export function createAdmission(door: MountOptions, operation: Operation): OnRequest {
  const { ctx } = door
  const admit = (request: FastifyRequest, reply: FastifyReply, caller: Caller): void => {
    const address = addressOf(door, request.raw)
    const client = clientKey(address)
    const ray = rayOf(request)
    if (ray !== null) ray.owner = ownerOf(caller)
    requireRate(door, operation, caller, client)
    if (request.headers[EDGE_PROOF_HEADER] !== door.edge_proof) takePlace(door, reply, bucketOf(caller) ?? client)
    request.admitted = { caller, address, client }
    phase(ray, 'http')
  }
  return (request, reply, done) => {
    const ray = rayOf(request)
    if (ray !== null) ray.operation = operation.id
    phase(ray, 'auth')
    try {
      const { authorization, origin } = request.headers
      const caller = authenticate(ctx, operation, { authorization, origin }, door.namespaceOfOrigin)
      if (caller instanceof Promise) {
        caller.then((known) => admit(request, reply, known)).then(() => done(), done)
        return
      }
      admit(request, reply, caller)
    } catch (error) {
      done(error as Error)
      return
    }
    done()
  }
}

export function mount(app: FastifyInstance, door: MountOptions, { operation, handle }: Implementation): void {
  const { ctx } = door
  const { requests, request_seconds } = ctx.metrics
  const [by_operation, as_ok] = [{ operation: operation.id }, { operation: operation.id, code: 'ok' }]
  const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const ray = rayOf(request)
    phase(ray, isWatch(request.query) ? 'wait' : 'handle')
    const since = performance.now()
    const stay = door.parking.enter(request, reply, since)
    const isGone = stay?.isGone ?? (() => request.raw.socket.destroyed && !reply.raw.writableEnded)
    const onGone = stay?.onGone ?? ((listener: () => void) => void reply.raw.once('close', listener))
    const call: OperationRequest<Operation> = {
      ctx,
      ...request.admitted!,
      params: request.params as never,
      query: request.query as never,
      body: request.body as never,
      ray_id: request.id,
      ray,
      user_agent: request.headers['user-agent'] ?? null,
      idempotency_key: operation.idempotent ? idempotencyKeyOf(request) : null,
      origin: request.headers.origin,
      placeErrors: (errors) => placeErrors(errors, request),
      cookie: request.headers.cookie,
      setCookie: (cookie) => void reply.header('set-cookie', cookie),
      isGone,
      gone: NEVER,
      hangUpSignal: () => hangUpSignalOf(onGone, isGone),
    }
    let answer: unknown
    try {
      answer = isWatch(request.query)
        ? await answerWatch(door, operation, { request, onGone }, call, handle)
        : await handle(call)
    } finally {
      stay?.end()
    }
    endRay(ctx, request, reply, null)
    requests.inc(as_ok)
    request_seconds.observe(by_operation, (performance.now() - since) / 1_000)
    // Fastify takes null for "no answer", and a string for text that is sent as it stands: here they are JSON.
    if (answer === null || typeof answer === 'string') return sendJson(reply, JSON.stringify(answer))
    const text = preparedText(answer)
    return text === null ? answer : sendJson(reply, text)
  }
  const onRequest = createAdmission(door, operation)
  for (const url of urlsOf(operation)) {
    app.route({
      method: operation.method,
      url,
      schema: schemaOf(operation),
      config: {
        document: operation.document,
        operation: operation.id,
        free_json: freeJsonOf(operation.body),
      } as object,
      ...(operation.auth.includes('anyone') ? { bodyLimit: STRANGER_BODY_BYTES_MAX } : {}),
      onRequest,
      ...(operation.body === NO_BODY ? { preValidation: noBodyIsEmpty } : {}),
      handler,
    })
  }
}

/** As the framework writes the paths of an operation. */
export function urlsOf({ path, aliases }: Operation): string[] {
  return [path, ...aliases].map((one) => one.replace(/\{(\w+)\}/g, ':$1'))
}

/** One for each call of it. */
function hangUpSignalOf(onGone: (listener: () => void) => void, isGone: () => boolean): AbortSignal {
  if (isGone()) return AbortSignal.abort()
  const controller = new AbortController()
  // The response's own end emits it too.
  onGone(() => {
    if (isGone()) controller.abort()
  })
  return controller.signal
}

function sendJson(reply: FastifyReply, text: string): FastifyReply {
  return reply.type('application/json; charset=utf-8').serializer(String).send(text)
}

/** Query members are looked at even where there are none: what nobody asked for is refused. */
function schemaOf(operation: Operation) {
  return {
    ...(operation.method === 'GET' ? {} : { body: operation.body }),
    querystring: operation.query,
    ...(Object.keys(operation.params.properties).length > 0 ? { params: operation.params } : {}),
    response: { 200: operation.response },
  }
}

/** To the framework no body is null, which is no object. */
function noBodyIsEmpty(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  request.body ??= {}
  done()
}

/** The edge has made one address of what it was told; anybody else is believed by the proxies that are trusted. */
export function addressOf(door: MountOptions, request: IncomingMessage): string {
  const forwarded_for = request.headers['x-forwarded-for']
  const peer = request.socket.remoteAddress ?? '0.0.0.0'
  if (typeof forwarded_for !== 'string') return peer
  if (request.headers[EDGE_PROOF_HEADER] === door.edge_proof) return forwarded_for
  return door.own_addresses.has(peer) ? peer : clientIp({ peer, forwarded_for }, door.trusted)
}

/** A lobby draws from a bucket of its own, so that its machine's other lobbies do not starve it. */
export function requireRate(door: MountOptions, operation: Operation, caller: Caller, client: string): void {
  if (operation.rate_limit === 'none') return
  const key = bucketOf(caller) ?? client
  // A backend asks for all its players: what is counted is how often it calls, as everywhere.
  const asks_for_all = caller.kind === 'cloud' && operation.rate_limit !== 'kv'
  const limiter = door.limiters[asks_for_all ? 'cloud' : operation.rate_limit]
  const wait_ms = limiter.take(key, door.ctx.elapsed())
  if (wait_ms > 0) throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s: Math.ceil(wait_ms / 1000) })
}

/**
 * Requests that did not come through the edge, which has its own limits: those of lobbies (lobby-listener.ts). Each lobby
 * has a share of its own, like everybody whose requests are not counted by client. Throws API_RATE_LIMIT and API_NOT_AVAILABLE.
 */
function takePlace({ direct }: MountOptions, { raw }: FastifyReply, key: string): void {
  const place = direct.enter(key)
  if (place === 'client_full') throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s: 1 })
  if (place === 'full') throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
  raw.once('close', place.leave)
}

export function bucketOf(caller: Caller): string | null {
  switch (caller.kind) {
    case 'lobby':
      return caller.lobby_id
    case 'cloud':
      return caller.game_id
    case 'user':
      return caller.user_id
    default:
      return null
  }
}

function idempotencyKeyOf(request: FastifyRequest): string | null {
  const key = request.headers['idempotency-key']
  if (key === undefined) return null
  if (typeof key === 'string' && IDEMPOTENCY_KEY.test(key)) return key
  throw validationError([
    {
      path: ['headers', 'idempotency_key'],
      reason: 'invalid',
      message: 'Idempotency-Key takes 1 to 128 visible characters.',
    },
  ])
}
