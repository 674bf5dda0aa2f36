// The pages outside of games and of the platform's administration.
import type { PageEntry } from '../shell/page-entry.ts'

export const topPages: readonly PageEntry[] = [
  { path: '/', load: () => import('./home/home.tsx') },
  { path: '/invites/$code', load: () => import('./group/invite.tsx') },
  { path: '/devices/link/$device_link_token', load: () => import('./devices/device-link.tsx') },
  { path: '/account', load: () => import('./account/account.tsx') },
]
