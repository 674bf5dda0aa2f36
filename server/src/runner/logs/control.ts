// What the runner and the logger agree on: where the logger is found, and what it is told.
//
//   <lobbies>/.platform/logger          a named pipe: one line a message
//   <lobbies>/.platform/logger.pid      the logger that is in charge
//   <lobbies>/.platform/logger.err      what went wrong in it
import { join } from 'node:path'

export const platformFolder = (lobbies_folder: string): string => join(lobbies_folder, '.platform')
export const controlPipe = (lobbies_folder: string): string => join(platformFolder(lobbies_folder), 'logger')
export const loggerPidFile = (lobbies_folder: string): string => join(platformFolder(lobbies_folder), 'logger.pid')
export const loggerErrorFile = (lobbies_folder: string): string => join(platformFolder(lobbies_folder), 'logger.err')

const LOBBY_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Ids become names of folders: nothing else ever does. */
export function isLobbyId(text: string): boolean {
  return LOBBY_ID.test(text)
}
