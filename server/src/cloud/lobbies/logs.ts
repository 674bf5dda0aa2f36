// A lobby's log, as its developers read it: the last lines, and then what comes behind a position, waited for. The index of
// an answer is that position (lobby-logs/read.ts), so it means the same after a restart of the api, the runner or the logger.
import {
  ApiError,
  type getLobbyLogs,
  LOG_LINES_MAX,
  LOG_LINES_MORE_MAX,
  type QueryOf,
  type ResponseOf,
  validationError,
  visibleText,
} from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { createLongPoll } from '../../database/long-poll.ts'
import type { LogLine, LogStream } from '../../lobby-logs/files.ts'
import type { LogPart } from '../../lobby-logs/lobby-logs.ts'
import type { LogPosition } from '../../lobby-logs/read.ts'
import type { Caller } from '../../tokens/caller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { requireGame } from '../access.ts'
import { logUrl } from '../export-urls.ts'
import { timestamp } from '../times.ts'

/** Who asks for more and gets nothing is answered after this. */
const WAIT_MS = 40_000
const POLL_MS = 200
/** What another machine is asked to wait for at most before it says that there is nothing. */
const PATIENCE_MS = 5_000
/** Readers that wait, each for one stream: long polls and WebSockets. */
const READERS_MAX = 2_000
const INDEX = /^(\d{1,9})\.(\d{1,9})$/
const GAP = Buffer.from('[muster] lines before this one are no longer kept')

type StreamName = QueryOf<typeof getLobbyLogs>['stream']
const STREAMS: Readonly<Record<StreamName, LogStream>> = { std_out: 'stdout', std_err: 'stderr' }
export const streamOf = (name: StreamName): LogStream => STREAMS[name]

/** `is_started`: there is, or was, a run of it. `is_over`: nothing of it runs any more, nor will. */
type LobbyState = { is_started: boolean; is_over: boolean }
export type LogNews = { lines: LogLine[]; index: string; is_complete: boolean }

export type LogReaders = {
  /**
   * What is behind the index, waited for until there is something, the log is complete, or `isOver`; without an index the
   * last lines, at once. Throws VALIDATION_ERROR for what is no index, API_NOT_AVAILABLE when too many wait, and
   * LOBBY_LOGS_NOT_REACHABLE when the machine that has the log does not answer.
   */
  next(lobby_id: string, stream: LogStream, index: string | undefined, isOver: () => boolean): Promise<LogNews>
  /** Ends all waiting requests with a response, and admits no more. */
  close(): void
}

export function openLogReaders(ctx: Context): LogReaders {
  // The runner announces the end of a log, but not its lines.
  let is_closed = false
  const waiting = createLongPoll(ctx, { channel: CHANNELS.lobby_runs, poll_ms: POLL_MS, waiting_max: READERS_MAX })

  async function read(
    lobby_id: string,
    stream: LogStream,
    position: LogPosition,
    isOver: () => boolean,
  ): Promise<LogNews | null> {
    // Asked before it is read: what is whole by now has no line that the reading could miss.
    const { is_over } = await stateOf(ctx, lobby_id)
    const patience = { wait_ms: PATIENCE_MS, isOver: () => is_closed || isOver() }
    const part = await ctx.lobby_logs.after(lobby_id, stream, position, LOG_LINES_MORE_MAX, patience)
    const is_complete = is_over && !part.is_open && part.lines.length < LOG_LINES_MORE_MAX
    return part.lines.length > 0 || is_complete ? newsOf(is_complete, part) : null
  }

  return {
    async next(lobby_id, stream, index, isOver) {
      if (index === undefined) {
        const { is_over } = await stateOf(ctx, lobby_id)
        const part = await ctx.lobby_logs.last(lobby_id, stream, LOG_LINES_MAX)
        return newsOf(is_over && !part.is_open, part)
      }
      const position = requirePosition(index)
      const news = await waiting.until([lobby_id], () => read(lobby_id, stream, position, isOver), isOver)
      if (news === 'busy') throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
      return news ?? { lines: [], index, is_complete: false }
    },
    close() {
      is_closed = true
      waiting.close()
    },
  }
}

