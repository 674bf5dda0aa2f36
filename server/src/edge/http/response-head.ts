// The head of a backend's response, as the edge forwards it: the same rules as for a request (head.ts).
import { RAY_KEPT_HEADER, SHARD_HEADER } from '../../wire/headers.ts'
import { RESPONSE_LINES_MAX } from '../limits.ts'
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
import { createNameTable, LINE_MARKS, marks, type NameTable, readLines } from './lines.ts'

export type ResponseHead = {
  status: number
  reason: string
  /** The forwarded lines, a length among them. */
  lines: string
  framing: Framing
  /** The connection may be used again after this response. */
  keeps_alive: boolean
  has_date: boolean
  is_upgrade: boolean
  /** From api and matchmaker: the owner of the ray that they keep. */
  ray_kept: string | null
  /** From a matchmaker that was asked for it: the shard of the request. */
  shard: string | null
}

export const STATUS_SWITCHING = 101
export const STATUS_FINAL_MIN = 200
const STATUS_MIN = 100
const STATUS_NO_CONTENT = 204
const STATUS_NOT_MODIFIED = 304
const STATUS_LINE = /^HTTP\/1\.([01]) ([0-9]{3})(?: ([\t\x20-\x7e\x80-\xff]*))?\r\n/

const responseName = createNameTable<Special>([
  ...FRAME,
  ...HOP_BY_HOP,
  ['date', 'date'],
  [RAY_KEPT_HEADER, 'ray-kept'],
  [SHARD_HEADER, 'shard'],
])

/** Values of Connection and Upgrade, which are evaluated together after the last line. */
type ConnectionLines = { tokens: string | null; has_upgrade: boolean; is_version_1_0: boolean }

/**
 * Reads the head from `start` to its empty line, whose CRLF begins at `end`. Returns null when it is not HTTP/1.1 or 1.0, or
 * has a framing that could be read in two ways. `to_head`: it responds to a HEAD. `allowed`: the only lines that are
 * forwarded besides Date and Content-Length; null: all are.
 */
export function readResponseHead(
  bytes: Buffer,
  start: number,
  end: number,
  options: { to_head: boolean; allowed: NameTable<true> | null },
): ResponseHead | null {
  const text = bytes.toString('latin1', start, end)
  const first_line = STATUS_LINE.exec(text)
  if (first_line === null) return null
  const is_version_1_0 = first_line[1] === '0'
  const status = Number(first_line[2])
  const count = readLines(bytes, start + first_line[0].length, end, RESPONSE_LINES_MAX)
  if (count < 0 || status < STATUS_MIN) return null
  const head: ResponseHead = {
    status,
    reason: first_line[3] ?? '',
    lines: '',
    framing: 'until_end',
    keeps_alive: !is_version_1_0,
    has_date: false,
    is_upgrade: false,
    ray_kept: null,
    shard: null,
  }
  const connection: ConnectionLines = { tokens: null, has_upgrade: false, is_version_1_0 }
  for (let line = 0; line < count; line++) {
    const [name, name_end] = [marks[line * LINE_MARKS]!, marks[line * LINE_MARKS + 1]!]
    const special = responseName(bytes, name, name_end)
    specials[line] = special ?? (isAllowed(options.allowed, bytes, name, name_end) ? undefined : 'dropped')
    if (special === undefined || special === 'dropped') continue
    const value = valueAt(text, start, line)
    if (!readSpecial(head, connection, special, value, hasTabs(special, bytes, line))) return null
    if (special === 'date') specials[line] = undefined
    // After a status without a body, some clients would wait for one of this length.
    else if (special === 'content-length') specials[line] = status === STATUS_NO_CONTENT ? 'dropped' : undefined
  }
  if (connection.tokens !== null) {
    const tokens = connection.tokens.toLowerCase()
    head.keeps_alive = continuesAfter(tokens, is_version_1_0)
    head.is_upgrade = status === STATUS_SWITCHING && connection.has_upgrade && hasToken(tokens, 'upgrade')
    dropNamed(bytes, count, tokens, responseName)
  }
  if (options.to_head || status === STATUS_NO_CONTENT || status === STATUS_NOT_MODIFIED || status < STATUS_FINAL_MIN)
    head.framing = 'none'
  head.lines = forwardedLines(bytes, text, start, count)
  return head
}

/** Returns false when the line makes the framing ambiguous. `has_tab`: see hasTabs. */
function readSpecial(
  head: ResponseHead,
  connection: ConnectionLines,
  special: Special,
  value: string,
  has_tab: boolean,
): boolean {
  switch (special) {
    case 'content-length':
      if (head.framing !== 'until_end' || !DIGITS.test(value) || has_tab) return false
      head.framing = Number(value)
      break
    case 'transfer-encoding':
      if (head.framing !== 'until_end' || value.toLowerCase() !== 'chunked' || connection.is_version_1_0) return false
      if (has_tab) return false
      head.framing = 'chunked'
      break
    case 'connection':
      connection.tokens = connection.tokens === null ? value : `${connection.tokens},${value}`
      break
    case 'upgrade':
      connection.has_upgrade = value.toLowerCase() === 'websocket'
      break
    case 'date':
      head.has_date = true
      break
    case 'ray-kept':
      head.ray_kept = value
      break
    case 'shard':
      head.shard = value
  }
  return true
}

function isAllowed(allowed: NameTable<true> | null, bytes: Buffer, start: number, end: number): boolean {
  return allowed === null || allowed(bytes, start, end) === true
}
