// Connects an operation of the contract with its handler: checks the request and the caller, counts the rate limit, opens
// the ray and serialises the response. It is written once for all operations, so a handler contains only the operation.
import type { IncomingMessage } from 'node:http'
import {
  ApiError,
  type BodyOf,
  type CallerKind,
  type ErrorDetail,
  isOptionalBody,
  type Operation,
  type ParamsOf,
  type QueryOf,
  type RateLimit,
  type ResponseOf,
  validationError,
} from '@musterhost/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { clientIp, clientKey, type TrustedProxies } from '../addresses/client-ip.ts'
import type { ClientShare } from '../addresses/client-share.ts'
import type { OwnAddresses } from '../addresses/own-addresses.ts'
import type { RateLimiter } from '../addresses/rate-limit.ts'
import type { ChangeContext } from '../audit/changes.ts'
import type { Refusals } from '../audit/refusals.ts'
import { areRefusalsAudited, isAudited } from '../audit/unaudited.ts'
import type { Caller, CallerOf } from '../caller.ts'
import type { Context } from '../context.ts'
import { type Prepared, preparedText } from '../json-text.ts'
import { type SeatProgress, ShardMoved } from '../matchmaker/shards/shard-moved.ts'
import { phase, type Ray } from '../observe/ray.ts'
import { ASK_SHARD_HEADER, SHARD_HEADER } from '../shard-protocol.ts'
import { EDGE_PROOF_HEADER } from '../tokens/edge-proof.ts'
import { authenticate, type OriginLookup } from './auth.ts'
import type { CallerWatch } from './caller-watch.ts'
import { placeErrors } from './errors.ts'
import { freeJsonOf } from './exact-json.ts'
import { readAsJson, takesAnyType } from './media-type.ts'
import type { OwnerForwarder } from './owner-forwarder.ts'
import type { Parking } from './parking.ts'
import { endRay, ownerOf, type RayIds, rayOf } from './ray.ts'
import { answerWatch, isWatch, type WatchShares } from './watches.ts'

export type OperationRequest<O extends Operation, K extends CallerKind = CallerKind> = {
  ctx: ChangeContext
  caller: CallerOf<K>
  params: ParamsOf<O>
  query: QueryOf<O>
  body: BodyOf<O>
  ray_id: string
  /** Records where the time of the request goes; null when no ray is kept. */
  ray: Ray | null
  /** The client's own address, as the trusted proxies report it. */
  address: string
  /** The key that limits per client count by: an IPv4 address or an IPv6 /64. */
  client: string
  user_agent: string | null
  idempotency_key: string | null
  /** Used only for logging in. */
  origin: string | undefined
  cookie: string | undefined
  setCookie: (cookie: string) => void
  /** Adds the line and column in the body to each message, for operations that return errors instead of throwing. */
  placeErrors: (errors: readonly ErrorDetail[]) => ErrorDetail[]
  /** How far another process had come with the request. */
  progress: SeatProgress | null
  /** Whether the caller has hung up. */
  isGone: () => boolean
  /** For a long poll: aborted when its caller has hung up or is no longer allowed. */
  gone: AbortSignal
  /** Aborted when the caller hangs up. It is created on demand: most requests need none. */
  hangUpSignal: () => AbortSignal
}

type Response<O extends Operation> = ResponseOf<O> | Prepared<ResponseOf<O>>
type Handler<O extends Operation, K extends CallerKind = CallerKind> = (
  request: OperationRequest<O, K>,
) => Response<O> | Promise<Response<O>>

/** One handler for each kind of caller that the contract admits. */
type HandlersByCaller<O extends Operation> = { [K in CallerKind]?: Handler<O, K> }

/** An operation and its handler; the types meet in implement() and are not needed afterwards. */
export type Implementation = { operation: Operation; handle: (request: OperationRequest<Operation>) => unknown }

/**
 * A single function handles every caller that the contract admits. Throws an Error where handlers by caller are not exactly
 * those of the operation's `auth`: a missing one would otherwise be found by its first caller.
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
  /** Sends requests to the process that has their books. Null: the role has none. */
  forwarder: OwnerForwarder | null
  /** Refusals for the audit log. */
  refusals: Refusals
  /** Places for requests that did not come through the edge. */
  direct: ClientShare
  limiters: Record<Exclude<RateLimit, 'none'>, RateLimiter>
  namespaceOfOrigin: OriginLookup
  /** Limits of long polls, and notifications when the rights of their callers change. */
  watches: WatchShares
  callers: CallerWatch
}

/** How often a request runs in this process whose shard leaves and comes back. */
const RUNS_MAX = 8

/** Longest body of a caller without a credential: anyone could make the platform read and check it. */
const STRANGER_BODY_BYTES_MAX = 64 * 1024

