// What the runner and the logger agree on: where the logger is found, and what it is told.
//
//   <lobbies>/.platform/logger-3        a named pipe: one line a message; another name whenever the files that a logger
//                                       reads or writes (lobby-logs/local.ts, lobby-logs/files.ts) change, so that one of an older
//                                       platform is not taken for it
//   <lobbies>/.platform/logger.pid      the logger that is in charge
//   <lobbies>/.platform/logger.err      what went wrong in it
import { join } from 'node:path'

export const platformFolder = (lobbies_folder: string): string => join(lobbies_folder, '.platform')
export const controlPipe = (lobbies_folder: string): string => join(platformFolder(lobbies_folder), 'logger-3')
export const loggerPidFile = (lobbies_folder: string): string => join(platformFolder(lobbies_folder), 'logger.pid')
export const loggerErrorFile = (lobbies_folder: string): string => join(platformFolder(lobbies_folder), 'logger.err')
