// The folders of lobbies on this machine, and what is kept there of what they wrote and used.
//
//   <data>/lobbies/<lobby id>/           while it runs (runner/drivers/lobby-folder.ts), and for as long as the settings say
//                                        after its end (runner/logs/ended.ts)
//   <data>/lobbies/.output-pipes/        the named pipes that lobbies write into: nobody but the logger may read them
import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileNumbers, type LogStream, logFile } from './files.ts'
import type { LobbyLogs, LogPart } from './lobby-logs.ts'
import { readMetrics } from './lobby-metrics.ts'
import { type LinesRead, type LogPosition, lastLines, linesAfter } from './read.ts'

const LOBBY_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Ids become names of folders: nothing else ever does. */
export function isLobbyId(text: string): boolean {
  return LOBBY_ID.test(text)
}

/** The folder of a lobby, which need not be there. It stays where it is when the lobby ends. */
export function folderOfLobby(lobbies_folder: string, lobby_id: string): string {
  if (!isLobbyId(lobby_id)) throw new Error(`${JSON.stringify(lobby_id)} is not the id of a lobby.`)
  return join(lobbies_folder, lobby_id)
}

export const outputPipesFolder = (lobbies_folder: string): string => join(lobbies_folder, '.output-pipes')

/** The named pipe of a stream, by the lobby's folder. It is there while somebody may write into it, or it is not yet read. */
export function outputPipe(folder: string, stream: LogStream): string {
  return join(outputPipesFolder(dirname(folder)), `${basename(folder)}.${stream}`)
}

/** Where an older platform had it: lobbies that it started still write there. */
export const formerOutputPipe = (folder: string, stream: LogStream): string => join(folder, stream)

export function hasOutputPipe(folder: string, stream: LogStream): boolean {
  return existsSync(outputPipe(folder, stream)) || existsSync(formerOutputPipe(folder, stream))
}

export function createFolderLogs(lobbies_folder: string): LobbyLogs {
  async function read(
    lobby_id: string,
    stream: LogStream,
    ask: (folder: string) => Promise<LinesRead>,
  ): Promise<LogPart> {
    const folder = folderOfLobby(lobbies_folder, lobby_id)
    // Checked before the read: a log that is complete by then has no line that the read could miss.
    const is_open = hasOutputPipe(folder, stream)
    return { ...(await ask(folder)), is_open }
  }

  return {
    last: (lobby_id, stream, lines_max) => read(lobby_id, stream, (folder) => lastLines(folder, stream, lines_max)),
    after: (lobby_id, stream, position, lines_max) =>
      read(lobby_id, stream, async (folder) =>
        hasMore(folder, stream, position)
          ? linesAfter(folder, stream, position, lines_max)
          : { lines: [], end: position, is_gap: false },
      ),
    metrics: (lobby_id) => readMetrics(folderOfLobby(lobbies_folder, lobby_id)),
  }
}

/** Whether it is worth reading after a position. */
function hasMore(folder: string, stream: LogStream, { file, offset }: LogPosition): boolean {
  const size = statSync(logFile(folder, stream, Math.max(1, file)), { throwIfNoEntry: false })?.size
  if (size !== undefined) return size > offset || existsSync(logFile(folder, stream, file + 1))
  // It has not been written, or is gone, and others are there.
  return existsSync(folder) && fileNumbers(readdirSync(folder), stream).length > 0
}
