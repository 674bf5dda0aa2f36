// The head of a message as it is passed on: what belongs to one connection only is left out, what would speak for the
// edge is replaced, and there is one framing. The parser in front has already refused what is not HTTP; this refuses
// what two parsers might read differently.
import { ApiError } from '@muster/contract'
import { EDGE_PROOF_HEADER } from '../net/edge-proof.ts'
import { HEADERS_MAX } from './limits.ts'

/** Names and values in turn, as node:http has them. */
export type RawHeaders = string[]

export type RequestHead = {
  hosts: string[]
  /** What came as X-Forwarded-For, from whomever. */
  forwarded_for: string | undefined
  /** What came as X-Forwarded-Proto; nothing when there are two. */
  forwarded_proto: string | undefined
  /** What is passed on, without framing. */
  headers: RawHeaders
  body: 'none' | 'chunked' | { content_length: string }
}

/** RFC 9110 section 7.6.1, and its relatives. They are about one connection, and end with it. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
])
/** Headers by which a proxy speaks of the client: only the edge says these, whatever came in. */
const CLIENT_ADDRESS = new Set([
  'forwarded',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'client-ip',
  'true-client-ip',
  'cf-connecting-ip',
  'fastly-client-ip',
  'x-original-url',
  'x-rewrite-url',
  EDGE_PROOF_HEADER,
])
const CLIENT_ADDRESS_PREFIX = 'x-forwarded-'
const DIGITS = /^\d{1,15}$/

/**
 * Throws API_BAD_REQUEST for another version of HTTP, a transfer encoding other than chunked, a length that is not plain digits, and both at
 * once; API_HEADERS_TOO_LARGE for more than HEADERS_MAX lines.
 */
export function readRequestHead(raw: readonly string[], http_version: string): RequestHead {
  if (http_version !== '1.1' && http_version !== '1.0') throw new ApiError('API_BAD_REQUEST')
  if (raw.length > HEADERS_MAX * 2) throw new ApiError('API_HEADERS_TOO_LARGE')
  const head: RequestHead = {
    hosts: [],
    forwarded_for: undefined,
    forwarded_proto: undefined,
    headers: [],
    body: 'none',
  }
  const named = namedByConnection(raw)
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index]!
    const value = raw[index + 1]!
    const lower = name.toLowerCase()
    switch (lower) {
      case 'host':
        head.hosts.push(value)
        head.headers.push(name, value)
        continue
      case 'content-length':
        if (head.body !== 'none' || !DIGITS.test(value)) throw new ApiError('API_BAD_REQUEST')
        head.body = { content_length: value }
        continue
      case 'transfer-encoding':
        if (head.body !== 'none' || value.trim().toLowerCase() !== 'chunked' || http_version !== '1.1') {
          throw new ApiError('API_BAD_REQUEST')
        }
        head.body = 'chunked'
        continue
      // The edge itself says "100 Continue", when the backend is there to take the body.
      case 'expect':
        continue
      case 'x-forwarded-for':
        head.forwarded_for = head.forwarded_for === undefined ? value : `${head.forwarded_for},${value}`
        continue
      case 'x-forwarded-proto':
        head.forwarded_proto = head.forwarded_proto === undefined ? value : ''
        continue
    }
    if (HOP_BY_HOP.has(lower) || named?.has(lower)) continue
    // Some backends read a header's underscores as dashes.
    const plain = lower.includes('_') ? lower.replaceAll('_', '-') : lower
    if (plain.startsWith(CLIENT_ADDRESS_PREFIX) || CLIENT_ADDRESS.has(plain)) continue
    if (plain !== lower && (HOP_BY_HOP.has(plain) || plain === 'content-length' || plain === 'host')) continue
    head.headers.push(name, value)
  }
  return head
}

/** A response's headers without those of the connection it came on. Its length is kept: it is the frame. */
export function responseHeaders(raw: readonly string[], dropped: ReadonlySet<string> = NONE): RawHeaders {
  const headers: RawHeaders = []
  const named = namedByConnection(raw)
  for (let index = 0; index < raw.length; index += 2) {
    const lower = raw[index]!.toLowerCase()
    if (HOP_BY_HOP.has(lower) || dropped.has(lower)) continue
    if (lower !== 'content-length' && named?.has(lower)) continue
    headers.push(raw[index]!, raw[index + 1]!)
  }
  return headers
}

const NONE: ReadonlySet<string> = new Set()
/** The usual tokens name nothing that is not left out anyway. */
const PLAIN_CONNECTION = /^\s*(?:(?:keep-alive|close|upgrade)\s*)?(?:,\s*(?:keep-alive|close|upgrade)\s*)*$/i

/** Further headers that Connection declares to be of this connection only. */
function namedByConnection(raw: readonly string[]): Set<string> | undefined {
  let named: Set<string> | undefined
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index]!
    if (name.length !== 'connection'.length || name.toLowerCase() !== 'connection') continue
    const value = raw[index + 1]!
    if (PLAIN_CONNECTION.test(value)) continue
    named ??= new Set()
    for (const token of value.split(',')) named.add(token.trim().toLowerCase())
  }
  return named
}

/** Whether a request may leave HTTP behind: a WebSocket handshake and nothing else (no h2c, no body on the way). */
export function isWebSocketUpgrade(method: string | undefined, http_version: string, raw: readonly string[]): boolean {
  if (method !== 'GET' || http_version !== '1.1') return false
  let upgrades = 0
  for (let index = 0; index < raw.length; index += 2) {
    const lower = raw[index]!.toLowerCase()
    if (lower === 'upgrade') {
      if (raw[index + 1]!.trim().toLowerCase() !== 'websocket') return false
      upgrades++
    }
    if (lower === 'transfer-encoding' || lower === 'content-length') return false
  }
  return upgrades === 1
}
