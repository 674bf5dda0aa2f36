// Reads bounded JSON bodies of requests and writes JSON responses, over HTTP/1.1 and HTTP/2 alike.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'

export type HttpRequest = IncomingMessage | Http2ServerRequest
export type HttpResponse = ServerResponse | Http2ServerResponse
export type JsonRecord = Record<string, unknown>

export const BODY_BYTES_MAX = 64 * 1024
/** Bytes of a body past its bound that are read and dropped, so that its client can read the refusal. */
const DROPPED_BYTES_MAX = 1024 * 1024

/** Refuses a request. `status`: of the response. */
export class RequestError extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** Returns the parsed body; undefined when it is empty. Throws a RequestError. */
export async function readJson(request: HttpRequest): Promise<unknown> {
  const text = await readText(request)
  if (text.trim() === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    throw new RequestError(400, 'The body is not JSON. Send a JSON object.')
  }
}

function readText(request: HttpRequest): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    let bytes = 0
    request.on('data', (part: Buffer) => {
      bytes += part.length
      if (bytes <= BODY_BYTES_MAX) parts.push(part)
      else reject(new RequestError(413, `The body is longer than ${BODY_BYTES_MAX} bytes.`))
      if (bytes > BODY_BYTES_MAX + DROPPED_BYTES_MAX) request.destroy()
    })
    request.once('end', () => resolve(Buffer.concat(parts).toString('utf8')))
    request.once('error', reject)
    request.once('close', () => reject(new RequestError(400, 'The request ended early.')))
  })
}

/** Writes a response with a JSON body. */
export function sendJson(response: HttpResponse, status: number, body: unknown): void {
  if (response.headersSent || response.destroyed) return
  const text = JSON.stringify(body)
  response.statusCode = status
  response.setHeader('content-type', 'application/json')
  response.setHeader('content-length', Buffer.byteLength(text))
  response.end(text)
}

/** The JSON object, or null for every other value. */
export function asRecord(value: unknown): JsonRecord | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonRecord) : null
}

/** The path of a request without its query, in decoded parts. Empty when an escape is not valid. */
export function pathParts(request: HttpRequest): string[] {
  const path = (request.url ?? '/').split('?', 1)[0] ?? ''
  try {
    return path.split('/').filter(Boolean).map(decodeURIComponent)
  } catch {
    return []
  }
}
