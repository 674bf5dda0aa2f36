// A request as it is written, without a client that would mend it, and what every refusal looks like.
import assert from 'node:assert/strict'
import { type IncomingHttpHeaders, request } from 'node:http'
import { ERRORS, type ErrorBody, type ErrorCode } from '@musterhost/contract'

export type Ask = {
  method?: string
  headers?: Record<string, string | string[]>
  body?: string | Buffer
  /** The target unchanged, where no URL could hold it. */
  target?: string
}
export type Answer = { status: number; headers: IncomingHttpHeaders; text: string }

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export function ask(url: string, { method = 'GET', headers = {}, body, target }: Ask = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const length =
      body === undefined || 'transfer-encoding' in headers ? {} : { 'content-length': Buffer.byteLength(body) }
    const call = request(url, {
      method,
      headers: { ...length, ...headers },
      ...(target === undefined ? {} : { path: target }),
    })
    call.on('error', reject)
    call.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('error', reject)
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8')
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
      })
    })
    call.end(body)
  })
}

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
export const JSON_TYPE = { 'content-type': 'application/json' }

/** Asserts that the answer is a refusal as every refusal is: status, ray id and exactly the five members. */
export function requireRefusal({ status, headers, text }: Answer, ...codes: ErrorCode[]): ErrorBody {
  assert.match(headers['content-type'] ?? '', /^application\/json/, text)
  const body = JSON.parse(text) as ErrorBody
  assert.deepEqual(Object.keys(body).sort(), ['code', 'documentation', 'message', 'metadata', 'ray_id'], text)
  assert.ok(codes.includes(body.code as ErrorCode), `${body.code} is not ${codes.join(' or ')}: ${text}`)
  assert.equal(status, ERRORS[body.code as ErrorCode].status)
  assert.match(body.ray_id, UUID)
  assert.equal(headers['x-ray-id'], body.ray_id)
  assert.equal(new URL(body.documentation).pathname, `/docs/errors/${body.code}`)
  assert.ok(body.message.length > 0 && typeof body.metadata === 'object' && body.metadata !== null, text)
  if (status === 429 || status === 503) assert.match(headers['retry-after'] ?? '', /^[1-9]\d*$/)
  return body
}
