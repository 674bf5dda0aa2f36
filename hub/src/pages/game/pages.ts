// The pages of a game, below /games/GAME_ID.
import type { PageEntry } from '../../shell/page-entry.ts'

export const gamePages: readonly PageEntry[] = [{ path: '/', load: () => import('./overview.tsx') }]
