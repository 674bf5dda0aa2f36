// The pages for administrators, below /platform.
import type { PageEntry } from '../../shell/page-entry.ts'

export const platformPages: readonly PageEntry[] = [
  { path: '/', load: () => import('./health.tsx') },
  { path: '/audit', load: () => import('../insight/platform-audit.tsx') },
]
