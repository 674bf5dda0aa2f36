// The pages for administrators, below /platform.
import type { PageEntry } from '../../shell/page-entry.ts'

export const platformPages: readonly PageEntry[] = [
  { path: '/', load: () => import('./health.tsx') },
  { path: '/audit', load: () => import('../audit/platform-audit.tsx') },
  { path: '/nodes', load: () => import('./nodes.tsx') },
  { path: '/regions', load: () => import('./regions.tsx') },
  { path: '/groups', load: () => import('./groups.tsx') },
  { path: '/people', load: () => import('./people.tsx') },
  { path: '/sign-in', load: () => import('./sign-in-providers.tsx') },
  { path: '/backups', load: () => import('./backups.tsx') },
  { path: '/jobs', load: () => import('./jobs.tsx') },
  { path: '/notices', load: () => import('../notices/platform-notices.tsx') },
  { path: '/settings', load: () => import('./settings.tsx') },
]
