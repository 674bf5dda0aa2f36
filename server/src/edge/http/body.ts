// Forwards the body of a message: reads it by its framing and frames it anew. Chunks are read strictly (RFC 9112, 7.1): sizes
// without signs or spaces, each followed by CRLF; extensions and trailers are checked and dropped. A part of a chunk is
// forwarded as soon as it arrives, and small chunks of one read become one.
import { freeBuffer } from '../../node/free-buffer.ts'
import {
  CHUNK_EXTENSIONS_BYTES_MAX,
  CHUNK_LINE_BYTES_MAX,
  HEADER_BYTES_MAX,
  HEADERS_MAX,
  SMALL_BYTES_MAX,
} from '../limits.ts'
import type { ClientSocket } from './client-socket.ts'
import type { Framing } from './forwarded-lines.ts'
import { createNameTable, findHeadEnd, LINE_MARKS, marks, mayBecomeHead, readLines } from './lines.ts'

export type Body = {
  framing: Framing
  is_done: boolean
  /** The bytes contradict the framing: no more of them may be forwarded. */
  is_broken: boolean
  /** A part of the body has been written. */
  has_begun: boolean
  /** Bytes that have not arrived yet, of the body or of the current chunk. */
  left: number
  /** The part of a chunked body that comes next. */
  part: 'size' | 'data' | 'data end' | 'trailers'
  /** A line that is not complete yet. */
  line: Buffer | null
  extensions_bytes: number
}

export function createBody(framing: Framing): Body {
  const left = framing === 'until_end' ? Number.POSITIVE_INFINITY : typeof framing === 'number' ? framing : 0
  const is_done = framing === 'none' || framing === 0
  return { framing, is_done, is_broken: false, has_begun: false, left, part: 'size', line: null, extensions_bytes: 0 }
}

export type ForwardedBytes = {
  bytes: Buffer
  start: number
  end: number
  /** Nothing else uses their memory, so they can be kept without a copy. */
  is_own: boolean
}

/** Where the bytes of a body are written. */
export type ByteSink = Pick<ClientSocket, 'write' | 'cork' | 'uncork'>

/**
 * Writes `before` and the bytes of the body in `from` to `to`, in chunks if `to_chunks`. Returns where the body's bytes end;
 * `body` then says whether it is done or broken. Nothing is written of bytes that are broken from their start.
 */
export function forwardBody(
  body: Body,
  from: ForwardedBytes,
  to: ByteSink,
  before: string,
  to_chunks: boolean,
): number {
  if (body.framing === 'chunked') return forwardChunks(body, from, to, before, to_chunks)
  const { start } = from
  const end = Math.min(from.end, start + body.left)
  body.left -= end - start
  body.is_done ||= body.left === 0
  const length = end - start
  body.has_begun = true
  if (to_chunks && length > 0) write(to, `${before}${length.toString(16)}\r\n`, from, start, end, '\r\n')
  else write(to, before, from, start, end, '')
  return end
}

/** Returns what ends a forwarded body that ended with its connection. */
export function lastChunk(to_chunks: boolean): string {
  return to_chunks ? LAST_CHUNK : ''
}

const LAST_CHUNK = '0\r\n\r\n'

/** Drops the bytes of a body. Returns where they end. */
export function skipBody(body: Body, bytes: Buffer, start: number, end: number): number {
  if (body.framing !== 'chunked') {
    const stop = Math.min(end, start + body.left)
    body.left -= stop - start
    body.is_done ||= body.left === 0
    return stop
  }
  let at = start
  while (at < end && !body.is_done && !body.is_broken) {
    at = stepChunks(body, bytes, at, end)
    if (body.part === 'data') at = takeData(body, at, end)
  }
  return at
}

function forwardChunks(body: Body, from: ForwardedBytes, to: ByteSink, before: string, to_chunks: boolean): number {
  const { bytes, end } = from
  let at = from.start
  /** Data that was read and is not written yet. */
  let small = ''
  let head = before
  while (at < end && !body.is_done && !body.is_broken) {
    at = stepChunks(body, bytes, at, end)
    if (body.part !== 'data') continue
    const start = at
    at = takeData(body, at, end)
    if (at - start + small.length <= SMALL_BYTES_MAX) {
      small += bytes.toString('latin1', start, at)
    } else {
      const size = to_chunks ? `${(at - start).toString(16)}\r\n` : ''
      body.has_begun = true
      write(to, `${head}${framed(small, to_chunks)}${size}`, from, start, at, to_chunks ? '\r\n' : '')
      small = ''
      head = ''
    }
  }
  if (body.is_broken) return at
  const text = `${head}${framed(small, to_chunks)}${body.is_done && to_chunks ? LAST_CHUNK : ''}`
  if (text !== '') {
    body.has_begun = true
    to.write(text, 'latin1')
  }
  return at
}

