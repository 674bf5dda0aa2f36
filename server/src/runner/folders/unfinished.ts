// The lobbies that run, or have ended and are not cleaned up yet: an empty file for each in `<data>/lobbies/.unfinished/`.
// Thousands of folders of ended lobbies are kept; this list finds the living ones without reading all of them.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isLobbyId } from '../../lobby-logs/local.ts'
import { unfinishedFolder } from './names.ts'

export type UnfinishedLobbies = {
  /** Called before the lobby's folder is made. */
  add(lobby_id: string): void
  remove(lobby_id: string): void
  ids(): string[]
}

export function openUnfinished(lobbies_folder: string): UnfinishedLobbies {
  const own_folder = unfinishedFolder(lobbies_folder)
  mkdirSync(own_folder, { recursive: true, mode: 0o700 })
  return {
    add: (lobby_id) => writeFileSync(join(own_folder, lobby_id), '', { mode: 0o600 }),
    remove: (lobby_id) => rmSync(join(own_folder, lobby_id), { force: true }),
    ids: () => readdirSync(own_folder).filter(isLobbyId),
  }
}
