// Finds and checks the lines of a head, byte by byte, for requests and responses. The reading is strict (RFC 9112, 5): a line
// ends in CRLF, a name is a token directly followed by its colon, and a value has no control characters and stays on one
// line. A head that two parsers could read differently is refused.
import { HEADER_BYTES_MAX, RESPONSE_LINES_MAX } from '../limits.ts'

const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const COLON = 0x3a
const LETTER_A = 0x61
const LOWER = 0x20

const TOKEN = 1
const VALUE = 2
const TARGET = 4
/** Which parts of a line each byte may belong to. */
const KINDS = new Uint8Array(256)
for (let byte = 0; byte < KINDS.length; byte++) {
  const character = String.fromCharCode(byte)
  const is_token = /[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(character)
  // Visible ASCII, no fragment.
  const is_target = /[\x21\x22\x24-\x7e]/.test(character)
  const is_value = byte === TAB || (byte >= SPACE && byte !== 0x7f)
  KINDS[byte] = (is_token ? TOKEN : 0) | (is_value ? VALUE : 0) | (is_target ? TARGET : 0)
}

/** Positions stored for each line: start and end of its name, start and end of its value without white space around it. */
export const LINE_MARKS = 4
/** Filled by readLines, and read right after it before anything else runs. All heads share it, to save allocations. */
export const marks = new Int32Array(LINE_MARKS * RESPONSE_LINES_MAX)

const MALFORMED = -1
export const TOO_MANY_LINES = -2

/**
 * Reads the lines from `start` to the empty one, whose CRLF begins at `end`. Returns their number, MALFORMED, or
 * TOO_MANY_LINES for more than `lines_max`.
 */
export function readLines(bytes: Uint8Array, start: number, end: number, lines_max: number): number {
  let count = 0
  let at = start
  while (at < end) {
    if (count === lines_max) return TOO_MANY_LINES
    const name = at
    while (KINDS[bytes[at]!]! & TOKEN) at++
    if (at === name || bytes[at] !== COLON) return MALFORMED
    const mark = count * LINE_MARKS
    marks[mark] = name
    marks[mark + 1] = at
    at++
    while (bytes[at] === SPACE || bytes[at] === TAB) at++
    let value_end = at
    marks[mark + 2] = at
    while (KINDS[bytes[at]!]! & VALUE) at++
    value_end = at
    if (bytes[at] !== CR || bytes[at + 1] !== LF) return MALFORMED
    while (value_end > marks[mark + 2]! && (bytes[value_end - 1] === SPACE || bytes[value_end - 1] === TAB)) value_end--
    marks[mark + 3] = value_end
    at += 2
    count++
  }
  return at === end ? count : MALFORMED
}

/** Whether the line has the usual form, one space and then the value. Such a line is forwarded unchanged. */
export function isPlainLine(bytes: Uint8Array, line: number): boolean {
  const mark = line * LINE_MARKS
  const value = marks[mark + 2]!
  return value === marks[mark + 1]! + 2 && bytes[value - 1] === SPACE && bytes[marks[mark + 3]!] === CR
}

/** Whether the white space around the value has a tab. Parsers disagree whether a tab belongs to the value. */
export function hasTabAround(bytes: Uint8Array, line: number): boolean {
  const mark = line * LINE_MARKS
  for (let at = marks[mark + 1]! + 1; at < marks[mark + 2]!; at++) if (bytes[at] === TAB) return true
  for (let at = marks[mark + 3]!; bytes[at] !== CR; at++) if (bytes[at] === TAB) return true
  return false
}

export function isTarget(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (!(KINDS[bytes[at]!]! & TARGET)) return false
  return end > start
}

/** Returns where the empty line's CRLF begins; -1: not before `end`. `from`: the first byte that was not scanned before. */
export function findHeadEnd(bytes: Uint8Array, start: number, from: number, end: number): number {
  // Tests the last of four bytes: most values exclude the next three positions too.
  let at = Math.max(start, from - 3) + 3
  while (at < end) {
    const byte = bytes[at]!
    if (byte === LF && bytes[at - 1] === CR && bytes[at - 2] === LF && bytes[at - 3] === CR) return at - 1
    at += byte === CR ? 1 : byte === LF ? 2 : 4
  }
  return -1
}

/** Whether these bytes can be the beginning of a head. */
export function mayBecomeHead(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start > HEADER_BYTES_MAX) return false
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!
    if (
      byte === CR ? at + 1 < end && bytes[at + 1] !== LF : byte === LF ? bytes[at - 1] !== CR : !(KINDS[byte]! & VALUE)
    )
      return false
  }
  return true
}

/** Returns the entry of a header's name, in whichever case it is written. */
export type NameTable<T> = (bytes: Buffer, start: number, end: number) => T | undefined

/** `entries`: names in lower case. Length and first letter exclude most other headers, without making a string. */
export function createNameTable<T>(entries: Iterable<readonly [string, T]>): NameTable<T> {
  /** Characters of the longest header name in a table. */
  const NAME_LENGTH_MAX = 64
  const table = new Map(entries)
  const letters = new Int32Array(NAME_LENGTH_MAX + 1)
  for (const name of table.keys()) letters[name.length]! |= 1 << (name.charCodeAt(0) - LETTER_A)
  return (bytes, start, end) => {
    const first = (bytes[start]! | LOWER) - LETTER_A
    if (first < 0 || first > 25 || !(letters[end - start]! & (1 << first))) return undefined
    return table.get(bytes.toString('latin1', start, end).toLowerCase())
  }
}
