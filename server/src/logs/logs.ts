// The logs of lobbies, wherever they are kept: what the api reads them by. For now they are in the data folder of the
// machine whose runner wrote them, so the api must run there too; logs of other machines are one more implementation of
// LobbyLogs.
//
//   <data>/lobbies/<lobby id>/           while it runs, and a moment longer (runner/drivers/lobby-folder.ts)
//   <data>/lobbies/.ended/<lobby id>/    from then on, for as long as the settings say (runner/logs/ended.ts)
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type LogLine, type LogStream, logFile } from './kept.ts'
import { type LobbyMetrics, readMetrics } from './lobby-metrics.ts'
import { LOG_START, type LogPart, type LogPlace, lastLines, linesAfter } from './read.ts'

export type LobbyLogs = {
  /** The last lines, oldest first; none of a lobby that has written nothing, or of which nothing is kept. */
  last(lobby_id: string, stream: LogStream, lines_max: number): Promise<LogPart>
  /** The lines behind a place. */
  after(lobby_id: string, stream: LogStream, place: LogPlace, lines_max: number): Promise<LogPart>
  /** Whether it is worth looking behind a place: cheap, to be asked again and again. */
  hasMore(lobby_id: string, stream: LogStream, place: LogPlace): Promise<boolean>
  /** All that is kept by the time at which the end of it is reached, `bytes_max` at most. */
  all(lobby_id: string, stream: LogStream, bytes_max: number): AsyncGenerator<LogLine[]>
  /** Whether somebody may still write into it, or what was written is not all kept yet. */
  isOpen(lobby_id: string, stream: LogStream): Promise<boolean>
  /** What it used; null when nobody looked, or nothing of it is kept. */
  metrics(lobby_id: string): Promise<LobbyMetrics | null>
}

const LOBBY_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const LINES_AT_ONCE = 1_000

/** Ids become names of folders: nothing else ever does. */
export function isLobbyId(text: string): boolean {
  return LOBBY_ID.test(text)
}

export const endedFolder = (lobbies_folder: string): string => join(lobbies_folder, '.ended')

/** Where a lobby's folder is: folders only ever move from the first place to the second. */
export function folderOfLobby(lobbies_folder: string, lobby_id: string): string {
  if (!isLobbyId(lobby_id)) throw new Error(`${JSON.stringify(lobby_id)} is not the id of a lobby.`)
  const folder = join(lobbies_folder, lobby_id)
  if (existsSync(folder)) return folder
  const ended = join(endedFolder(lobbies_folder), lobby_id)
  return existsSync(ended) ? ended : folder
}

export function createFolderLogs(lobbies_folder: string): LobbyLogs {
  /** It may move while it is read: then it is read where it is by now. */
  async function read(lobby_id: string, ask: (folder: string) => Promise<LogPart>): Promise<LogPart> {
    const folder = folderOfLobby(lobbies_folder, lobby_id)
    const part = await ask(folder)
    return existsSync(folder) ? part : ask(folderOfLobby(lobbies_folder, lobby_id))
  }

  const after: LobbyLogs['after'] = (lobby_id, stream, place, lines_max) =>
    read(lobby_id, (folder) => linesAfter(folder, stream, place, lines_max))

  return {
    last: (lobby_id, stream, lines_max) => read(lobby_id, (folder) => lastLines(folder, stream, lines_max)),
    after,
    async *all(lobby_id, stream, bytes_max) {
      let place = LOG_START
      for (let bytes = 0; bytes < bytes_max; ) {
        const { lines, end } = await after(lobby_id, stream, place, LINES_AT_ONCE)
        if (lines.length === 0) return
        yield lines
        place = end
        bytes += lines.reduce((sum, line) => sum + line.bytes.length, lines.length)
      }
    },
    async hasMore(lobby_id, stream, { file, offset }) {
      const folder = folderOfLobby(lobbies_folder, lobby_id)
      const size = statSync(logFile(folder, stream, Math.max(1, file)), { throwIfNoEntry: false })?.size
      // The file may also be gone, and others be there.
      return size === undefined
        ? file > 0 && existsSync(folder)
        : size > offset || existsSync(logFile(folder, stream, file + 1))
    },
    isOpen: async (lobby_id, stream) => existsSync(join(folderOfLobby(lobbies_folder, lobby_id), stream)),
    metrics: (lobby_id) => readMetrics(folderOfLobby(lobbies_folder, lobby_id)),
  }
}
