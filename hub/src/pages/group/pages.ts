// The pages of a group, below /groups/GROUP_ID.
import type { PageEntry } from '../../shell/page-entry.ts'

export const groupPages: readonly PageEntry[] = [
  { path: '/', load: () => import('./members.tsx') },
  { path: '/audit', load: () => import('../audit/group-audit.tsx') },
  { path: '/notices', load: () => import('../notices/group-notices.tsx') },
  { path: '/billing', load: () => import('../numbers/billing.tsx') },
]
