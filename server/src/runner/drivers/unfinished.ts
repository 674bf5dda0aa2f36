// The lobbies that run, or have ended and are not cleaned up yet: an empty file for each in `<data>/lobbies/.unfinished/`.
// Thousands of folders of ended lobbies are kept; this list finds the living ones without reading all of them.
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isLobbyId } from '../../lobby-logs/local.ts'

export type UnfinishedLobbies = {
  /** Called before the lobby's folder is made. */
  add(lobby_id: string): void
  remove(lobby_id: string): void
  ids(): string[]
}

/** Called before any other access to the lobbies: it migrates the layout of an older release. */
export function openUnfinished(lobbies_folder: string): UnfinishedLobbies {
  const own_folder = unfinishedFolder(lobbies_folder)
  const ids = (): string[] => readdirSync(own_folder).filter(isLobbyId)
  const add = (lobby_id: string): void => writeFileSync(join(own_folder, lobby_id), '', { mode: 0o600 })
  migrate(lobbies_folder, own_folder)
  return { add, remove: (lobby_id) => rmSync(join(own_folder, lobby_id), { force: true }), ids }
}

export const unfinishedFolder = (lobbies_folder: string): string => join(lobbies_folder, '.unfinished')

/**
 * An older release kept the folders of running lobbies in `lobbies`, and moved them to `.ended` at their end. So every
 * folder in `lobbies` is first listed as unfinished, and then the ended ones are moved back. After a crash in between, it
 * is repeated.
 */
function migrate(lobbies_folder: string, own_folder: string): void {
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
