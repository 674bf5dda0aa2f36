// What PostgreSQL says, in a file of bounded size. It writes there itself: a pipe through us would stop it whenever we
// stop, and break when we are killed. So the file is cut from time to time, after a copy of it was taken.
import { closeSync, openSync } from 'node:fs'
import { copyFile, open, stat, truncate } from 'node:fs/promises'
import type { Logger } from 'pino'

/** PostgreSQL's log is rotated beyond this size. */
const LOG_BYTES_MAX = 10 * 1024 * 1024
const CHECK_EVERY_MS = 30_000
/** End of PostgreSQL's log that an error shows. */
const TAIL_BYTES_MAX = 4_096

export type LogFile = {
  /** For a child's standard output and error. Appends, so that cutting the file is safe. */
  descriptor: number
  /** What was written since the file was opened, its last 4 KiB. */
  tail: () => Promise<string>
  close: () => void
}

export async function openLogFile(path: string, log: Logger): Promise<LogFile> {
  await cutLog(path)
  const descriptor = openSync(path, 'a', 0o600)
  const start = (await stat(path)).size
  const timer = setInterval(() => {
    cutLog(path).catch((error: unknown) => log.warn({ err: error }, "cannot cut PostgreSQL's log"))
  }, CHECK_EVERY_MS).unref()
  return {
    descriptor,
    async tail() {
      const file = await open(path)
      try {
        const { size } = await file.stat()
        const from = Math.max(size < start ? 0 : start, size - TAIL_BYTES_MAX)
        const { buffer, bytesRead } = await file.read(Buffer.alloc(TAIL_BYTES_MAX), 0, TAIL_BYTES_MAX, from)
        return buffer.toString('utf8', 0, bytesRead)
      } finally {
        await file.close()
      }
    },
    close() {
      clearInterval(timer)
      closeSync(descriptor)
    },
  }
}

/** Keeps one old file beside the new one. */
async function cutLog(path: string): Promise<void> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (found === null || found.size < LOG_BYTES_MAX) return
  await copyFile(path, `${path}.1`)
  await truncate(path)
}
