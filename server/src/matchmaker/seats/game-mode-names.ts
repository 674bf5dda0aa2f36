// How a game mode is named: requests take its name or its id; the rest of the matchmaker knows names only.
import { gameModeId } from '../../ids.ts'
import type { NamespaceRecord } from '../watch/namespaces.ts'

export type GameModeNames = { game_mode_id: string; game_mode_name_id: string }

export function gameModeNames(game_id: string, name: string): GameModeNames {
  return { game_mode_id: gameModeId(game_id, name), game_mode_name_id: name }
}

/** Returns names of game modes of the namespace's version. What is neither a name nor an id stays as it is. */
export function resolveGameModes({ game_id, game_modes }: NamespaceRecord, given: readonly string[]): string[] {
  if (given.every((name) => game_modes.has(name))) return [...given]
  const by_id = new Map([...game_modes.keys()].map((name) => [gameModeId(game_id, name), name]))
  return given.map((name) => (game_modes.has(name) ? name : (by_id.get(name) ?? name)))
}
