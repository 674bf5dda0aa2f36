// The head of a message as it is passed on: what belongs to one connection only is left out, what would speak for the
// edge is replaced, and there is one framing. It is read once, over the bytes as they came, and written once; what is
// neither is passed on as it stands, whole lines at a time.
import { METHODS } from 'node:http'
import { ApiError } from '@muster/contract'
import { CLAIM_HEADER, PARK_HEADER, PARKED_HEADER } from '../../parking-protocol.ts'
import { EDGE_PROOF_HEADER, RAY_HEADER, RAY_KEPT_HEADER } from '../../tokens/edge-proof.ts'
import { ANSWER_LINES_MAX, HEADERS_MAX } from '../limits.ts'
import {
  createNameTable,
  hasTabAround,
  isPlainLine,
  isTarget,
  LINE_MARKS,
  marks,
  type NameTable,
  readLines,
  TOO_MANY_LINES,
} from './lines.ts'

/** Names and values in turn, of answers that are the edge's own. */
export type RawHeaders = string[]

/** A length; `until_end`: to the end of the connection, which only an answer may say by it. */
export type Framing = 'none' | 'chunked' | 'until_end' | number

export type RequestHead = {
  method: string
  target: string
  is_version_1_0: boolean
  hosts: string[]
  /** What came as X-Forwarded-For, from whomever. */
  forwarded_for: string | undefined
  /** What came as X-Forwarded-Proto; nothing when there are two. */
  forwarded_proto: string | undefined
  /** The lines that are passed on, without framing. */
  lines: string
  framing: Exclude<Framing, 'until_end'>
  /** The client would send another request over this connection. */
  keeps_alive: boolean
  /** The client sends its body when it has been told that somebody wants it. */
  expects_continue: boolean
  /** A WebSocket handshake and nothing else: no h2c, no body on the way. */
  is_upgrade: boolean
}

export type AnswerHead = {
  status: number
  reason: string
  /** The lines that are passed on; a length is among them. */
  lines: string
  framing: Framing
  /** The connection may be used again after this answer. */
  keeps_alive: boolean
  has_date: boolean
  is_upgrade: boolean
  /** Of api and matchmaker: whose ray it is that they keep. */
  ray_kept: string | null
  /** Of api and matchmaker: the number under which they have parked the request, or the offer to do so. */
  parked: string | null
}

type Special =
  | 'dropped'
  | 'host'
  | 'content-length'
  | 'transfer-encoding'
  | 'connection'
  | 'upgrade'
  | 'expect'
  | 'forwarded-for'
  | 'forwarded-proto'
  | 'date'
  | 'ray-kept'
  | 'parked'

const FRAME = [
  ['content-length', 'content-length'],
  ['transfer-encoding', 'transfer-encoding'],
  ['connection', 'connection'],
  ['upgrade', 'upgrade'],
] as const
/** RFC 9110 section 7.6.1, and its relatives. They are about one connection, and end with it. */
const HOP_BY_HOP = [
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'http2-settings',
].map((name) => [name, 'dropped'] as const)
/** Headers by which a proxy speaks of the client and of the request: only the edge says these, whatever came in. */
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
  PARK_HEADER,
  CLAIM_HEADER,
].map((name) => [name, 'dropped'] as const)
const CLIENT_ADDRESS_PREFIX = 'x-forwarded-'

const REQUEST_NAMES = new Map<string, Special>([
  ...FRAME,
  ...HOP_BY_HOP,
  ...CLIENT_ADDRESS,
  ['host', 'host'],
  // The edge itself says "100 Continue", when the backend is there to take the body.
  ['expect', 'expect'],
  ['x-forwarded-for', 'forwarded-for'],
  ['x-forwarded-proto', 'forwarded-proto'],
])
const requestName = createNameTable<Special>(REQUEST_NAMES)
const answerName = createNameTable<Special>([
  ...FRAME,
  ...HOP_BY_HOP,
  ['date', 'date'],
  [RAY_KEPT_HEADER, 'ray-kept'],
  [PARKED_HEADER, 'parked'],
])

const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS)
/** Between the target and the last digit of a request's first line. */
const VERSION = ' HTTP/1.'
const UNDERSCORE = 0x5f
const LETTER_X = 0x78
const LOWER = 0x20
const DIGIT_0 = 0x30
const DIGITS = /^\d{1,15}$/

/** What is to become of each line of the head that is being read; undefined: it is passed on. */
const specials: (Special | undefined)[] = Array.from({ length: ANSWER_LINES_MAX })

/**
 * The head from `start` to its empty line, whose CRLF begins at `end`. Throws API_BAD_REQUEST for what is not HTTP/1.1 or
 * 1.0, a transfer encoding other than chunked, a length that is not plain digits, and two of either; API_HEADERS_TOO_LARGE
 * for more than HEADERS_MAX lines.
 */
