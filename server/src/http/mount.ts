// Serves an operation at its paths: checks the request, runs the handler, ends the ray and serialises the response.
import { isOptionalBody, type Operation, validationError } from '@musterhost/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { ChangeContext } from '../audit/changes.ts'
import { areRefusalsAudited, isAudited } from '../audit/unaudited.ts'
import type { Context } from '../context.ts'
import { phase } from '../observe/ray.ts'
import { preparedText } from '../text/json-text.ts'
import { createAdmission } from './admission.ts'
import { locateErrors } from './errors.ts'
import { freeJsonOf } from './exact-json.ts'
import type { Implementation, OperationRequest } from './implement.ts'
import { readAsJson, takesAnyType } from './media-type.ts'
import type { MountOptions } from './mount-options.ts'
import { endRay, rayOf } from './ray.ts'
import { answerWatch, isWatch } from './watches.ts'

/** Longest body of a caller without a credential: anyone could make the platform read and check it. */
const STRANGER_BODY_BYTES_MAX = 64 * 1024

/** For requests that do not wait. */
const NEVER = new AbortController().signal

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,128}$/

export function mount(app: FastifyInstance, options: MountOptions, { operation, handle }: Implementation): void {
  const { ctx } = options
  const contextOf = createContextOf(ctx, operation)
  const { requests, request_seconds } = ctx.metrics
  const [by_operation, as_ok] = [{ operation: operation.id }, { operation: operation.id, code: 'ok' }]
  const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    phase(rayOf(request), isWatch(request.query) ? 'wait' : 'handle')
    const since = performance.now()
    const presence = presenceOf(request, reply)
    const call = callOf(operation, contextOf(request), { request, reply, presence })
    const { onGone } = presence
    const run = (): unknown =>
      isWatch(request.query) ? answerWatch(options, operation, { request, onGone }, call, handle) : handle(call)
    const answer = await options.peers.run(operation, { request, reply, call }, run)
    // Another process has responded. It has ended the ray, and counted the request.
    if (answer === reply) return reply
    endRay(ctx, request, reply, null)
    requests.inc(as_ok)
    request_seconds.observe(by_operation, (performance.now() - since) / 1_000)
    // Fastify takes null for an empty response, and a string for ready text. Here both are JSON values.
    if (answer === null || typeof answer === 'string') return sendJson(reply, JSON.stringify(answer))
    const text = preparedText(answer)
    return text === null ? (answer ?? {}) : sendJson(reply, text)
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

/** Whether the caller of a request still waits. */
type Presence = {
  /** Whether the caller has hung up. */
  isGone: () => boolean
  /** Calls the listener when the caller hangs up; it may also be called after the response has left. */
  onGone: (listener: () => void) => void
}

type Exchange = { request: FastifyRequest; reply: FastifyReply; presence: Presence }

/** The request as the handler receives it. Throws VALIDATION_ERROR for a malformed Idempotency-Key. */
function callOf(
  { idempotent }: Operation,
  ctx: ChangeContext,
  { request, reply, presence }: Exchange,
): OperationRequest<Operation> {
  const { headers } = request
  const { isGone, onGone } = presence
  return {
    ctx,
    ...request.admitted!,
    params: request.params as never,
    query: request.query as never,
    body: request.body as never,
    ray_id: request.id,
    ray: rayOf(request),
    user_agent: headers['user-agent'] ?? null,
    idempotency_key: idempotent ? idempotencyKeyOf(request) : null,
    origin: headers.origin,
    locateErrors: (errors) => locateErrors(errors, request),
    cookie: headers.cookie,
    setCookie: (cookie) => void reply.header('set-cookie', cookie),
    steps: {},
    isGone,
    gone: NEVER,
    hangUpSignal: () => hangUpSignalOf(onGone, isGone),
  }
}

/** A caller without a connection has hung up. */
function presenceOf(request: FastifyRequest, reply: FastifyReply): Presence {
  return {
    isGone: () => request.raw.socket.destroyed && !reply.raw.writableEnded,
    onGone: (listener) => void reply.raw.once('close', listener),
  }
}

/** Only an operation that is audited gets a context of its own for each request: the others are called all the time. */
function createContextOf(ctx: Context, operation: Operation): (request: FastifyRequest) => ChangeContext {
  const unaudited: ChangeContext = { ...ctx, audit: null }
  if (!isAudited(operation)) return () => unaudited
  return (request) => {
    const { caller, client_ip } = request.admitted!
    const { authorization } = request.headers
    const audit = { operation: operation.id, caller, authorization, client_ip, ray_id: request.id }
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
