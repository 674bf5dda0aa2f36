// Sends one request to the edge of a test, and returns the whole response.
import { once } from 'node:events'
import { type IncomingMessage, type RequestOptions, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { TestEdge } from './platform.ts'

export type HttpResponse = { status: number; headers: IncomingMessage['headers']; body: Buffer; code: string | null }
export const HOST = 'puddle.cdn.localhost'

export async function get(
  edge: Pick<TestEdge, 'port'>,
  path: string,
  options: RequestOptions = {},
): Promise<HttpResponse> {
  const headers = { host: HOST, ...options.headers }
  const req = request({ host: '127.0.0.1', port: edge.port, path, ...options, headers })
  req.end()
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  const body = await buffer(res)
  const is_error =
    /^application\/json/.test(res.headers['content-type'] ?? '') && (res.statusCode ?? 0) >= 400 && body.length > 0
  const code = is_error ? (JSON.parse(body.toString()) as { code: string }).code : null
  return { status: res.statusCode ?? 0, headers: res.headers, body, code }
}