function framed(text: string, to_chunks: boolean): string {
  return to_chunks && text !== '' ? `${text.length.toString(16)}\r\n${text}\r\n` : text
}

function takeData(body: Body, start: number, end: number): number {
  const stop = Math.min(end, start + body.left)
  body.left -= stop - start
  if (body.left === 0) body.part = 'data end'
  return stop
}

/** Reads what stands between two pieces of data. Returns where the next data begins. */
function stepChunks(body: Body, bytes: Buffer, start: number, end: number): number {
  let at = start
  while (at < end && body.part !== 'data' && !body.is_done && !body.is_broken) {
    if (body.part === 'trailers') return readTrailers(body, bytes, at, end)
    const line_end = bytes.indexOf(LF, at)
    const stop = line_end === -1 || line_end >= end ? end : line_end + 1
    const line = joinLine(body, bytes, at, stop)
    at = stop
    if (line.length > CHUNK_LINE_BYTES_MAX) body.is_broken = true
    else if (line.at(-1) !== LF) keepLine(body, line)
    else if (body.part === 'size') readSize(body, line.toString('latin1'))
    else if (line.length === 2 && line[0] === CR) body.part = 'size'
    else body.is_broken = true
  }
  return at
}

const CR = 0x0d
const LF = 0x0a
/** A size of at most 2^48 bytes, and extensions, which are ignored. */
const SIZE_LINE = /^0{0,16}([0-9A-Fa-f]{1,12})(;[\t\x20-\x7e\x80-\xff]*)?\r\n$/

function readSize(body: Body, line: string): void {
  const [, size = '', extensions = ''] = SIZE_LINE.exec(line) ?? []
  body.extensions_bytes += extensions.length
  if (size === '' || body.extensions_bytes > CHUNK_EXTENSIONS_BYTES_MAX) {
    body.is_broken = true
    return
  }
  body.left = Number.parseInt(size, 16)
  body.part = body.left === 0 ? 'trailers' : 'data'
}

/** Headers that are refused as trailers: some parsers would apply them to the message. */
const frameName = createNameTable<true>([
  ['content-length', true],
  ['transfer-encoding', true],
  ['host', true],
])

function readTrailers(body: Body, bytes: Buffer, start: number, end: number): number {
  const before = body.line?.length ?? 0
  const text = joinLine(body, bytes, start, end)
  if (text[0] === CR && text.length === 1) {
    keepLine(body, text)
    return end
  }
  if (text[0] === CR && text[1] === LF) {
    body.is_done = true
    return start + 2 - before
  }
  const last = findHeadEnd(text, 0, before, text.length)
  if (last === -1) {
    if (mayBecomeHead(text, 0, text.length)) keepLine(body, text)
    else body.is_broken = true
    return end
  }
  const count = last > HEADER_BYTES_MAX ? -1 : readLines(text, 0, last, HEADERS_MAX)
  body.is_broken = count < 0
  for (let line = 0; line < count; line++) {
    const [name, name_end] = [marks[line * LINE_MARKS]!, marks[line * LINE_MARKS + 1]!]
    if (frameName(text, name, name_end) !== undefined) body.is_broken = true
  }
  body.is_done = !body.is_broken
  return start + last + 2 - before
}

/** Returns the kept beginning of a line together with the bytes that arrived now. */
function joinLine(body: Body, bytes: Buffer, start: number, end: number): Buffer {
  const now = bytes.subarray(start, end)
  const before = body.line
  body.line = null
  return before === null ? now : Buffer.concat([before, now])
}

/** Keeps the beginning of a line. It is copied, because the buffer is used again by the next read. */
function keepLine(body: Body, line: Buffer): void {
  body.line = Buffer.from(line)
}

function write(to: ByteSink, before: string, from: ForwardedBytes, start: number, end: number, after: string): void {
  const length = end - start
  if (length <= SMALL_BYTES_MAX) {
    const text = length === 0 ? before : `${before}${from.bytes.toString('latin1', start, end)}${after}`
    if (text !== '') to.write(text, 'latin1')
    return
  }
  const is_whole = length === from.bytes.length
  const piece = from.is_own ? (is_whole ? from.bytes : from.bytes.subarray(start, end)) : copyOf(from.bytes, start, end)
  to.cork()
  if (before !== '') to.write(before, 'latin1')
  to.write(piece, (error) => {
    // The system may still use the memory of a piece that was not written.
    if (error == null) freeBuffer(piece)
  })
  if (after !== '') to.write(after, 'latin1')
  to.uncork()
}

/** Copies into memory of its own, so that freeBuffer can free it. */
function copyOf(bytes: Buffer, start: number, end: number): Buffer {
  const copy = Buffer.allocUnsafeSlow(end - start)
  bytes.copy(copy, 0, start, end)
  return copy
}
