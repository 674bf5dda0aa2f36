// The driver of a data folder. A driver does not see the lobbies of another one, so the choice changes only while no lobby
// of this folder runs.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { StartError } from '../../config/start-error.ts'
import { folderOfLobby, isLobbyId } from '../../lobby-logs/local.ts'
import { platformFolder, unfinishedFolder } from '../folders/names.ts'
import type { Driver } from './driver.ts'
import { readEnded } from './lobby-folder.ts'

/** A folder of an older release has no such file. */
const FIRST_DRIVER = 'process'

/** Called before a driver is opened. Throws a StartError while lobbies of another driver are not over. */
export function useDriver(data_dir: string, name: Driver['name']): void {
  const lobbies_folder = resolve(data_dir, 'lobbies')
  const file = join(platformFolder(lobbies_folder), 'driver')
  const former = existsSync(file) ? readFileSync(file, 'utf8').trim() : FIRST_DRIVER
  if (former === name && existsSync(file)) return
  const list = unfinishedFolder(lobbies_folder)
  const names = existsSync(list) ? readdirSync(list).filter(isLobbyId) : []
  const count = names.filter((lobby_id) => isOpen(folderOfLobby(lobbies_folder, lobby_id))).length
  if (former !== name && count > 0) {
    throw new StartError(
      `MUSTER_DRIVER is ${name}, and ${count} lobbies of the ${former} driver are not over. Start with MUSTER_DRIVER=${former}, end them, then change it.`,
    )
  }
  mkdirSync(platformFolder(lobbies_folder), { recursive: true })
  writeFileSync(file, `${name}\n`, { mode: 0o600 })
}

const isOpen = (folder: string): boolean => existsSync(folder) && readEnded(folder) === null
