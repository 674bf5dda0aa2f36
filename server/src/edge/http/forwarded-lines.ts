// The lines of a head that are forwarded, for requests and responses. A head is read once, over the bytes as they arrived:
// each line is forwarded unchanged, dropped, or given a meaning by its reader (head.ts, response-head.ts).
import { RESPONSE_LINES_MAX } from '../limits.ts'
import { hasTabAround, isPlainLine, LINE_MARKS, marks, type NameTable } from './lines.ts'

/** A length in bytes. `until_end`: to the end of the connection, which only a response may have. */
export type Framing = 'none' | 'chunked' | 'until_end' | number

/** A line that is dropped, or has a meaning for the edge. */
export type Special =
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
  | 'shard'

/** Headers of framing and of the connection, in requests and responses. */
export const FRAME = [
  ['content-length', 'content-length'],
  ['transfer-encoding', 'transfer-encoding'],
  ['connection', 'connection'],
  ['upgrade', 'upgrade'],
] as const

/** Headers about one connection only (RFC 9110, 7.6.1), and similar ones. They are never forwarded. */
export const HOP_BY_HOP = [
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'http2-settings',
].map((name) => [name, 'dropped'] as const)

/** A Content-Length that is plain digits. */
export const DIGITS = /^\d{1,15}$/

/** What becomes of each line of the head that is being read; undefined: it is forwarded. All heads share it. */
export const specials: (Special | undefined)[] = Array.from({ length: RESPONSE_LINES_MAX })

/** Returns the value of a line. `text` is the head, which begins at `start` of the marked bytes. */
export function valueAt(text: string, start: number, line: number): string {
  return text.slice(marks[line * LINE_MARKS + 2]! - start, marks[line * LINE_MARKS + 3]! - start)
}

function nameAt(text: string, start: number, line: number): string {
  return text.slice(marks[line * LINE_MARKS]! - start, marks[line * LINE_MARKS + 1]! - start)
}

/** Whether a line that says the framing has a tab around its value. */
export function hasTabs(special: Special, bytes: Buffer, line: number): boolean {
  return (special === 'content-length' || special === 'transfer-encoding') && hasTabAround(bytes, line)
}

/** Whether the connection continues after this message (RFC 9112, 9.3): `close` wins over `keep-alive`. */
export function continuesAfter(tokens: string, is_version_1_0: boolean): boolean {
  return !hasToken(tokens, 'close') && (!is_version_1_0 || hasToken(tokens, 'keep-alive'))
}

/** Whether a list in lower case has the token. */
export function hasToken(list: string, token: string): boolean {
  if (list === token) return true
  return list.includes(token) && list.split(',').some((item) => item.trim() === token)
}

/** The usual tokens name no header that is not dropped anyway. */
const PLAIN_TOKENS: ReadonlySet<string> = new Set(['keep-alive', 'close', 'upgrade', ''])

/** Drops the further headers that Connection names. A header that has a meaning of its own keeps it. */
export function dropNamed(bytes: Buffer, count: number, tokens: string, known: NameTable<Special>): void {
  if (PLAIN_TOKENS.has(tokens)) return
  const named = new Set(tokens.split(',').map((token) => token.trim()))
  for (let line = 0; line < count; line++) {
    const [start, end] = [marks[line * LINE_MARKS]!, marks[line * LINE_MARKS + 1]!]
    if (specials[line] !== undefined || known(bytes, start, end) !== undefined) continue
    if (named.has(bytes.toString('latin1', start, end).toLowerCase())) specials[line] = 'dropped'
  }
}

/** Returns the forwarded lines as one text. */
export function forwardedLines(bytes: Buffer, text: string, start: number, count: number): string {
  let forwarded = ''
  /** Lines from here on are forwarded unchanged, in one piece. */
  let first = 0
  for (let line = 0; line < count; line++) {
    const is_forwarded = specials[line] === undefined
    if (is_forwarded && isPlainLine(bytes, line)) continue
    forwarded += piece(text, start, first, line)
    if (is_forwarded) forwarded += `${nameAt(text, start, line)}: ${valueAt(text, start, line)}\r\n`
    first = line + 1
  }
  return forwarded + piece(text, start, first, count)
}

function piece(text: string, start: number, first: number, end: number): string {
  if (first === end) return ''
  return text.slice(marks[first * LINE_MARKS]! - start, marks[(end - 1) * LINE_MARKS + 3]! + 2 - start)
}
