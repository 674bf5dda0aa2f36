// Which lobbies run, or have ended and left something to be done: an empty file for each in `<data>/lobbies/.unfinished/`.
// Folders of lobbies stay after the end, by the thousand; what runs is found without looking at all of them.
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isLobbyId } from '../../lobby-logs/local.ts'

export type UnfinishedLobbies = {
  /** To be called before the lobby's folder is made. */
  add(lobby_id: string): void
  remove(lobby_id: string): void
  ids(): string[]
}

/** Before anything else looks at the lobbies: it takes over what an older platform left. */
export function openUnfinished(lobbies_folder: string): UnfinishedLobbies {
  const own_folder = unfinishedFolder(lobbies_folder)
  const ids = (): string[] => readdirSync(own_folder).filter(isLobbyId)
  const add = (lobby_id: string): void => writeFileSync(join(own_folder, lobby_id), '', { mode: 0o600 })
  takeOver(lobbies_folder, own_folder)
  return { add, remove: (lobby_id) => rmSync(join(own_folder, lobby_id), { force: true }), ids }
}

export const unfinishedFolder = (lobbies_folder: string): string => join(lobbies_folder, '.unfinished')

/**
 * An older platform had the folders of what ran in `lobbies`, and moved them to `.ended` at the end. So all that is in
 * `lobbies` is unfinished; only then the others are moved back. Broken off anywhere it is done again.
 */
function takeOver(lobbies_folder: string, own_folder: string): void {
  if (!existsSync(own_folder)) {
    const new_folder = `${own_folder}.new`
    rmSync(new_folder, { recursive: true, force: true })
    mkdirSync(new_folder, { mode: 0o700 })
    for (const lobby_id of readdirSync(lobbies_folder).filter(isLobbyId)) {
      writeFileSync(join(new_folder, lobby_id), '', { mode: 0o600 })
    }
    renameSync(new_folder, own_folder)
  }
  const ended_folder = join(lobbies_folder, '.ended')
  if (!existsSync(ended_folder)) return
  for (const lobby_id of readdirSync(ended_folder).filter(isLobbyId)) {
    renameSync(join(ended_folder, lobby_id), join(lobbies_folder, lobby_id))
  }
  rmSync(ended_folder, { recursive: true })
}