/** Throws GAME_NOT_FOUND, LOBBY_NOT_FOUND or GROUP_INSUFFICIENT_PERMISSIONS. */
export async function lobbyLogs(
  ctx: Context,
  readers: LogReaders,
  caller: Caller,
  { game_id, lobby_id }: { game_id: string; lobby_id: string },
  { stream, watch_index, format = 'base64' }: QueryOf<typeof getLobbyLogs>,
  isGone: () => boolean,
): Promise<ResponseOf<typeof getLobbyLogs>> {
  await requireLobby(ctx, caller, game_id, lobby_id)
  const deadline_ms = ctx.elapsed() + WAIT_MS
  const isOver = (): boolean => ctx.elapsed() >= deadline_ms || isGone()
  const { lines, index, is_complete } = await readers.next(lobby_id, streamOf(stream), watch_index, isOver)
  return {
    lines: lines.map(({ bytes }) => (format === 'text' ? visibleText(bytes.toString()) : bytes.toString('base64'))),
    timestamps: lines.map(({ ts }) => timestamp(ts)),
    watch: { index },
    is_complete,
  }
}

/** Throws GAME_NOT_FOUND, LOBBY_NOT_FOUND, GROUP_INSUFFICIENT_PERMISSIONS or MATCHMAKER_LOBBY_NOT_STARTED. */
export async function exportLog(
  ctx: Context,
  caller: Caller,
  { game_id, lobby_id }: { game_id: string; lobby_id: string },
  stream: StreamName,
): Promise<{ url: string }> {
  const { is_started } = await requireLobby(ctx, caller, game_id, lobby_id)
  const message = 'No server of this lobby has been started yet.'
  if (!is_started) throw new ApiError('MATCHMAKER_LOBBY_NOT_STARTED', {}, { message })
  return { url: logUrl(ctx, lobby_id, streamOf(stream)) }
}

/** Throws GAME_NOT_FOUND, GROUP_INSUFFICIENT_PERMISSIONS, and LOBBY_NOT_FOUND for lobbies of other games too. */
export async function requireLobby(
  ctx: Context,
  caller: Caller,
  game_id: string,
  lobby_id: string,
): Promise<LobbyState> {
  await requireGame(ctx, caller, game_id)
  const { rows } = await ctx.pool.query(
    `select from lobbies join namespaces using (namespace_id) where lobby_id = $1 and game_id = $2`,
    [lobby_id, game_id],
  )
  if (rows.length === 0) throw new ApiError('LOBBY_NOT_FOUND')
  return stateOf(ctx, lobby_id)
}

async function stateOf(ctx: Context, lobby_id: string): Promise<LobbyState> {
  const { rows } = await ctx.pool.query<{ is_started: boolean; is_stopped: boolean; is_exited: boolean }>(
    `select r.lobby_id is not null as is_started, l.stop_ts is not null as is_stopped, r.exit_ts is not null as is_exited
      from (select $1::uuid as lobby_id) as asked
      left join lobbies l using (lobby_id) left join lobby_runs r using (lobby_id)`,
    [lobby_id],
  )
  const { is_started, is_stopped, is_exited } = rows[0]!
  return { is_started, is_over: is_started ? is_exited : is_stopped }
}

function newsOf(is_complete: boolean, { lines, end, is_gap }: LogPart): LogNews {
  const [first] = lines
  const shown = is_gap && first !== undefined ? [{ ts: first.ts, bytes: GAP }, ...lines] : lines
  return { lines: ascending(shown), index: `${end.file}.${end.offset}`, is_complete }
}

/** A machine's clock may be set back; a line is not older than the one before it. */
function ascending(lines: readonly LogLine[]): LogLine[] {
  let latest = Number.NEGATIVE_INFINITY
  return lines.map(({ ts, bytes }) => {
    latest = Math.max(latest, ts.getTime())
    return { ts: new Date(latest), bytes }
  })
}

/** Throws VALIDATION_ERROR for what is no index. */
export function requirePosition(index: string): LogPosition {
  const match = INDEX.exec(index)
  if (match === null) {
    const message = 'A watch_index is what an answer had as its watch.index.'
    throw validationError([{ path: ['watch_index'], reason: 'invalid', message }])
  }
  return { file: Number(match[1]), offset: Number(match[2]) }
}