/** For requests that do not wait. */
const NEVER = new AbortController().signal

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,128}$/

/** What is known of a request before its body is read: the body of an unknown caller is not parsed. */
type Admitted = { caller: Caller; address: string; client: string }

declare module 'fastify' {
  interface FastifyRequest {
    /** Null until the caller is known. */
    admitted: Admitted | null
    /** The JSON body as it arrived, to find the place of an error; null when it is too large for that. */
    body_bytes: Buffer | null
    /** The JSON body as it arrived; null: there is none. */
    raw_body: Buffer | null
  }
}

type OnRequest = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void

/** Before the body is read: authenticates the caller, counts its rate, and takes a place among the requests under way. */
export function createAdmission(options: MountOptions, operation: Operation): OnRequest {
  const { ctx, forwarder } = options
  const admit = (request: FastifyRequest, reply: FastifyReply, caller: Caller, is_received: boolean): void => {
    const address = addressOf(options, request.raw)
    const client = clientKey(address)
    const ray = rayOf(request)
    if (ray !== null) ray.owner = ownerOf(caller)
    // Counted once: where the books are, or else by the process that asks there.
    const is_counted_elsewhere =
      forwarder !== null && (is_received ? forwarder.shardOf(caller) === null : forwarder.isElsewhere(caller))
    if (!is_counted_elsewhere) requireRate(options, operation, caller, client)
    if (forwarder !== null && request.headers[ASK_SHARD_HEADER] !== undefined) addShard(forwarder, reply, caller)
    if (request.headers[EDGE_PROOF_HEADER] !== options.edge_proof) takePlace(options, reply, bucketOf(caller) ?? client)
    request.admitted = { caller, address, client }
    phase(ray, 'http')
  }
  return (request, reply, done) => {
    const ray = rayOf(request)
    if (ray !== null) ray.operation = operation.id
    phase(ray, 'auth')
    try {
      const received = forwarder?.receivedOf(request) ?? null
      if (received !== null) {
        admit(request, reply, received.caller, true)
        return done()
      }
      const { authorization, origin } = request.headers
      const caller = authenticate(ctx, operation, { authorization, origin }, options.namespaceOfOrigin)
      if (caller instanceof Promise) {
        caller.then((known) => admit(request, reply, known, false)).then(() => done(), done)
        return
      }
      admit(request, reply, caller, false)
    } catch (error) {
      done(error as Error)
      return
    }
    done()
  }
}

/** For an edge, which asks this process or another one next time. */
function addShard(forwarder: OwnerForwarder, reply: FastifyReply, caller: Caller): void {
  const shard = forwarder.shardOf(caller)
  if (shard !== null) reply.header(SHARD_HEADER, shard)
}

export function mount(app: FastifyInstance, options: MountOptions, { operation, handle }: Implementation): void {
  const { ctx } = options
  const contextOf = createContextOf(ctx, operation)
  const { requests, request_seconds } = ctx.metrics
  const [by_operation, as_ok] = [{ operation: operation.id }, { operation: operation.id, code: 'ok' }]
  const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const ray = rayOf(request)
    phase(ray, isWatch(request.query) ? 'wait' : 'handle')
    const since = performance.now()
    const stay = options.parking.enter(request, reply, since)
    const isGone = stay?.isGone ?? (() => request.raw.socket.destroyed && !reply.raw.writableEnded)
    const onGone = stay?.onGone ?? ((listener: () => void) => void reply.raw.once('close', listener))
    const call: OperationRequest<Operation> = {
      ctx: contextOf(request),
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
      progress: null,
      isGone,
      gone: NEVER,
      hangUpSignal: () => hangUpSignalOf(onGone, isGone),
    }
    const run = (): unknown =>
      isWatch(request.query) ? answerWatch(options, operation, { request, onGone }, call, handle) : handle(call)
    let answer: unknown
    try {
      answer =
        options.forwarder === null
          ? await run()
          : await runAtOwner(options.forwarder, operation, { request, reply, call }, run)
    } finally {
      stay?.end()
    }
    // The other process has ended the ray, and counted the request.
    if (answer === reply) return reply
    endRay(ctx, request, reply, null)
    requests.inc(as_ok)
    request_seconds.observe(by_operation, (performance.now() - since) / 1_000)
    // Fastify takes null for an empty response, and a string for ready text. Here both are JSON values.
    if (answer === null || typeof answer === 'string') return sendJson(reply, JSON.stringify(answer))
    const text = preparedText(answer)
    return text === null ? answer : sendJson(reply, text)
  }
  const onRequest = createAdmission(options, operation)
  for (const url of urlsOf(operation)) {
    app.route({
      method: operation.method,
      url,
      schema: schemaOf(operation),
      config: {
        document: operation.document,
        operation: operation.id,
        are_refusals_audited: areRefusalsAudited(operation),
        free_json: freeJsonOf(operation.body),
      } as object,
      ...(operation.auth.includes('anyone') ? { bodyLimit: STRANGER_BODY_BYTES_MAX } : {}),
      onRequest: takesAnyType(operation) ? [onRequest, readAsJson] : onRequest,
      ...(isOptionalBody(operation.body) ? { preValidation: noBodyIsEmpty } : {}),
      handler,
    })
  }
}

