// The media type of a body. Engines and tools send JSON under the type of a form, or under none, so an operation that needs
// a credential takes JSON of any type. An operation for anyone requires `application/json`, because the session cookie may
// count there. A page of another origin cannot send that type without a preflight request, which the platform refuses.
import { ApiError, type Operation, shownName } from '@musterhost/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'

declare module 'fastify' {
  interface FastifyRequest {
    /** The Content-Type that came in place of `application/json`; empty without one. Null: the type is not replaced. */
    sent_type: string | null
  }
}

const JSON_TYPE = 'application/json'

/** What the clients that send a type by default need instead. */
const REMEDIES: readonly [type: string, remedy: string][] = [
  [
    'application/x-www-form-urlencoded',
    'Unity: UnityWebRequest.Post(url, json, "application/json"); with two arguments it encodes a form. curl: --json.',
  ],
  ['multipart/form-data', 'Unity: UnityWebRequest.Post(url, json, "application/json") in place of a WWWForm.'],
  ['application/octet-stream', 'Unity: set uploadHandler.contentType to "application/json".'],
  ['text/plain', 'JavaScript: fetch(url, { headers: { "content-type": "application/json" }, ... }).'],
  ['', 'Godot: pass ["Content-Type: application/json"] as the headers of HTTPRequest.request.'],
]

/** The first byte of an object, a list or a string in JSON, after white space. */
const BEGINS_LIKE_JSON = /^[ \t\r\n]*[[{"]/

export function takesAnyType(operation: Operation): boolean {
  return !operation.auth.includes('anyone')
}

/** An onRequest hook: the framework then parses the body as JSON. */
export function readAsJson(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  const { headers } = request.raw
  const sent = headers['content-type']
  if (sent !== JSON_TYPE && hasBody(headers)) {
    request.sent_type = sent ?? ''
    headers['content-type'] = JSON_TYPE
  }
  done()
}

function hasBody(headers: FastifyRequest['raw']['headers']): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

/** Throws API_UNSUPPORTED_MEDIA_TYPE for a compressed body. */
export function requireNoCoding({ headers }: FastifyRequest): void {
  const coding = headers['content-encoding']
  if (coding === undefined || coding.toLowerCase() === 'identity') return
  const message = `The body came with Content-Encoding ${shownName(coding)}. Send it uncompressed, without this header.`
  throw new ApiError('API_UNSUPPORTED_MEDIA_TYPE', { content_encoding: shownName(coding) }, { message })
}

/** The error for a body that is not JSON: about its type, where neither the type nor the bytes are those of JSON. */
export function refusalOfBytes(request: FastifyRequest, bytes: Buffer, refusal: unknown): unknown {
  const { sent_type } = request
  if (!(refusal instanceof ApiError) || refusal.code !== 'API_BAD_BODY') return refusal
  if (sent_type === null || sent_type === '' || isJson(sent_type)) return refusal
  return BEGINS_LIKE_JSON.test(bytes.toString('latin1', 0, 64)) ? refusal : unsupportedType(sent_type)
}

function isJson(type: string): boolean {
  return /^application\/json[\t ]*(?:;|$)/i.test(type)
}

/** `type`: the Content-Type of the request. */
export function unsupportedType(type: string | undefined): ApiError {
  const sent = type ?? ''
  const came = sent.trim() === '' ? 'without a Content-Type' : `as ${shownName(sent)}`
  const [, remedy] = REMEDIES.find(([name]) => name === sent.split(';')[0]!.trim().toLowerCase()) ?? []
  const hint = remedy === undefined ? '' : ` ${remedy}`
  const message = `The body came ${came}. Send JSON with the header Content-Type: ${JSON_TYPE}.${hint}`
  return new ApiError(
    'API_UNSUPPORTED_MEDIA_TYPE',
    { content_type: type === undefined ? null : shownName(type) },
    { message },
  )
}
