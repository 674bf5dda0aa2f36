// The pages of a namespace, below /games/GAME_ID/namespaces/NAMESPACE_ID.
import type { PageEntry } from '../../shell/page-entry.ts'

export const namespacePages: readonly PageEntry[] = [
  { path: '/', load: () => import('./deploys.tsx') },
  { path: '/lobbies/history', load: () => import('../lobbies/history.tsx') },
  { path: '/lobbies/$lobby_id', load: () => import('../lobbies/lobby.tsx') },
  { path: '/lobbies', load: () => import('../lobbies/live.tsx') },
  { path: '/settings', load: () => import('./settings.tsx') },
  { path: '/matchmaker', load: () => import('../insight/matchmaker.tsx') },
  { path: '/playground', load: () => import('../insight/playground.tsx') },
  { path: '/analytics', load: () => import('../insight/analytics.tsx') },
  { path: '/kv', load: () => import('../insight/kv.tsx') },
]
