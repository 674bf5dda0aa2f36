// What is kept of a lobby's output: for each of its two streams files with growing numbers, `stdout.1.log`, of which the
// newest grows until it is full and the two newest are kept. A file of a number never changes but by growing, so a place in
// a log (a file's number and how far in) means the same for as long as that file is there. A line of it is
// `<RFC 3339 time> <bytes>`, as a person would see them on a terminal. They are written by the logger (runner/logs/logger.ts).
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

export const LOG_STREAMS = ['stdout', 'stderr'] as const
export type LogStream = (typeof LOG_STREAMS)[number]

/** A file of this size is followed by the next. A lobby keeps about four times this. */
export const LOG_FILE_BYTES_MAX = 512 * 1024
/** Log files kept per stream. */
export const LOG_FILES_MAX = 2

/** `bytes` may have control characters and what is no UTF-8; without the newline. */
export type LogLine = { ts: Date; bytes: Buffer }

const TIME_LENGTH = 24
const [NEWLINE, SPACE] = [10, 32]
const LOG_FILE = /^(stdout|stderr)\.([1-9]\d{0,8})\.log$/

export const logFile = (folder: string, stream: LogStream, number: number): string =>
  join(folder, `${stream}.${number}.log`)

/** The numbers of the files that are kept, ascending. */
export function fileNumbers(names: readonly string[], stream: LogStream): number[] {
  return names
    .flatMap((name) => {
      const match = LOG_FILE.exec(name)
      return match?.[1] === stream ? [Number(match[2])] : []
    })
    .sort((a, b) => a - b)
}

/** The number of the file that grows. Throws when there is no such folder. */
export function newestFile(folder: string, stream: LogStream): number {
  return fileNumbers(readdirSync(folder), stream).at(-1) ?? 1
}

export const isLogFile = (name: string): boolean => LOG_FILE.test(name)

/** The whole lines in this piece of a file, `lines_max` at most, and how many bytes of it they take. */
export function readLines(piece: Buffer, lines_max: number): { lines: LogLine[]; length: number } {
  const lines: LogLine[] = []
  let length = 0
  while (lines.length < lines_max) {
    const end = piece.indexOf(NEWLINE, length)
    if (end === -1) break
    const line = lineOf(piece.subarray(length, end))
    if (line !== null) lines.push(line)
    length = end + 1
  }
  return { lines, length }
}

/** Null for what is no line of ours: the rest of one whose beginning is not in the piece. */
function lineOf(bytes: Buffer): LogLine | null {
  const ts = new Date(bytes.toString('latin1', 0, TIME_LENGTH))
  if (bytes[TIME_LENGTH] !== SPACE || Number.isNaN(ts.getTime())) return null
  return { ts, bytes: bytes.subarray(TIME_LENGTH + 1) }
}
