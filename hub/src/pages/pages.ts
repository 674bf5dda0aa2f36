// The pages outside of games and of the platform's administration.
import type { PageEntry } from '../shell/page-entry.ts'

export const topPages: readonly PageEntry[] = [
  { path: '/', load: () => import('./home/home.tsx') },
  { path: '/account', load: () => import('./account/account.tsx') },
]
