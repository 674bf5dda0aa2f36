// The kept output of a lobby: two files a stream, the younger one growing, each line `<RFC 3339 time> <text>`. They are
// written by the logger (logger.ts), and live as long as the lobby's folder.
import { open } from 'node:fs/promises'
import { join } from 'node:path'

export const LOG_STREAMS = ['stdout', 'stderr'] as const
export type LogStream = (typeof LOG_STREAMS)[number]

/** `text` is as the lobby wrote it, control characters too; bytes that are not UTF-8 are replaced. */
export type LogLine = { ts: Date; text: string }

/** The younger file becomes the older one when it has grown to this. So four times this is the most that a lobby keeps. */
export const LOG_FILE_BYTES_MAX = 512 * 1024
const LINES_MAX = 10_000
const TIME_LENGTH = 24

export const keptPath = (folder: string, stream: LogStream): string => join(folder, `${stream}.log`)
export const olderKeptPath = (folder: string, stream: LogStream): string => join(folder, `${stream}.log.1`)

/**
 * The last lines of a stream of the lobby whose folder this is, oldest first; none when there is no such folder.
 * `lines_max` is at most 10,000.
 */
export async function readLogs(folder: string, stream: LogStream, lines_max: number): Promise<LogLine[]> {
  const wanted = Math.min(lines_max, LINES_MAX)
  const younger = linesOf(await readEnd(keptPath(folder, stream)))
  const older = younger.length < wanted ? linesOf(await readEnd(olderKeptPath(folder, stream))) : []
  return [...older, ...younger].slice(-wanted)
}

/** A file is a little longer than its cap at most, by one chunk of output and the notes of the runner. */
async function readEnd(path: string): Promise<string> {
  try {
    await using file = await open(path)
    const { size } = await file.stat()
    const length = Math.min(size, 2 * LOG_FILE_BYTES_MAX)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length)
    return buffer.toString('utf8', 0, bytesRead)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw error
  }
}

function linesOf(content: string): LogLine[] {
  const lines: LogLine[] = []
  for (const line of content.split('\n')) {
    const ts = new Date(line.slice(0, TIME_LENGTH))
    // The first line of a cut-off read, the last one of a file that is being written.
    if (line[TIME_LENGTH] !== ' ' || Number.isNaN(ts.getTime())) continue
    lines.push({ ts, text: line.slice(TIME_LENGTH + 1) })
  }
  return lines
}
