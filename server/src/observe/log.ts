// The log: one JSON object a line (pino). A role writes to its standard output without waiting for the reader: a
// supervisor that stands still must not stop a role, so beyond a bounded buffer lines are dropped. The supervisor keeps
// the lines in files and shows warnings and errors on the terminal.
import { type DestinationStream, type Logger, pino } from 'pino'
import type { Config } from '../config.ts'

/** What waits for a reader at most; beyond it new lines are dropped. */
const LOG_BUFFER_BYTES_MAX = 4 * 1024 * 1024
const STANDARD_OUTPUT = 1

/** Members that carry secrets in what we log by accident: they are written as [hidden]. */
const SECRET_PATHS = ['token', '*.token', 'authorization', '*.authorization', 'headers.cookie', '*.headers.cookie']

/**
 * The log of one process. `who` is in every line: a role, or `supervisor`. A fatal line is flushed before the call
 * returns, all others in the background.
 */
export function createLog(options: { who: string; level: Config['log_level']; to?: DestinationStream }): Logger {
  const to = options.to ?? pino.destination({ dest: STANDARD_OUTPUT, sync: false, maxLength: LOG_BUFFER_BYTES_MAX })
  return pino(
    {
      level: options.level,
      base: { who: options.who },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: SECRET_PATHS, censor: '[hidden]' },
    },
    to,
  )
}
