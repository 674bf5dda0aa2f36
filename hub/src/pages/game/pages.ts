// The pages of a game, below /games/GAME_ID.
import type { PageEntry } from '../../shell/page-entry.ts'

export const gamePages: readonly PageEntry[] = [
  { path: '/', load: () => import('./overview.tsx') },
  { path: '/rays', load: () => import('../insight/rays.tsx') },
  { path: '/rays/$ray_id', load: () => import('../insight/ray.tsx') },
  { path: '/search', load: () => import('../insight/search.tsx') },
]
