// A role's output on its way from the pipe to its log file. Warnings and errors are also shown on the terminal, a
// readable line each and not more than a few a second; and the last words of a process are remembered, for when it dies.
import type { Readable } from 'node:stream'
import { openLogFile, splitLines } from './log-file.ts'
import type { Terminal } from './terminal.ts'

/** Of one role, in one second. More are only counted. */
const SHOWN_PER_SECOND_MAX = 5
const LAST_WORDS_MAX = 20
/** pino's numbers. */
const WARNING_LEVEL = 40

export type RoleLog = {
  /** Follows the output of a new process of the role. */
  follow(output: Readable, errors: Readable): void
  /** A line of our own, as pino writes them. */
  write(line: string): void
  /** What the present process wrote to standard error last: mostly the reason of its death. Empty when nothing. */
  lastWords(): string
  close(): void
}

export function openRoleLog(options: {
  folder: string
  who: string
  terminal: Terminal
  elapsed: () => number
  /** While it answers true, warnings go to the file alone: their cause has been shown. */
  isQuiet?: () => boolean
}): RoleLog {
  const { folder, who, terminal, elapsed, isQuiet = () => false } = options
  const file = openLogFile(folder, who)
  let lastWords: string[] = []
  let second = 0
  let shown = 0
  let unshown = 0
  let isDiskRefusing = false
  let isOpen = true

  const show = (text: string): void => {
    const present = Math.floor(elapsed() / 1_000)
    if (present !== second) {
      if (unshown > 0) terminal.warn(who, `and ${unshown} more, in ${file.path}`)
      second = present
      shown = 0
      unshown = 0
    }
    if (shown < SHOWN_PER_SECOND_MAX) terminal.warn(who, text)
    else unshown++
    shown++
  }
  const write = (line: string): void => {
    if (!isOpen) return
    const isWritten = file.write(line)
    if (!isWritten && !isDiskRefusing)
      terminal.warn(who, `its log cannot be written to ${file.path}: is the disk full?`)
    isDiskRefusing = !isWritten
    const text = warningOf(line)
    if (text !== null && !isQuiet()) show(text)
  }
  return {
    follow(output, errors) {
      lastWords = []
      splitLines(output, write)
      splitLines(errors, (line) => {
        if (isOpen) file.write(line)
        lastWords.push(line)
        if (lastWords.length > LAST_WORDS_MAX) lastWords.shift()
      })
    },
    write,
    lastWords: () => lastWords.join('\n').trim(),
    close() {
      isOpen = false
      file.close()
    },
  }
}

/** The sentence of a pino line at warning or above; null for all other lines. */
export function warningOf(line: string): string | null {
  if (!line.startsWith('{')) return null
  let entry: { level?: unknown; msg?: unknown; err?: { message?: unknown } }
  try {
    entry = JSON.parse(line)
  } catch {
    // Cut or not ours: it is in the file.
    return null
  }
  if (typeof entry.level !== 'number' || entry.level < WARNING_LEVEL) return null
  const message = typeof entry.msg === 'string' ? entry.msg : ''
  const cause = typeof entry.err?.message === 'string' ? entry.err.message : ''
  if (cause === '' || message.includes(cause)) return message
  return message === '' ? cause : `${message} (${cause})`
}
