// Turns a lobby's output into the lines to keep, as a person sees them on a terminal. It buffers at most one line and returns
// a bounded number of bytes a second: a longer line is cut, and lines over the rate are counted and dropped. Pure: the time
// is an argument.
import { visibleLine } from './visible-line.ts'

/** Bytes of one line. A longer line is cut. Bounds the memory of a stream. */
export const LINE_BYTES_MAX = 16 * 1024
/** Bytes of one stream kept at once, before the rate applies. */
export const KEPT_BYTES_BURST_MAX = 1024 * 1024
/** Bytes a second of one stream kept after the burst. Bounds writes to the disk. */
export const KEPT_BYTES_PER_SECOND_MAX = 128 * 1024
/** The time and the newline of every kept line. */
const LINE_OVERHEAD_BYTES = 26
const NEWLINE = 10
/** Time without output after which a line without a newline is kept: a prompt, or a step that is under way. */
export const UNFINISHED_MS = 200
const CUT = Buffer.from(' [line cut]')

export type OutputLines = {
  /** The beginning of a line whose end has not arrived yet. */
  partial: Buffer
  /** The rest of a cut line is still to come, and is skipped. */
  is_skipping: boolean
  /** The beginning of the line was kept when it was not finished. */
  is_continued: boolean
  allowance_bytes: number
  refill_ms: number
  dropped: number
}

export function createLines(now_ms: number): OutputLines {
  return {
    partial: Buffer.alloc(0),
    is_skipping: false,
    is_continued: false,
    allowance_bytes: KEPT_BYTES_BURST_MAX,
    refill_ms: now_ms,
    dropped: 0,
  }
}

/** Takes output and returns its whole lines to keep, with their times. */
export function takeChunk(lines: OutputLines, chunk: Buffer, now_ms: number): Buffer {
  refill(lines, now_ms)
  const kept: Buffer[] = []
  let start = 0
  for (;;) {
    const newline = chunk.indexOf(NEWLINE, start)
    if (newline === -1) break
    takePiece(lines, chunk.subarray(start, newline), kept, now_ms)
    if (lines.is_skipping) lines.is_skipping = false
    else endLine(lines, kept, now_ms)
    lines.is_continued = false
    start = newline + 1
  }
  takePiece(lines, chunk.subarray(start), kept, now_ms)
  // A slice would keep the whole chunk alive.
  lines.partial = Buffer.from(lines.partial)
  return Buffer.concat(kept)
}

/** Called after UNFINISHED_MS without output. What a person does not see waits for the end of its line. */
export function takeUnfinished(lines: OutputLines, now_ms: number): Buffer {
  const kept: Buffer[] = []
  if (lines.partial.length === 0 || visibleLine(lines.partial).length === 0) return Buffer.alloc(0)
  refill(lines, now_ms)
  endLine(lines, kept, now_ms)
  lines.is_continued = true
  return Buffer.concat(kept)
}

/** Called periodically: returns a line with the number of dropped lines, even without further output. */
export function takePause(lines: OutputLines, now_ms: number): Buffer {
  refill(lines, now_ms)
  const kept: Buffer[] = []
  if (lines.dropped > 0) addDropped(lines, kept, now_ms)
  return Buffer.concat(kept)
}

/** Called at the end of the output. A last line without a newline counts as a line. */
export function takeEnd(lines: OutputLines, now_ms: number): Buffer {
  refill(lines, now_ms)
  const kept: Buffer[] = []
  if (lines.partial.length > 0) endLine(lines, kept, now_ms)
  if (lines.dropped > 0) addDropped(lines, kept, now_ms)
  return Buffer.concat(kept)
}

/** In front of the platform's own lines in the log of a lobby. */
export const PLATFORM_MARK = '[muster] '

/** A line of the platform among those of the lobby. */
export function platformLine(text: string, now_ms: number): Buffer {
  return Buffer.from(`${new Date(now_ms).toISOString()} ${PLATFORM_MARK}${text.replaceAll('\n', ' ')}\n`)
}

function refill(lines: OutputLines, now_ms: number): void {
  const passed_ms = Math.max(0, now_ms - lines.refill_ms)
  lines.allowance_bytes = Math.min(
    KEPT_BYTES_BURST_MAX,
    lines.allowance_bytes + (passed_ms * KEPT_BYTES_PER_SECOND_MAX) / 1000,
  )
  lines.refill_ms = now_ms
}

/** What is too long is first reduced to what a person sees: a progress bar overwrites one line for minutes. */
function takePiece(lines: OutputLines, piece: Buffer, kept: Buffer[], now_ms: number): void {
  for (let at = 0; at < piece.length && !lines.is_skipping; at += LINE_BYTES_MAX + 1) {
    const next = piece.subarray(at, at + LINE_BYTES_MAX + 1)
    lines.partial = lines.partial.length === 0 ? next : Buffer.concat([lines.partial, next])
    if (lines.partial.length <= LINE_BYTES_MAX) continue
    lines.partial = visibleLine(lines.partial)
    // Each pass removes so many bytes at least that the passes cost no more than a constant for each byte.
    if (lines.partial.length <= LINE_BYTES_MAX / 2) continue
    lines.partial = Buffer.concat([lines.partial.subarray(0, LINE_BYTES_MAX), CUT])
    endLine(lines, kept, now_ms)
    lines.is_skipping = true
  }
}

function endLine(lines: OutputLines, kept: Buffer[], now_ms: number): void {
  const text = visibleLine(lines.partial)
  lines.partial = Buffer.alloc(0)
  if (lines.is_continued && text.length === 0) return
  const cost = text.length + LINE_OVERHEAD_BYTES
  if (cost > lines.allowance_bytes) {
    lines.dropped++
    return
  }
  if (lines.dropped > 0) addDropped(lines, kept, now_ms)
  lines.allowance_bytes -= cost
  kept.push(Buffer.from(`${new Date(now_ms).toISOString()} `), text, Buffer.from('\n'))
}

function addDropped(lines: OutputLines, kept: Buffer[], now_ms: number): void {
  kept.push(platformLine(`${lines.dropped} lines dropped: more than is kept`, now_ms))
  lines.dropped = 0
}