export function readRequestHead(bytes: Buffer, start: number, end: number): RequestHead {
  const text = bytes.toString('latin1', start, end)
  const lines = text.indexOf('\r\n') + 2
  const head = readRequestLine(bytes, start, text, lines - 2)
  const count = readLines(bytes, start + lines, end, HEADERS_MAX)
  if (count === TOO_MANY_LINES) throw new ApiError('API_HEADERS_TOO_LARGE')
  if (count < 0) throw malformed()
  let connection: string | null = null
  let upgrades = 0
  let is_websocket = true
  for (let line = 0; line < count; line++) {
    const special = requestSpecial(bytes, line)
    specials[line] = special
    if (special === undefined || special === 'dropped') continue
    const value = valueAt(text, start, line)
    switch (special) {
      case 'host':
        head.hosts.push(value)
        specials[line] = undefined
        break
      case 'content-length':
        if (head.framing !== 'none' || !DIGITS.test(value) || hasTabAround(bytes, line)) throw malformed()
        head.framing = Number(value)
        break
      case 'transfer-encoding':
        if (head.framing !== 'none' || value.toLowerCase() !== 'chunked' || head.is_version_1_0) throw malformed()
        if (hasTabAround(bytes, line)) throw malformed()
        head.framing = 'chunked'
        break
      case 'connection':
        connection = connection === null ? value : `${connection},${value}`
        break
      case 'upgrade':
        upgrades++
        is_websocket = value.toLowerCase() === 'websocket'
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
  if (connection !== null) {
    const tokens = connection.toLowerCase()
    head.keeps_alive = goesOn(tokens, head.is_version_1_0)
    dropNamed(bytes, count, tokens, requestName)
    head.is_upgrade =
      upgrades === 1 &&
      is_websocket &&
      head.method === 'GET' &&
      !head.is_version_1_0 &&
      head.framing === 'none' &&
      hasToken(tokens, 'upgrade')
  }
  head.lines = linesPassedOn(bytes, text, start, count)
  return head
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

/**
 * The head of a backend's answer, in the same place. Null when it is not HTTP/1.1 or 1.0, or has a framing that could be
 * read in two ways. `allowed`: the only lines that are passed on, beside Date and Content-Length; null: there is no such list.
 */
export function readAnswerHead(
  bytes: Buffer,
  start: number,
  end: number,
  options: { to_head: boolean; allowed: NameTable<true> | null },
): AnswerHead | null {
  const text = bytes.toString('latin1', start, end)
  const line = STATUS_LINE.exec(text)
  if (line === null) return null
  const is_version_1_0 = line[1] === '0'
  const status = Number(line[2])
  const count = readLines(bytes, start + line[0].length, end, ANSWER_LINES_MAX)
  if (count < 0 || status < STATUS_MIN) return null
  const head: AnswerHead = {
    status,
    reason: line[3] ?? '',
    lines: '',
    framing: 'until_end',
    keeps_alive: !is_version_1_0,
    has_date: false,
    is_upgrade: false,
    ray_kept: null,
    parked: null,
  }
  let connection: string | null = null
  let has_upgrade = false
  for (let index = 0; index < count; index++) {
    const [name, name_end] = [marks[index * LINE_MARKS]!, marks[index * LINE_MARKS + 1]!]
    const special = answerName(bytes, name, name_end)
    specials[index] = special ?? (isAllowed(options.allowed, bytes, name, name_end) ? undefined : 'dropped')
    if (special === undefined || special === 'dropped') continue
    const value = valueAt(text, start, index)
    switch (special) {
      case 'content-length':
        if (head.framing !== 'until_end' || !DIGITS.test(value) || hasTabAround(bytes, index)) return null
        head.framing = Number(value)
        // Where there is no body, some would wait for one.
        specials[index] = status === STATUS_NO_CONTENT ? 'dropped' : undefined
        break
      case 'transfer-encoding':
        if (head.framing !== 'until_end' || value.toLowerCase() !== 'chunked' || is_version_1_0) return null
        if (hasTabAround(bytes, index)) return null
        head.framing = 'chunked'
        break
      case 'connection':
        connection = connection === null ? value : `${connection},${value}`
        break
      case 'upgrade':
        has_upgrade = value.toLowerCase() === 'websocket'
        break
      case 'date':
        head.has_date = true
        specials[index] = undefined
        break
      case 'ray-kept':
        head.ray_kept = value
        break
      case 'parked':
        head.parked = value
    }
  }
  if (connection !== null) {
    const tokens = connection.toLowerCase()
    head.keeps_alive = goesOn(tokens, is_version_1_0)
    head.is_upgrade = status === STATUS_SWITCHING && has_upgrade && hasToken(tokens, 'upgrade')
    dropNamed(bytes, count, tokens, answerName)
  }
  if (options.to_head || status === STATUS_NO_CONTENT || status === STATUS_NOT_MODIFIED || status < STATUS_FINAL_MIN)
    head.framing = 'none'
  head.lines = linesPassedOn(bytes, text, start, count)
  return head
}

const STATUS_LINE = /^HTTP\/1\.([01]) ([0-9]{3})(?: ([\t\x20-\x7e\x80-\xff]*))?\r\n/
const STATUS_MIN = 100
export const STATUS_SWITCHING = 101
const STATUS_NO_CONTENT = 204
const STATUS_NOT_MODIFIED = 304
export const STATUS_FINAL_MIN = 200

function isAllowed(allowed: NameTable<true> | null, bytes: Buffer, start: number, end: number): boolean {
  return allowed === null || allowed(bytes, start, end) === true
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
  // Some backends read a header's underscores as dashes.
  const plain = bytes.toString('latin1', start, end).toLowerCase().replaceAll('_', '-')
  if (plain.startsWith(CLIENT_ADDRESS_PREFIX)) return 'dropped'
  const meant = has_underscore ? REQUEST_NAMES.get(plain) : undefined
  return meant === undefined || meant === 'expect' ? undefined : 'dropped'
}

function hasUnderscore(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at] === UNDERSCORE) return true
  return false
}

/** `text` is the head, which begins at `start` of the bytes that were marked. */
function valueAt(text: string, start: number, line: number): string {
  return text.slice(marks[line * LINE_MARKS + 2]! - start, marks[line * LINE_MARKS + 3]! - start)
}

/** Whether the connection continues after this message (RFC 9112, 9.3): `close` counts more than `keep-alive`. */
function goesOn(tokens: string, is_version_1_0: boolean): boolean {
  return !hasToken(tokens, 'close') && (!is_version_1_0 || hasToken(tokens, 'keep-alive'))
}

/** Whether a list in lower case has the token. */
function hasToken(list: string, token: string): boolean {
  if (list === token) return true
  return list.includes(token) && list.split(',').some((item) => item.trim() === token)
}

/** The usual tokens name nothing that is not left out anyway. */
const PLAIN_TOKENS: ReadonlySet<string> = new Set(['keep-alive', 'close', 'upgrade', ''])

/** Further headers that Connection declares to be of this connection only. What has a meaning of its own keeps it. */
function dropNamed(bytes: Buffer, count: number, tokens: string, known: NameTable<Special>): void {
  if (PLAIN_TOKENS.has(tokens)) return
  const named = new Set(tokens.split(',').map((token) => token.trim()))
  for (let line = 0; line < count; line++) {
    const [start, end] = [marks[line * LINE_MARKS]!, marks[line * LINE_MARKS + 1]!]
    if (specials[line] !== undefined || known(bytes, start, end) !== undefined) continue
    if (named.has(bytes.toString('latin1', start, end).toLowerCase())) specials[line] = 'dropped'
  }
}

/** The lines that nothing is to become of, as one text. */
function linesPassedOn(bytes: Buffer, text: string, start: number, count: number): string {
  let passed = ''
  /** Lines from here on are passed on as they stand, in one piece. */
  let first = 0
  for (let line = 0; line < count; line++) {
    const is_passed = specials[line] === undefined
    if (is_passed && isPlainLine(bytes, line)) continue
    passed += piece(text, start, first, line)
    if (is_passed) passed += `${nameAt(text, start, line)}: ${valueAt(text, start, line)}\r\n`
    first = line + 1
  }
  return passed + piece(text, start, first, count)
}

function piece(text: string, start: number, first: number, end: number): string {
  if (first === end) return ''
  return text.slice(marks[first * LINE_MARKS]! - start, marks[(end - 1) * LINE_MARKS + 3]! + 2 - start)
}

function nameAt(text: string, start: number, line: number): string {
  return text.slice(marks[line * LINE_MARKS]! - start, marks[line * LINE_MARKS + 1]! - start)
}

/** The value of a header among the lines that are passed on, or its values as a list; undefined: there is none. */
export function headerOf(head: Pick<RequestHead, 'lines'>, name: string): string | undefined {
  let found: string | undefined
  for (let at = 0; at < head.lines.length; ) {
    const line_end = head.lines.indexOf('\r\n', at)
    if (head.lines.charAt(at + name.length) === ':' && head.lines.slice(at, at + name.length).toLowerCase() === name) {
      const value = head.lines.slice(at + name.length + 2, line_end)
      found = found === undefined ? value : `${found}, ${value}`
    }
    at = line_end + 2
  }
  return found
}

/** The lines without those that `isDropped` says, by their name in lower case and their value. */
export function linesWithout(lines: string, isDropped: (name: string, value: string) => boolean): string {
  let left = ''
  for (let at = 0; at < lines.length; ) {
    const colon = lines.indexOf(':', at)
    const line_end = lines.indexOf('\r\n', at)
    const name = lines.slice(at, colon).toLowerCase()
    if (!isDropped(name, lines.slice(colon + 2, line_end))) left += lines.slice(at, line_end + 2)
    at = line_end + 2
  }
  return left
}

/** Headers of our own as lines. What no header can say is a fault of ours, and nothing of it leaves. */
export function linesOf(headers: readonly string[]): string {
  let lines = ''
  for (let index = 0; index < headers.length; index += 2) {
    if (!SAYABLE.test(headers[index + 1]!)) throw new Error(`The header ${headers[index]} cannot be said.`)
    lines += `${headers[index]}: ${headers[index + 1]}\r\n`
  }
  return lines
}

const SAYABLE = /^[\t\x20-\x7e\x80-\xff]*$/
