// The pages of a namespace, below /games/GAME_ID/namespaces/NAMESPACE_ID.
import type { PageEntry } from '../../shell/page-entry.ts'

export const namespacePages: readonly PageEntry[] = [
  { path: '/', load: () => import('./deploys.tsx') },
  { path: '/lobbies/history', load: () => import('../lobbies/history.tsx') },
  { path: '/lobbies/$lobby_id', load: () => import('../lobbies/lobby.tsx') },
  { path: '/lobbies', load: () => import('../lobbies/live.tsx') },
  { path: '/settings', load: () => import('./settings.tsx') },
  { path: '/matchmaker', load: () => import('../numbers/matchmaker.tsx') },
  { path: '/playground', load: () => import('../playground/playground.tsx') },
  { path: '/analytics', load: () => import('../numbers/analytics.tsx') },
  { path: '/ratings', load: () => import('../ratings/ratings.tsx') },
  { path: '/kv', load: () => import('../kv/kv.tsx') },
]
