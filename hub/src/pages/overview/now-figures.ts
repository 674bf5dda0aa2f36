// Players and lobbies of games or namespaces now, as main figures.
import type { Figure } from '../../parts/figures.tsx'
import { count } from '../../parts/numbers.ts'

export function nowFigures(records: readonly { player_count: number; lobby_count: number }[]): Figure[] {
  return [
    { name: 'Players now', value: count(records.reduce((sum, { player_count }) => sum + player_count, 0)) },
    { name: 'Lobbies now', value: count(records.reduce((sum, { lobby_count }) => sum + lobby_count, 0)) },
  ]
}
