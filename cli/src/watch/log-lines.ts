// Lines of a log, and the level of a line: from JSON, from a word at its beginning, otherwise from its stream.

export type StreamName = 'std_out' | 'std_err'
export type LogLine = { lobby_id: string; stream: StreamName; ts: string; text: string }

export const LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type Level = (typeof LEVELS)[number]

const WORDS: Readonly<Record<string, Level>> = {
  trace: 'debug',
  debug: 'debug',
  verbose: 'debug',
  info: 'info',
  notice: 'info',
  warn: 'warn',
  warning: 'warn',
  err: 'error',
  error: 'error',
  fatal: 'error',
  critical: 'error',
  panic: 'error',
}
/** A word near the beginning, such as `[WARN] ...`, `error: ...` or `20:00:01 INFO ...`. */
const WORD = /^[^\p{L}]{0,40}(\p{L}{3,8})\b/u
/** Numbers of pino and bunyan. */
const NUMBER_STEP = { debug: 20, info: 30, warn: 40 } as const

export function isAtLeast(line: LogLine, level: Level): boolean {
  return LEVELS.indexOf(levelOf(line)) >= LEVELS.indexOf(level)
}

/** Lines of standard error without a level count as warnings. */
function levelOf({ text, stream }: Pick<LogLine, 'text' | 'stream'>): Level {
  const of_stream = stream === 'std_err' ? 'warn' : 'info'
  if (text.startsWith('{')) return levelOfJson(text) ?? of_stream
  return WORDS[WORD.exec(text)?.[1]?.toLowerCase() ?? ''] ?? of_stream
}

function levelOfJson(text: string): Level | null {
  let level: unknown
  try {
    level = (JSON.parse(text) as { level?: unknown }).level
  } catch (error) {
    // A line that only looks like JSON, or was cut, has no level.
    if (error instanceof SyntaxError) return null
    throw error
  }
  if (typeof level === 'string') return WORDS[level.toLowerCase()] ?? null
  if (typeof level !== 'number') return null
  if (level <= NUMBER_STEP.debug) return 'debug'
  if (level <= NUMBER_STEP.info) return 'info'
  return level <= NUMBER_STEP.warn ? 'warn' : 'error'
}

/** The lines of an exported log, each of which begins with its time. */
export function parseExport(text: string, lobby_id: string, stream: StreamName): LogLine[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const end = line.indexOf(' ')
      return { lobby_id, stream, ts: line.slice(0, end), text: line.slice(end + 1) }
    })
}
