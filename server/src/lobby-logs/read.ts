// Reading the log of one stream from a lobby's folder, while it grows and its oldest files go. What is read ends at a
// position, behind its last whole line, from which the next read goes on.
import { open, readdir } from 'node:fs/promises'
import { fileNumbers, LOG_FILE_BYTES_MAX, type LogLine, type LogStream, logFile, readLines } from './files.ts'

/** The lines up to here are known. */
export type LogPosition = { file: number; offset: number }
/** `is_gap`: lines between the position that was asked for and the first of these are no longer kept. */
export type LinesRead = { lines: LogLine[]; end: LogPosition; is_gap: boolean }

export const LOG_START: LogPosition = { file: 0, offset: 0 }

/** Lines of one read. */
const LINES_MAX = 10_000
/** At once; longer than any line, so that each piece has an end of one. */
const PIECE_BYTES = 256 * 1024
/** A file is a little longer than its cap at most, by one chunk of output and the notes of the runner. */
const FILE_BYTES_MAX = 2 * LOG_FILE_BYTES_MAX
/** Files that may turn up while others are read. */
const FILES_READ_MAX = 16

/** The last lines, oldest first; none when there is no such folder. `lines_max` is at most 10,000. */
export async function lastLines(folder: string, stream: LogStream, lines_max: number): Promise<LinesRead> {
  const wanted = Math.min(lines_max, LINES_MAX)
  let lines: LogLine[] = []
  let end = LOG_START
  for (const file of (await numbersIn(folder, stream)).reverse()) {
    const content = await readPiece(logFile(folder, stream, file), 0, FILE_BYTES_MAX)
    if (content === null) break
    const read = readLines(content, Number.POSITIVE_INFINITY)
    if (end.file === 0) end = { file, offset: read.length }
    lines = [...read.lines, ...lines]
    if (lines.length >= wanted) break
  }
  return { lines: lines.slice(-wanted), end, is_gap: false }
}

/** The lines behind a position. A position that the log does not have (it was of another, or made up) is taken for its start. */
export async function linesAfter(
  folder: string,
  stream: LogStream,
  position: LogPosition,
  lines_max: number,
): Promise<LinesRead> {
  const wanted = Math.min(lines_max, LINES_MAX)
  const numbers = await numbersIn(folder, stream)
  const [oldest, newest] = [numbers[0], numbers.at(-1)]
  if (oldest === undefined || newest === undefined) return { lines: [], end: position, is_gap: false }
  const is_known = position.file >= oldest && position.file <= newest
  const lines: LogLine[] = []
  let end = is_known ? position : { file: oldest, offset: 0 }
  let is_gap = !is_known && (position.file !== LOG_START.file || oldest > 1)
  for (let files = 0; files < FILES_READ_MAX; files++) {
    const offset = await readFile(logFile(folder, stream, end.file), end.offset, wanted, lines)
    // The file was removed after the folder was read.
    is_gap ||= offset === null
    end = { file: end.file, offset: offset ?? end.offset }
    const next = numbers.find((number) => number > end.file)
    if (lines.length >= wanted || next === undefined) break
    end = { file: next, offset: 0 }
  }
  return { lines, end, is_gap }
}

/** Adds the lines after `offset` until there are `wanted`; returns where they end. Null: the file is gone. */
async function readFile(path: string, offset: number, wanted: number, lines: LogLine[]): Promise<number | null> {
  let end = offset
  while (lines.length < wanted && end < FILE_BYTES_MAX) {
    const piece = await readPiece(path, end, PIECE_BYTES)
    if (piece === null) return null
    if (piece.length === 0) break
    const read = readLines(piece, wanted - lines.length)
    lines.push(...read.lines)
    // A piece without an end of a line is none of ours.
    const length = read.length === 0 && piece.length === PIECE_BYTES ? PIECE_BYTES : read.length
    if (length === 0) break
    end += length
  }
  return end
}

/** Null: the file is gone. */
async function readPiece(path: string, offset: number, length_max: number): Promise<Buffer | null> {
  try {
    await using file = await open(path)
    const { size } = await file.stat()
    const length = Math.max(0, Math.min(size - offset, length_max))
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, offset)
    return buffer.subarray(0, bytesRead)
  } catch (error) {
    if (isGone(error)) return null
    throw error
  }
}

async function numbersIn(folder: string, stream: LogStream): Promise<number[]> {
  try {
    return fileNumbers(await readdir(folder), stream)
  } catch (error) {
    if (isGone(error)) return []
    throw error
  }
}

function isGone(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
