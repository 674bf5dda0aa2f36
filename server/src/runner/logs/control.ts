// The files by which the runner finds the logger.
//
//   <lobbies>/.platform/logger-3        the control pipe: one message a line. Its number changes with the files that a
//                                       logger reads or writes (lobby-logs/local.ts, lobby-logs/files.ts), so that a logger of an older
//                                       release is not used
//   <lobbies>/.platform/logger.pid      the process id of the current logger
//   <lobbies>/.platform/logger.err      its standard error
import { join } from 'node:path'
import { platformFolder } from '../folders/names.ts'

export const controlPipe = (lobbies_folder: string): string => join(platformFolder(lobbies_folder), 'logger-3')
export const loggerPidFile = (lobbies_folder: string): string => join(platformFolder(lobbies_folder), 'logger.pid')
export const loggerErrorFile = (lobbies_folder: string): string => join(platformFolder(lobbies_folder), 'logger.err')
