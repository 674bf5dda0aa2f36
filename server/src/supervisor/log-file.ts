// What a role says, kept in `logs/<role>.log`: lines as they come, of bounded length, in a file of bounded size with one
// older file beside it. Written at once, so that the last words of a process that dies are there.
import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'

/** One file; with its older one a role keeps at most twice this. */
const LOG_FILE_BYTES_MAX = 16 * 1024 * 1024
/** A longer line is cut here. */
export const LOG_LINE_BYTES_MAX = 16 * 1024

export type LogFile = {
  path: string
  /** Appends the line, without its newline. False when the disk did not take it: a full disk must not stop the platform. */
  write(line: string): boolean
  close(): void
}

export function openLogFile(folder: string, name: string, options: { bytes_max?: number } = {}): LogFile {
  const bytes_max = options.bytes_max ?? LOG_FILE_BYTES_MAX
  const path = join(folder, `${name}.log`)
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

/** Calls `onLine` for each line of a stream, cut at LOG_LINE_BYTES_MAX, and for what is left when it ends. */
export function splitLines(stream: Readable, onLine: (line: string) => void): void {
  let rest = ''
  stream.setEncoding('utf8')
  stream.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) onLine(line.slice(0, LOG_LINE_BYTES_MAX))
    // The beginning of an endless line is kept, the rest of it thrown away until its newline comes.
    if (rest.length > LOG_LINE_BYTES_MAX) rest = rest.slice(0, LOG_LINE_BYTES_MAX)
  })
  stream.on('end', () => {
    if (rest !== '') onLine(rest)
  })
  // A pipe that breaks with its process is the end of its lines, and the process's end is told elsewhere.
  stream.on('error', () => {})
}