type RunningCall = { request: FastifyRequest; reply: FastifyReply; call: OperationRequest<Operation> }

/** Runs the operation here or, where its shard is elsewhere, in the process that has it: then `reply` is returned. */
async function runAtOwner(
  forwarder: OwnerForwarder,
  { repeatable }: Operation,
  { request, reply, call }: RunningCall,
  run: () => unknown,
): Promise<unknown> {
  const received = forwarder.receivedOf(request)
  call.progress = received?.progress ?? null
  for (let runs = 1; ; runs++) {
    try {
      forwarder.requireHere(call.caller, call.progress)
      return await run()
    } catch (error) {
      if (!(error instanceof ShardMoved)) throw error
      if (received !== null && !received.is_relay) return forwarder.replyMoved(reply, error)
      const forwarded = await forwarder.forward(request, reply, { moved: error, gone: call.hangUpSignal(), repeatable })
      if (forwarded !== null) return forwarded
      if (runs === RUNS_MAX) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
      call.progress = error.progress
    }
  }
}

/** Only an operation that is audited gets a context of its own for each request: the others are called all the time. */
function createContextOf(ctx: Context, operation: Operation): (request: FastifyRequest) => ChangeContext {
  const unaudited: ChangeContext = { ...ctx, audit: null }
  if (!isAudited(operation)) return () => unaudited
  return (request) => {
    const { caller, address } = request.admitted!
    const { authorization } = request.headers
    const audit = { operation: operation.id, caller, authorization, client_ip: address, ray_id: request.id }
    return { ...ctx, audit }
  }
}

/** The paths of an operation in the framework's syntax. */
export function urlsOf({ path, aliases }: Operation): string[] {
  return [path, ...aliases].map((one) => one.replace(/\{(\w+)\}/g, ':$1'))
}

/** A new signal for each call. */
function hangUpSignalOf(onGone: (listener: () => void) => void, isGone: () => boolean): AbortSignal {
  if (isGone()) return AbortSignal.abort()
  const controller = new AbortController()
  // The end of the response emits it too.
  onGone(() => {
    if (isGone()) controller.abort()
  })
  return controller.signal
}

function sendJson(reply: FastifyReply, text: string): FastifyReply {
  return reply.type('application/json; charset=utf-8').serializer(String).send(text)
}

/** The query is checked even where the contract has no members of it: an unknown member is refused. */
function schemaOf(operation: Operation) {
  return {
    ...(operation.method === 'GET' ? {} : { body: operation.body }),
    querystring: operation.query,
    ...(Object.keys(operation.params.properties).length > 0 ? { params: operation.params } : {}),
    response: { 200: operation.response },
  }
}

/** The framework parses an empty body as null, which is not an object. */
function noBodyIsEmpty(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  request.body ??= {}
  done()
}

/** The address that the edge forwards is final. From any other peer, the header counts only behind trusted proxies. */
export function addressOf(options: MountOptions, request: IncomingMessage): string {
  const forwarded_for = request.headers['x-forwarded-for']
  const peer = request.socket.remoteAddress ?? '0.0.0.0'
  if (typeof forwarded_for !== 'string') return peer
  if (request.headers[EDGE_PROOF_HEADER] === options.edge_proof) return forwarded_for
  return options.own_addresses.has(peer) ? peer : clientIp({ peer, forwarded_for }, options.trusted)
}

/** A lobby has a limit of its own, so that other lobbies of its machine cannot starve it. */
export function requireRate(options: MountOptions, operation: Operation, caller: Caller, client: string): void {
  if (operation.rate_limit === 'none') return
  const key = bucketOf(caller) ?? client
  // A backend calls for all its players: only the number of its calls is limited.
  const asks_for_all = caller.kind === 'cloud' && operation.rate_limit !== 'kv'
  const limiter = options.limiters[asks_for_all ? 'cloud' : operation.rate_limit]
  const wait_ms = limiter.take(key, options.ctx.elapsed())
  if (wait_ms > 0) throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s: Math.ceil(wait_ms / 1000) })
}

/**
 * Limits requests that did not come through the edge, which has limits of its own: those of lobbies (lobby-listener.ts). Each
 * lobby, game and user has its own share. Throws API_RATE_LIMIT and API_NOT_AVAILABLE.
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
