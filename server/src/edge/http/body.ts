// The body of a message on its way through: counted or taken apart as its framing says, and framed anew. Chunks are read
// strictly (RFC 9112, 7.1): sizes without signs or spaces, CRLF after each, extensions and trailers checked and left out.
// A chunk is passed on as soon as a part of it is there, and small ones of one read become one.
import type { Socket } from 'node:net'
import { freeBuffer } from '../../free-buffer.ts'
import {
  CHUNK_EXTENSIONS_BYTES_MAX,
  CHUNK_LINE_BYTES_MAX,
  HEADER_BYTES_MAX,
  HEADERS_MAX,
  SMALL_BYTES_MAX,
} from '../limits.ts'
import type { Framing } from './head.ts'
import { createNameTable, findHeadEnd, LINE_MARKS, marks, mayBecomeHead, readLines } from './lines.ts'

export type Body = {
  framing: Framing
  is_done: boolean
  /** What came is not what the framing says: nothing more of it may be passed on. */
  is_broken: boolean
  /** Something of it has been written. */
  has_begun: boolean
  /** Bytes that are still to come, of the body or of the chunk. */
  left: number
  /** Of a chunked body: what comes next. */
  place: 'size' | 'data' | 'data end' | 'trailers'
  /** A line that has not come to its end. */
  line: Buffer | null
  extensions_bytes: number
}

export function createBody(framing: Framing): Body {
  const left = framing === 'until_end' ? Number.POSITIVE_INFINITY : typeof framing === 'number' ? framing : 0
  const is_done = framing === 'none' || framing === 0
  return { framing, is_done, is_broken: false, has_begun: false, left, place: 'size', line: null, extensions_bytes: 0 }
}

export type Carried = {
  /** Bytes to pass on. */
  bytes: Buffer
  start: number
  end: number
  /** Nobody else uses their memory: it need not be copied when they are held. */
  is_own: boolean
}

/**
 * Passes on to `to` what is there of the body, behind `before`, framed by chunks if so wished. Answers where it ends; then
 * `body` says whether it is done or broken. What is found to be broken at
 * once is not begun.
 */
export function carryBody(body: Body, from: Carried, to: Socket, before: string, to_chunks: boolean): number {
  if (body.framing === 'chunked') return carryChunks(body, from, to, before, to_chunks)
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

/** What is to be said when the connection's end has ended the body. */
export function lastChunk(to_chunks: boolean): string {
  return to_chunks ? LAST_CHUNK : ''
}

const LAST_CHUNK = '0\r\n\r\n'

/** Passes over what is there of a body that nobody wants. */
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
    if (body.place === 'data') at = takeData(body, at, end)
  }
  return at
}

function carryChunks(body: Body, from: Carried, to: Socket, before: string, to_chunks: boolean): number {
  const { bytes, end } = from
  let at = from.start
  /** What was found and is not written yet. */
  let small = ''
  let head = before
  while (at < end && !body.is_done && !body.is_broken) {
    at = stepChunks(body, bytes, at, end)
    if (body.place !== 'data') continue
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
  if (body.left === 0) body.place = 'data end'
  return stop
}

/** Reads what is between data, up to the next data. */
function stepChunks(body: Body, bytes: Buffer, start: number, end: number): number {
  let at = start
  while (at < end && body.place !== 'data' && !body.is_done && !body.is_broken) {
    if (body.place === 'trailers') return readTrailers(body, bytes, at, end)
    const line_end = bytes.indexOf(LF, at)
    const stop = line_end === -1 || line_end >= end ? end : line_end + 1
    const line = held(body, bytes, at, stop)
    at = stop
    if (line.length > CHUNK_LINE_BYTES_MAX) body.is_broken = true
    else if (line.at(-1) !== LF) hold(body, line)
    else if (body.place === 'size') readSize(body, line.toString('latin1'))
    else if (line.length === 2 && line[0] === CR) body.place = 'size'
    else body.is_broken = true
  }
  return at
}

const CR = 0x0d
const LF = 0x0a
/** A size of at most 2^48 bytes, and extensions, which mean nothing to anybody here. */
const SIZE_LINE = /^0{0,16}([0-9A-Fa-f]{1,12})(;[\t\x20-\x7e\x80-\xff]*)?\r\n$/

function readSize(body: Body, line: string): void {
  const [, size = '', extensions = ''] = SIZE_LINE.exec(line) ?? []
  body.extensions_bytes += extensions.length
  if (size === '' || body.extensions_bytes > CHUNK_EXTENSIONS_BYTES_MAX) {
    body.is_broken = true
    return
  }
  body.left = Number.parseInt(size, 16)
  body.place = body.left === 0 ? 'trailers' : 'data'
}

/** Fields of a head that must not come behind the body, where some would still believe them. */
const frameName = createNameTable<true>([
  ['content-length', true],
  ['transfer-encoding', true],
  ['host', true],
])

function readTrailers(body: Body, bytes: Buffer, start: number, end: number): number {
  const before = body.line?.length ?? 0
  const text = held(body, bytes, start, end)
  if (text[0] === CR && text.length === 1) {
    hold(body, text)
    return end
  }
  if (text[0] === CR && text[1] === LF) {
    body.is_done = true
    return start + 2 - before
  }
  const last = findHeadEnd(text, 0, before, text.length)
  if (last === -1) {
    if (mayBecomeHead(text, 0, text.length)) hold(body, text)
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

/** What has been held of a line, and what has come of it now. */
function held(body: Body, bytes: Buffer, start: number, end: number): Buffer {
  const now = bytes.subarray(start, end)
  const before = body.line
  body.line = null
  return before === null ? now : Buffer.concat([before, now])
}

/** The bytes may be somebody else's next moment. */
function hold(body: Body, line: Buffer): void {
  body.line = Buffer.from(line)
}

function write(to: Socket, before: string, from: Carried, start: number, end: number, after: string): void {
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
    // Of a piece that was not written, the system may still hold the memory.
    if (error == null) freeBuffer(piece)
  })
  if (after !== '') to.write(after, 'latin1')
  to.uncork()
}

/** In memory of its own, so that it can be given back. */
function copyOf(bytes: Buffer, start: number, end: number): Buffer {
  const copy = Buffer.allocUnsafeSlow(end - start)
  bytes.copy(copy, 0, start, end)
  return copy
}
