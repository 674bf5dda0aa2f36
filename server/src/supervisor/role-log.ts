// Copies the output of a role to its log file. Warnings and errors are also shown on the terminal, as one readable line
// each and a few a second at most. The last lines of standard error are kept to explain the death of the process.
import type { Readable } from 'node:stream'
import { openLogFile, splitLines } from './log-file.ts'
import type { SupervisorTerminal } from './terminal.ts'

/** Warnings of one role shown in one second. Further ones are only counted. */
const SHOWN_PER_SECOND_MAX = 5
/** Last lines of standard error that are kept. */
const LAST_LINES_MAX = 20
/** pino's number for warnings. */
const WARNING_LEVEL = 40

export type RoleLog = {
  /** Follows the output of a new process of the role. */
  follow(output: Readable, errors: Readable): void
  /** Writes a line of the supervisor, in pino's format. */
  write(line: string): void
  /** The last lines of standard error of the current process, usually the reason of its death. */
  lastLines(): string
  close(): void
}

export function openRoleLog(options: {
  folder: string
  who: string
  terminal: SupervisorTerminal
  elapsed: () => number
  /** While it returns true, warnings go to the file only, because their cause has been shown. */
  isQuiet?: () => boolean
}): RoleLog {
  const { folder, who, terminal, elapsed, isQuiet = () => false } = options
  const file = openLogFile(folder, who)
  let last_lines: string[] = []
  let second = 0
  let shown = 0
  let unshown = 0
  let has_failed = false
  let is_open = true

  const show = (text: string): void => {
    const current = Math.floor(elapsed() / 1_000)
    if (current !== second) {
      if (unshown > 0) terminal.warn(who, `and ${unshown} more, in ${file.path}`)
      second = current
      shown = 0
      unshown = 0
    }
    if (shown < SHOWN_PER_SECOND_MAX) terminal.warn(who, text)
    else unshown++
    shown++
  }
  const write = (line: string): void => {
    if (!is_open) return
    const is_written = file.write(line)
    if (!is_written && !has_failed) {
      terminal.warn(who, `its log cannot be written to ${file.path}: is the disk full?`)
    }
    has_failed = !is_written
    const text = warningOf(line)
    if (text !== null && !isQuiet()) show(text)
  }
  return {
    follow(output, errors) {
      last_lines = []
      splitLines(output, write)
      splitLines(errors, (line) => {
        if (is_open) file.write(line)
        last_lines.push(line)
        if (last_lines.length > LAST_LINES_MAX) last_lines.shift()
      })
    },
    write,
    lastLines: () => last_lines.join('\n').trim(),
    close() {
      is_open = false
      file.close()
    },
  }
}

/** The message of a pino line of level warning or above; null for every other line. */
export function warningOf(line: string): string | null {
  if (!line.startsWith('{')) return null
  let entry: { level?: unknown; msg?: unknown; err?: { message?: unknown } }
  try {
    entry = JSON.parse(line)
  } catch {
    // The line was cut, or is not from pino. It is in the file.
    return null
  }
  if (typeof entry.level !== 'number' || entry.level < WARNING_LEVEL) return null
  const message = typeof entry.msg === 'string' ? entry.msg : ''
  const cause = typeof entry.err?.message === 'string' ? entry.err.message : ''
  if (cause === '' || message.includes(cause)) return message
  return message === '' ? cause : `${message} (${cause})`
}
