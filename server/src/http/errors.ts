// Turns every error into a response. An ApiError is for the caller and keeps its code. A body that does not fit the contract
// becomes VALIDATION_ERROR with the paths. Every other error is logged whole for the operator, and the caller receives
// INTERNAL_ERROR without a detail.
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ApiError, type ErrorCode, type ErrorDetail, errorBody, validationError } from '@musterhost/contract'
import { toDetails } from '@musterhost/contract/schema-check'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { mainUrl } from '../config/addresses.ts'
import type { Context } from '../context.ts'
import { newId } from '../ids.ts'
import type { Ray } from '../observe/ray.ts'
import { addPositions } from './error-positions.ts'
import { lingerClose } from './lingering-close.ts'
import { unsupportedType } from './media-type.ts'
import { endRay } from './ray.ts'

/** Codes of the framework that the caller has caused. */
const FRAMEWORK_CODES: Record<string, ErrorCode> = {
  FST_ERR_BAD_URL: 'API_BAD_REQUEST',
  FST_ERR_MAX_PARAM_LENGTH: 'API_BAD_REQUEST',
  FST_ERR_CTP_BODY_TOO_LARGE: 'API_BODY_TOO_LARGE',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'API_UNSUPPORTED_MEDIA_TYPE',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'API_BAD_BODY',
  FST_ERR_CTP_EMPTY_TYPE: 'API_UNSUPPORTED_MEDIA_TYPE',
}

/** For a 503 whose error does not say when to try again. */
const RETRY_AFTER_S = 1

/** Messages of the database driver, which have no code, when a connection breaks within a transaction. */
const LOST_CONNECTION = /^(?:Client has encountered a connection error|Connection terminated)/

/** The database is away or has no room: connection errors, and SQLSTATE classes 08, 53 and 57. */
const OUTAGE = /^(ECONNREFUSED|ECONNRESET|ENOENT|EPIPE|08...|53...|57...)$/

/** `document`: the member of the body whose errors have paths relative to it (contract: Operation.document). */
function placed(detail: ErrorDetail, part: string, document: string | null): ErrorDetail {
  const { path } = detail
  if (part !== 'body') return { ...detail, path: [part, ...path] }
  return document !== null && path.length > 1 && path[0] === document ? { ...detail, path: path.slice(1) } : detail
}

function toApiError(error: unknown, document: string | null, content_type?: string): ApiError | null {
  if (error instanceof ApiError) return error
  if (!(error instanceof Error)) return null
  const framework = error as FastifyError
  if (framework.validation) {
    const details = toDetails(framework.validation)
    return validationError(details.map((detail) => placed(detail, partOf(framework), document)))
  }
  const code = FRAMEWORK_CODES[framework.code]
  if (code === 'API_UNSUPPORTED_MEDIA_TYPE') return unsupportedType(content_type)
  if (code !== undefined) return new ApiError(code)
  if (isOutage(framework)) return new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
  return framework.statusCode === 400 ? new ApiError('API_BAD_BODY') : null
}

/** The same error, with the line and column of each member in its messages where they are known. */
function withPositions(refusal: ApiError, request: FastifyRequest): ApiError {
  const { errors } = refusal.metadata
  return Array.isArray(errors) ? validationError(locateErrors(errors as ErrorDetail[], request)) : refusal
}

/** Adds the line and column in the request's body to the messages of `errors`. */
export function locateErrors(errors: readonly ErrorDetail[], request: FastifyRequest): ErrorDetail[] {
  if (errors.length === 0 || !request.body_bytes) return [...errors]
  return addPositions(errors, request.body_bytes.toString('utf8'), configOf(request).document ?? null)
}

type RouteConfig = { document?: string | null; operation?: string }

/** Set by mount(); absent for a route that is not an operation. */
function configOf(request: FastifyRequest): RouteConfig {
  return (request.routeOptions.config as RouteConfig | undefined) ?? {}
}

function partOf(error: FastifyError): string {
  const part = error.validationContext ?? 'body'
  return part === 'querystring' ? 'query' : part
}

function isOutage({ code, message }: Error & { code?: unknown }): boolean {
  return (typeof code === 'string' && OUTAGE.test(code)) || LOST_CONNECTION.test(message)
}

/** `onRefusal` receives every error with the code that the client gets. */
export function createErrorHandler(ctx: Context, onRefusal: (request: FastifyRequest, refusal: ApiError) => void) {
  const main_url = mainUrl(ctx.config)
  return function handleError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const { document = null, operation = 'none' } = configOf(request)
    let refusal = toApiError(error, document, request.headers['content-type'])
    if (refusal?.code === 'VALIDATION_ERROR') refusal = withPositions(refusal, request)
    if (refusal === null) {
      ctx.log.error({ err: error, ray_id: request.id, method: request.method, path: request.url }, 'a request failed')
      refusal = new ApiError('INTERNAL_ERROR')
    }
    endRay(ctx, request, reply, refusal.code)
    ctx.metrics.requests.inc({ operation, code: refusal.code })
    onRefusal(request, refusal)
    if (!request.raw.complete && reply.getHeader('connection') === 'close') lingerClose(request.raw)
    const retry_after_s = refusal.retry_after_s ?? (refusal.status === 503 ? RETRY_AFTER_S : undefined)
    if (retry_after_s !== undefined) reply.header('retry-after', String(retry_after_s))
    reply
      // The framework refuses some requests before any hook.
      .header('x-ray-id', request.id)
      .code(refusal.status)
      .type('application/json')
      .send(errorBody(refusal, { ray_id: request.id, main_url }))
  }
}

/** Errors of Node's parser; all others become API_BAD_REQUEST. */
const PARSER_CODES: Record<string, ErrorCode> = {
  HPE_HEADER_OVERFLOW: 'API_HEADERS_TOO_LARGE',
  ERR_HTTP_REQUEST_TIMEOUT: 'API_REQUEST_TIMEOUT',
}

/** Responds to bytes that are not a request, and closes the connection: the start of a next request cannot be known. */
export function createParserErrorHandler(ctx: Context) {
  return function handleParserError(error: NodeJS.ErrnoException, socket: Socket): void {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    refuseSocket(ctx, socket, new ApiError(PARSER_CODES[error.code ?? ''] ?? 'API_BAD_REQUEST'), newId(ctx.now()))
  }
}

/** Writes the response to a bare socket, and closes it. */
function refuseSocket(ctx: Context, socket: Duplex, refusal: ApiError, ray_id: string): void {
  const body = JSON.stringify(errorBody(refusal, { ray_id, main_url: mainUrl(ctx.config) }))
  const head = [
    `HTTP/1.1 ${refusal.status} ${refusal.code}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-ray-id: ${ray_id}`,
    ...(refusal.retry_after_s === undefined ? [] : [`retry-after: ${refusal.retry_after_s}`]),
    'connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

/** Refuses an upgrade. There is no reply object, so the response is written to the socket. */
export function refuseUpgrade(
  ctx: Context,
  socket: Duplex,
  error: unknown,
  { ray_id, ray }: { ray_id: string; ray: Ray | null },
): void {
  const refusal = toApiError(error, null)
  if (refusal === null) ctx.log.error({ err: error, ray_id }, 'a WebSocket could not be opened')
  const error_sent = refusal ?? new ApiError('INTERNAL_ERROR')
  ctx.recorder.end(ray, error_sent.code)
  refuseSocket(ctx, socket, error_sent, ray_id)
}
