// Appends to the log files of one stream. When the newest file is full the next one is begun and the oldest is removed. A
// full disk loses lines and has no other effect.
import { closeSync, fstatSync, openSync, rmSync, writeSync } from 'node:fs'
import { LOG_FILE_BYTES_MAX, LOG_FILES_MAX, type LogStream, logFile, newestFile } from '../../lobby-logs/files.ts'
import { isGone } from '../../node/procfs.ts'

/** `onFailure` is called once for each row of failed writes. */
export function createLogWriter(
  folder: string,
  stream: LogStream,
  onFailure: (text: string) => void,
): (bytes: Buffer) => void {
  let number: number | null = null
  let has_failed = false
  return (bytes) => {
    if (bytes.length === 0) return
    try {
      number ??= newestFile(folder, stream)
      if (append(logFile(folder, stream, number), bytes) >= LOG_FILE_BYTES_MAX) {
        number++
        rmSync(logFile(folder, stream, number - LOG_FILES_MAX), { force: true })
      }
      has_failed = false
    } catch (error) {
      const reason = error instanceof Error ? error.message : error
      if (!has_failed && !isGone(error)) onFailure(`${stream} of ${folder}: ${reason}`)
      has_failed = true
    }
  }
}

/** Returns the length of the file after the write. */
function append(path: string, bytes: Buffer): number {
  const fd = openSync(path, 'a', 0o600)
  try {
    writeSync(fd, bytes)
    return fstatSync(fd).size
  } finally {
    closeSync(fd)
  }
}
