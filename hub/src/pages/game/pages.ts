// The pages of a game, below /games/GAME_ID.
import type { PageEntry } from '../../shell/page-entry.ts'

export const gamePages: readonly PageEntry[] = [
  { path: '/', load: () => import('./overview.tsx') },
  { path: '/rays', load: () => import('../rays/rays.tsx') },
  { path: '/rays/$ray_id', load: () => import('../rays/ray.tsx') },
  { path: '/search', load: () => import('../rays/search.tsx') },
  { path: '/versions', load: () => import('./versions.tsx') },
  { path: '/versions/new', load: () => import('../config/new-version.tsx') },
  { path: '/versions/$version_id', load: () => import('./version.tsx') },
  { path: '/builds', load: () => import('../uploads/builds.tsx') },
  { path: '/sites', load: () => import('../uploads/sites.tsx') },
  { path: '/tokens', load: () => import('./tokens.tsx') },
  { path: '/secrets', load: () => import('./secrets.tsx') },
  { path: '/schedules', load: () => import('../schedules/game-schedules.tsx') },
  { path: '/notices', load: () => import('../notices/game-notices.tsx') },
  { path: '/status', load: () => import('../status/status-page.tsx') },
  { path: '/settings', load: () => import('./settings.tsx') },
]
