// The namespace whose page is open.
import type { getGameNamespaceById, ResponseOf } from '@musterhost/contract'
import { createContext, use } from 'react'
import { type OpenGame, useGame } from '../game/game.ts'

export type Namespace = ResponseOf<typeof getGameNamespaceById>['namespace']

export const NamespaceContext = createContext<Namespace | null>(null)

/** The open game and namespace, and the parameters that most operations of a namespace take. */
export function useNamespace(): OpenGame & {
  namespace: Namespace
  params: { game_id: string; namespace_id: string }
} {
  const open = useGame()
  const namespace = use(NamespaceContext)
  if (namespace === null) throw new Error('This component belongs to the page of a namespace.')
  return { ...open, namespace, params: { game_id: open.game.game_id, namespace_id: namespace.namespace_id } }
}
