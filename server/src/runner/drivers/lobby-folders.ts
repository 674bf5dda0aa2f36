// The folders of a driver's lobbies, and what the platform adds to their logs. Every driver has the same.
import { appendFileSync, existsSync, mkdirSync } from 'node:fs'
import type { Logger } from 'pino'
import { type LogLine, type LogStream, logFile, newestFile } from '../../lobby-logs/files.ts'
import { folderOfLobby } from '../../lobby-logs/local.ts'
import { lastLines } from '../../lobby-logs/read.ts'
import { openUnfinished, type UnfinishedLobbies } from '../folders/unfinished.ts'
import { platformLine } from '../logs/lines.ts'

export type LobbyFoldersOptions = {
  now: () => number
  log: Logger
  /** Mode of a lobby's folder. Others may enter the folder where a lobby is another user of this machine. */
  mode: number
}

export class LobbyFolders {
  readonly unfinished: UnfinishedLobbies
  readonly #lobbies_folder: string
  readonly #options: LobbyFoldersOptions

  constructor(lobbies_folder: string, options: LobbyFoldersOptions) {
    this.unfinished = openUnfinished(lobbies_folder)
    this.#lobbies_folder = lobbies_folder
    this.#options = options
  }

  of(lobby_id: string): string {
    return folderOfLobby(this.#lobbies_folder, lobby_id)
  }

  /** Throws when the folder exists. */
  make(lobby_id: string): string {
    const folder = this.of(lobby_id)
    if (!existsSync(folder)) this.unfinished.add(lobby_id)
    mkdirSync(folder, { mode: this.#options.mode })
    return folder
  }

  /** Appends a line of the platform to the log. */
  note(lobby_id: string, text: string): void {
    const folder = this.of(lobby_id)
    if (!existsSync(folder)) this.make(lobby_id)
    const file = logFile(folder, 'stderr', newestFile(folder, 'stderr'))
    appendFileSync(file, platformLine(text, this.#options.now()), { mode: 0o600 })
  }

  /** The same after the server has the line: a failure is no failure of the write. */
  noteInput(lobby_id: string, text: string): void {
    try {
      this.note(lobby_id, text)
    } catch (error) {
      this.#options.log.warn({ err: error, lobby_id }, 'input of a lobby could not be noted in its log')
    }
  }

  async lines(lobby_id: string, stream: LogStream, lines_max: number): Promise<LogLine[]> {
    return (await lastLines(this.of(lobby_id), stream, lines_max)).lines
  }
}
