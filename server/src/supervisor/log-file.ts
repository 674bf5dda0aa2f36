// The log file of a role, `logs/<role>.log`. Lines have a bounded length, and the file a bounded size, with one older file
// beside it. Every line is written at once, so that the last lines of a dying process are in it.
import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'

/** Bytes of one file. With the older file a role keeps at most twice this. */
const LOG_FILE_BYTES_MAX = 16 * 1024 * 1024
/** Bytes of one line. A longer line is cut. Bounds the memory of a stream. */
export const LOG_LINE_BYTES_MAX = 16 * 1024

type LogFile = {
  path: string
  /** Appends the line and a newline. Returns false when the write failed: a full disk must not stop the platform. */
  write(line: string): boolean
  close(): void
}

export function logPath(folder: string, name: string): string {
  return join(folder, `${name}.log`)
}

export function openLogFile(folder: string, name: string, options: { bytes_max?: number } = {}): LogFile {
  const bytes_max = options.bytes_max ?? LOG_FILE_BYTES_MAX
  const path = logPath(folder, name)
  const open = (): number => openSync(path, 'a', 0o600)
  let file = open()
  let bytes = fstatSync(file).size
  return {
    path,
    write(line) {
      try {
        if (bytes >= bytes_max) {
          renameSync(path, `${path}.1`)
          closeSync(file)
          file = open()
          bytes = 0
        }
        bytes += writeSync(file, `${line}\n`)
        return true
      } catch {
        return false
      }
    },
    close: () => closeSync(file),
  }
}

/** Calls `onLine` for each line of a stream, cut at LOG_LINE_BYTES_MAX, and for an incomplete line at the end. */
export function splitLines(stream: Readable, onLine: (line: string) => void): void {
  let rest = ''
  stream.setEncoding('utf8')
  stream.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) onLine(line.slice(0, LOG_LINE_BYTES_MAX))
    // The beginning of a long line is kept, and its rest is dropped up to its newline.
    if (rest.length > LOG_LINE_BYTES_MAX) rest = rest.slice(0, LOG_LINE_BYTES_MAX)
  })
  stream.on('end', () => {
    if (rest !== '') onLine(rest)
  })
  // A pipe breaks with its process, whose exit is handled elsewhere.
  stream.on('error', () => {})
}
