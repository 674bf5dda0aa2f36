// The game whose page is open.
import type { GroupRole, getGameById, ResponseOf } from '@musterhost/contract'
import { createContext, use } from 'react'
import type { Described } from '../../api/describe.ts'
import { mayCall } from '../../shell/person.tsx'

export type Game = ResponseOf<typeof getGameById>['game']
export type GameNamespace = Game['namespaces'][number]
export type GameVersion = Game['versions'][number]

export type OpenGame = {
  game: Game
  /** Role of the person in the group of the game. */
  role: GroupRole | null
}

export const GameContext = createContext<OpenGame | null>(null)

export function useGame(): OpenGame {
  const open = use(GameContext)
  if (open === null) throw new Error('This component belongs to the page of a game.')
  return open
}

/** Whether the person may call an operation on this game. Buttons that would be refused are not shown. */
export function useMay(): (operation: Pick<Described, 'role'>) => boolean {
  const { role } = useGame()
  return (operation) => mayCall(role, operation)
}

/** The name of a version: its own, or its id when the game no longer has it. */
export function versionName(game: Game, version_id: string): string {
  return game.versions.find((version) => version.version_id === version_id)?.display_name ?? version_id
}
