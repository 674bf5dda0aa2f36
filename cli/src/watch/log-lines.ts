// Lines of a log, and the level of a line: from JSON, from a word at its beginning, otherwise from its stream.
import { createInterface } from 'node:readline'

export type StreamName = 'std_out' | 'std_err'
export type LobbyLogLine = { lobby_id: string; stream: StreamName; ts: string; text: string }

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

export function isAtLeast(line: LobbyLogLine, level: Level): boolean {
  return LEVELS.indexOf(levelOf(line)) >= LEVELS.indexOf(level)
}

/** Lines of standard error without a level count as warnings. */
function levelOf({ text, stream }: Pick<LobbyLogLine, 'text' | 'stream'>): Level {
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

/** The lines of an exported log, each of which begins with its time, as they arrive. */
export async function* exportedLines(
  body: NodeJS.ReadableStream,
  lobby_id: string,
  stream: StreamName,
): AsyncGenerator<LobbyLogLine> {
  for await (const line of createInterface({ input: body })) {
    if (line === '') continue
    const end = line.indexOf(' ')
    yield { lobby_id, stream, ts: line.slice(0, end), text: line.slice(end + 1) }
  }
}

/** The last `count_max` of the lines. No more than twice as many are in memory. */
export async function lastOf(lines: AsyncIterable<LobbyLogLine>, count_max: number): Promise<LobbyLogLine[]> {
  const kept: LobbyLogLine[] = []
  for await (const line of lines) {
    kept.push(line)
    if (kept.length >= 2 * count_max) kept.splice(0, count_max)
  }
  return kept.slice(-count_max)
}
