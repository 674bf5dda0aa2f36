// How responses name a game mode: by its name and by its id.
import { gameModeId } from '../../ids.ts'

export type GameModeNames = { game_mode_id: string; game_mode_name_id: string }

export function gameModeNames(game_id: string, name: string): GameModeNames {
  return { game_mode_id: gameModeId(game_id, name), game_mode_name_id: name }
}
