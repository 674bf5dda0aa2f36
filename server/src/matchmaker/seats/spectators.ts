// Requests for the seat of a spectator.
import { ApiError, type BodyOf, type findLobby, type GameModeConfig, validationError } from '@musterhost/contract'

type Asked = Pick<BodyOf<typeof findLobby>, 'role' | 'party' | 'attributes' | 'member_attributes'>

/** What a request may not have beside the role of a spectator, and why. */
const FOR_PLAYERS_ONLY = {
  party: 'A party has no seats of spectators',
  attributes: 'Rules for matches choose players, and a spectator gets its seat without them',
  member_attributes: 'Rules for matches choose players, and a spectator gets its seat without them',
} as const

/** Whether the request is for a seat of a spectator. Throws VALIDATION_ERROR for a member that is for players only. */
export function isForSpectator(asked: Asked): boolean {
  if (asked.role !== 'spectator') return false
  const faults = Object.entries(FOR_PLAYERS_ONLY).filter(([name]) => (asked[name as keyof Asked] ?? false) !== false)
  if (faults.length === 0) return true
  throw validationError(
    faults.map(([name, why]) => ({
      path: [name],
      reason: 'not_allowed',
      message: `${why}: leave out ${name}, or the role spectator.`,
    })),
  )
}

/** Throws MATCHMAKER_SPECTATORS_DISABLED when none of the game modes has spectators. An unknown one is refused elsewhere. */
export function requireSpectators(modes: readonly (GameModeConfig | undefined)[]): void {
  if (modes.every((mode) => mode?.max_spectators === 0)) throw new ApiError('MATCHMAKER_SPECTATORS_DISABLED')
}
