// The logs of lobbies, wherever they are kept: what the api reads them by. They are in the data folder of the machine whose
// runner wrote them: on this one they are read from the disk (local.ts), on another that runner is asked (remote.ts).
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Pool } from 'pg'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import type { Listener } from '../database/listen.ts'
import type { InputResult, LobbyInput, LobbyLogs } from './lobby-logs.ts'
import { createFolderLogs, folderOfLobby } from './local.ts'
import { createFarLogs, type FarRun } from './remote.ts'

/** `writeInput` writes to the standard input of a lobby that runs; its runner does so, on this machine too. */
export type LobbyChannels = LobbyLogs & { writeInput: (lobby_id: string, input: LobbyInput) => Promise<InputResult> }

/** Logs of lobbies of this machine are read from its disk, logs of other machines are requested from their runners. */
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
}): LobbyChannels & { close: () => void } {
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
    async writeInput(lobby_id, input) {
      const { rows } = await pool.query<FarRun>({
        name: 'input-place',
        text: 'select runner_id, region from lobby_runs where lobby_id = $1 and exit_ts is null',
        values: [lobby_id],
      })
      return rows[0] === undefined ? 'not_running' : far.write(rows[0], lobby_id, input)
    },
    close: far.close,
  }
}
