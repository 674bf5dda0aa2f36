// The head of a request, as the edge forwards it. Headers about one connection are dropped, headers that only the edge may
// set are replaced, and there is exactly one framing.
import { METHODS } from 'node:http'
import { ApiError } from '@musterhost/contract'
import {
  ASK_SHARD_HEADER,
  CALLER_HEADER,
  EDGE_PROOF_HEADER,
  RAY_HEADER,
  RELAY_HEADER,
  STEPS_HEADER,
  TRUNK_HEADER,
} from '../../wire/headers.ts'
import { HEADERS_MAX } from '../limits.ts'
import {
  continuesAfter,
  DIGITS,
  dropNamed,
  FRAME,
  type Framing,
  forwardedLines,
  HOP_BY_HOP,
  hasTabs,
  hasToken,
  type Special,
  specials,
  valueAt,
} from './forwarded-lines.ts'
import { createNameTable, isTarget, LINE_MARKS, marks, readLines, TOO_MANY_LINES } from './lines.ts'

export type RequestHead = {
  method: string
  target: string
  /** The response has no chunks, and the connection ends with it. So it is for a stream of HTTP/2. */
  is_version_1_0: boolean
  hosts: string[]
  /** X-Forwarded-For as it arrived, from any peer. */
  forwarded_for: string | undefined
  /** X-Forwarded-Proto as it arrived; empty when there are two. */
  forwarded_proto: string | undefined
  /** The forwarded lines, without framing. */
  lines: string
  framing: Exclude<Framing, 'until_end'>
  /** The client would send another request over this connection. */
  keeps_alive: boolean
  /** The client sends its body after a "100 Continue". */
  expects_continue: boolean
  /** A plain WebSocket handshake: no h2c, and no body. */
  is_upgrade: boolean
}

/** Headers by which a proxy describes the client and the request. Only the edge sets them; received ones are dropped. */
const CLIENT_ADDRESS = [
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
  RAY_HEADER,
  TRUNK_HEADER,
  CALLER_HEADER,
  STEPS_HEADER,
  RELAY_HEADER,
  ASK_SHARD_HEADER,
].map((name) => [name, 'dropped'] as const)
/** Headers that only the edge, and other processes of the platform, set: also those of other builds of them. */
const OWN_PREFIXES = ['x-forwarded-', 'x-muster-'] as const

const REQUEST_NAMES = new Map<string, Special>([
  ...FRAME,
  ...HOP_BY_HOP,
  ...CLIENT_ADDRESS,
  ['host', 'host'],
  // The edge itself sends "100 Continue", when the backend is ready for the body.
  ['expect', 'expect'],
  ['x-forwarded-for', 'forwarded-for'],
  ['x-forwarded-proto', 'forwarded-proto'],
])
const requestName = createNameTable<Special>(REQUEST_NAMES)

const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS)
/** What stands between the target and the last digit of a request's first line. */
const VERSION = ' HTTP/1.'
const UNDERSCORE = 0x5f
const LETTER_X = 0x78
const LOWER = 0x20
const DIGIT_0 = 0x30

/** Values of Connection and Upgrade, which are evaluated together after the last line. */
type ConnectionLines = { tokens: string | null; upgrades: number; is_websocket: boolean }

/**
 * Reads the head from `start` to its empty line, whose CRLF begins at `end`. Throws API_HEADERS_TOO_LARGE for more than
 * HEADERS_MAX lines. Throws API_BAD_REQUEST for anything but HTTP/1.1 or 1.0, for a transfer encoding other than chunked,
 * for a length that is not plain digits, and for two framings.
 */
