// What the logs of a lobby can be asked, wherever they are kept.
import type { LogLine, LogStream } from './files.ts'
import type { RecordedMetrics } from './lobby-metrics.ts'
import { type LinesRead, LOG_START, type LogPosition } from './read.ts'

/** `is_open`: somebody may still write into it, or what was written was not all kept yet, before it was read. */
export type LogPart = LinesRead & { is_open: boolean }

/** How long it may take where there are no lines yet and asking is dear: a folder of this machine answers at once. */
export type LogPatience = { wait_ms: number; isOver: () => boolean }

export type LobbyLogs = {
  /** The last lines, oldest first; none of a lobby that has written nothing, or of which nothing is kept. */
  last(lobby_id: string, stream: LogStream, lines_max: number): Promise<LogPart>
  /** The lines after a position. Cheap where there are none: to be asked again and again. */
  after(
    lobby_id: string,
    stream: LogStream,
    position: LogPosition,
    lines_max: number,
    patience?: LogPatience,
  ): Promise<LogPart>
  /** The resources that it used; null when they were never measured or are no longer kept. */
  metrics(lobby_id: string): Promise<RecordedMetrics | null>
}

/** How long a write waits for a server that does not read its input, so that the pipe (64 KiB) is full, in milliseconds. */
export const INPUT_WAIT_MS_MAX = 2_000

/** `not_running`: no process has the pipe open. `not_read`: the pipe stayed full. In both cases nothing was written. */
export type InputResult = 'written' | 'not_running' | 'not_read'

/** `note`: a line for the log of the lobby, written together with the input. */
export type LobbyInput = { line: string; note: string }

const LINES_AT_ONCE = 1_000

/** All that is kept by the time at which the end of it is reached, `bytes_max` at most. */
export async function* wholeLog(
  logs: LobbyLogs,
  lobby_id: string,
  stream: LogStream,
  bytes_max: number,
): AsyncGenerator<LogLine[]> {
  let position = LOG_START
  for (let bytes = 0; bytes < bytes_max; ) {
    const { lines, end } = await logs.after(lobby_id, stream, position, LINES_AT_ONCE)
    if (lines.length === 0) return
    yield lines
    position = end
    bytes += lines.reduce((sum, line) => sum + line.bytes.length, lines.length)
  }
}
