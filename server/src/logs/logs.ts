// The logs of lobbies, wherever they are kept: what the api reads them by. They are in the data folder of the machine whose
// runner wrote them: on this one they are read from the disk (folder.ts), on another that runner is asked (far.ts).
// The logs of lobbies, wherever they are kept: what the api reads them by. They are in the data folder of the machine whose
// runner wrote them, here or elsewhere: then that runner is asked (far.ts).
//
//   <data>/lobbies/<lobby id>/           while it runs, and a moment longer (runner/drivers/lobby-folder.ts)
//   <data>/lobbies/.ended/<lobby id>/    from then on, for as long as the settings say (runner/logs/ended.ts)
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Pool } from 'pg'
import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import type { Listener } from '../database/listen.ts'
import { createFarLogs, type FarRun } from './far.ts'
import { createFolderLogs, folderOfLobby } from './folder.ts'
import type { LogLine, LogStream } from './kept.ts'
import type { LobbyMetrics } from './lobby-metrics.ts'
import { type LinesRead, LOG_START, type LogPlace } from './read.ts'

/** `is_open`: somebody may still write into it, or what was written was not all kept yet, before it was read. */
export type LogPart = LinesRead & { is_open: boolean }

/** How long it may take where there are no lines yet and asking is dear: a folder of this machine answers at once. */
export type LogPatience = { wait_ms: number; isOver: () => boolean }

export type LobbyLogs = {
  /** The last lines, oldest first; none of a lobby that has written nothing, or of which nothing is kept. */
  last(lobby_id: string, stream: LogStream, lines_max: number): Promise<LogPart>
  /** The lines behind a place. Cheap where there are none: to be asked again and again. */
  after(
    lobby_id: string,
    stream: LogStream,
    place: LogPlace,
    lines_max: number,
    patience?: LogPatience,
  ): Promise<LogPart>
  /** What it used; null when nobody looked, or nothing of it is kept. */
  metrics(lobby_id: string): Promise<LobbyMetrics | null>
}

const LINES_AT_ONCE = 1_000

/** Those of this machine are read from its disk, those of others asked for. */
export function createLobbyLogs({
  config,
  pool,
  listener,
  log,
}: {
  config: Pick<Config, 'data_dir' | 'node_id'>
  pool: Pool
  listener: Listener
  log: Logger
}): LobbyLogs & { close: () => void } {
  const lobbies_folder = join(config.data_dir, 'lobbies')
  const near = createFolderLogs(lobbies_folder)
  const far = createFarLogs({ pool, listener, log })

  /** What nothing is kept of here, and no other machine ran, is nowhere. */
  async function logsOf(lobby_id: string): Promise<LobbyLogs> {
    if (existsSync(folderOfLobby(lobbies_folder, lobby_id))) return near
    const { rows } = await pool.query<FarRun>({
      name: 'log-place',
      text: 'select runner_id, region from lobby_runs where lobby_id = $1 and runner_id <> $2',
      values: [lobby_id, config.node_id],
    })
    return rows[0] === undefined ? near : far.of(rows[0])
  }

  return {
    last: async (lobby_id, ...rest) => (await logsOf(lobby_id)).last(lobby_id, ...rest),
    after: async (lobby_id, ...rest) => (await logsOf(lobby_id)).after(lobby_id, ...rest),
    metrics: async (lobby_id) => (await logsOf(lobby_id)).metrics(lobby_id),
    close: far.close,
  }
}

/** All that is kept by the time at which the end of it is reached, `bytes_max` at most. */
export async function* wholeLog(
  logs: LobbyLogs,
  lobby_id: string,
  stream: LogStream,
  bytes_max: number,
): AsyncGenerator<LogLine[]> {
  let place = LOG_START
  for (let bytes = 0; bytes < bytes_max; ) {
    const { lines, end } = await logs.after(lobby_id, stream, place, LINES_AT_ONCE)
    if (lines.length === 0) return
    yield lines
    place = end
    bytes += lines.reduce((sum, line) => sum + line.bytes.length, lines.length)
  }
}