export function readRequestHead(bytes: Buffer, start: number, end: number): RequestHead {
  const text = bytes.toString('latin1', start, end)
  const lines = text.indexOf('\r\n') + 2
  const head = readRequestLine(bytes, start, text, lines - 2)
  const count = readLines(bytes, start + lines, end, HEADERS_MAX)
  if (count === TOO_MANY_LINES) throw new ApiError('API_HEADERS_TOO_LARGE')
  if (count < 0) throw malformed()
  const connection: ConnectionLines = { tokens: null, upgrades: 0, is_websocket: true }
  for (let line = 0; line < count; line++) {
    const special = requestSpecial(bytes, line)
    specials[line] = special
    if (special === undefined || special === 'dropped') continue
    readSpecial(head, connection, special, valueAt(text, start, line), hasTabs(special, bytes, line))
    if (special === 'host') specials[line] = undefined
  }
  if (connection.tokens !== null) {
    const tokens = connection.tokens.toLowerCase()
    head.keeps_alive = continuesAfter(tokens, head.is_version_1_0)
    dropNamed(bytes, count, tokens, requestName)
    head.is_upgrade =
      connection.upgrades === 1 &&
      connection.is_websocket &&
      head.method === 'GET' &&
      !head.is_version_1_0 &&
      head.framing === 'none' &&
      hasToken(tokens, 'upgrade')
  }
  head.lines = forwardedLines(bytes, text, start, count)
  return head
}

/** `has_tab`: see hasTabs. */
function readSpecial(
  head: RequestHead,
  connection: ConnectionLines,
  special: Special,
  value: string,
  has_tab: boolean,
): void {
  switch (special) {
    case 'host':
      head.hosts.push(value)
      break
    case 'content-length':
      if (head.framing !== 'none' || !DIGITS.test(value) || has_tab) throw malformed()
      head.framing = Number(value)
      break
    case 'transfer-encoding':
      if (head.framing !== 'none' || value.toLowerCase() !== 'chunked' || head.is_version_1_0) throw malformed()
      if (has_tab) throw malformed()
      head.framing = 'chunked'
      break
    case 'connection':
      connection.tokens = connection.tokens === null ? value : `${connection.tokens},${value}`
      break
    case 'upgrade':
      connection.upgrades++
      connection.is_websocket = value.toLowerCase() === 'websocket'
      break
    case 'expect':
      if (head.is_version_1_0) break
      if (value.toLowerCase() !== '100-continue') throw malformed()
      head.expects_continue = true
      break
    case 'forwarded-for':
      head.forwarded_for = head.forwarded_for === undefined ? value : `${head.forwarded_for},${value}`
      break
    case 'forwarded-proto':
      head.forwarded_proto = head.forwarded_proto === undefined ? value : ''
  }
}

function readRequestLine(bytes: Buffer, start: number, text: string, line_end: number): RequestHead {
  const method_end = text.indexOf(' ')
  const target_end = line_end - VERSION.length - 1
  if (method_end < 1 || target_end <= method_end + 1 || !text.startsWith(VERSION, target_end)) throw malformed()
  const minor = bytes[start + line_end - 1]! - DIGIT_0
  if (minor !== 0 && minor !== 1) throw malformed()
  const method = text.slice(0, method_end)
  if (!KNOWN_METHODS.has(method) || method === 'CONNECT') throw malformed()
  if (!isTarget(bytes, start + method_end + 1, start + target_end)) {
    throw new ApiError('API_BAD_REQUEST', {}, { message: 'The target of the request is not a path.' })
  }
  return {
    method,
    target: text.slice(method_end + 1, target_end),
    is_version_1_0: minor === 0,
    hosts: [],
    forwarded_for: undefined,
    forwarded_proto: undefined,
    lines: '',
    framing: 'none',
    keeps_alive: minor === 1,
    expects_continue: false,
    is_upgrade: false,
  }
}

function malformed(): ApiError {
  return new ApiError('API_BAD_REQUEST')
}

function requestSpecial(bytes: Buffer, line: number): Special | undefined {
  const start = marks[line * LINE_MARKS]!
  const end = marks[line * LINE_MARKS + 1]!
  const special = requestName(bytes, start, end)
  if (special !== undefined) return special
  const has_underscore = hasUnderscore(bytes, start, end)
  if (!has_underscore && (bytes[start]! | LOWER) !== LETTER_X) return undefined
  // Some backends read underscores in a header's name as dashes.
  const plain = bytes.toString('latin1', start, end).toLowerCase().replaceAll('_', '-')
  if (OWN_PREFIXES.some((prefix) => plain.startsWith(prefix))) return 'dropped'
  const meant = has_underscore ? REQUEST_NAMES.get(plain) : undefined
  return meant === undefined || meant === 'expect' ? undefined : 'dropped'
}

function hasUnderscore(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at] === UNDERSCORE) return true
  return false
}
