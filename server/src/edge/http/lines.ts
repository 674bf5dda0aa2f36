// The lines of a head, found and checked byte by byte, for requests and for answers alike. Nothing here is lenient: a line
// ends in CRLF, a name is a token with its colon right behind it, a value has no control characters and goes over one line
// (RFC 9112, 5). What two parsers could read differently does not get further.
import { ANSWER_LINES_MAX, HEADER_BYTES_MAX } from '../limits.ts'

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
/** What bytes may stand for. */
const KINDS = new Uint8Array(256)
for (let byte = 0; byte < KINDS.length; byte++) {
  const character = String.fromCharCode(byte)
  const is_token = /[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(character)
  // Visible ASCII, no fragment.
  const is_target = /[\x21\x22\x24-\x7e]/.test(character)
  const is_value = byte === TAB || (byte >= SPACE && byte !== 0x7f)
  KINDS[byte] = (is_token ? TOKEN : 0) | (is_value ? VALUE : 0) | (is_target ? TARGET : 0)
}

/** Where the parts of a line are: begin and end of its name and of its value, without the white space around it. */
export const LINE_MARKS = 4
/** Filled by readLines and read right after it, before anything else runs: heads are many, and this is the same for all. */
export const marks = new Int32Array(LINE_MARKS * ANSWER_LINES_MAX)

const MALFORMED = -1
export const TOO_MANY_LINES = -2

/**
 * The lines from `start` to the empty one, whose CRLF begins at `end`. Answers how many there are; MALFORMED, or
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

/** Whether the line is written as everybody writes it: one space, then the value. Then it may be passed on as it stands. */
export function isPlainLine(bytes: Uint8Array, line: number): boolean {
  const mark = line * LINE_MARKS
  const value = marks[mark + 2]!
  return value === marks[mark + 1]! + 2 && bytes[value - 1] === SPACE && bytes[marks[mark + 3]!] === CR
}

/** Whether white space around the value has a tab. Parsers disagree whether it belongs to the value. */
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

/** Where the empty line's CRLF begins; -1 when it is not there up to `end`. `from` is where there is something new. */
export function findHeadEnd(bytes: Uint8Array, start: number, from: number, end: number): number {
  // At the last byte of the four: most others tell that it is none of the next three either.
  let at = Math.max(start, from - 3) + 3
  while (at < end) {
    const byte = bytes[at]!
    if (byte === LF && bytes[at - 1] === CR && bytes[at - 2] === LF && bytes[at - 3] === CR) return at - 1
    at += byte === CR ? 1 : byte === LF ? 2 : 4
  }
  return -1
}

/** Whether bytes of which the rest is still to come can become a head. */
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

/** What belongs to a header's name, however it is written. */
export type NameTable<T> = (bytes: Buffer, start: number, end: number) => T | undefined

/** Names in lower case. Most headers are told from all of them by length and first letter, without making a string. */
export function createNameTable<T>(entries: Iterable<readonly [string, T]>): NameTable<T> {
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
