// What a game mode asks of who plays, before anything else is looked at. A game's backend answers for its players: it is
// asked for no identity.
import { ApiError, type GameModeConfig } from '@muster/contract'
import type { Requester } from './requester.ts'

/** Throws MATCHMAKER_IDENTITY_REQUIRED or MATCHMAKER_REGISTRATION_REQUIRED: the strictest of the game modes decides. */
export function requireIdentity(
  { identity_id, is_backend }: Pick<Requester, 'identity_id' | 'is_backend'>,
  action: keyof GameModeConfig['identity_requirement'],
  modes: readonly (GameModeConfig | undefined)[],
): void {
  if (is_backend) return
  const asked = new Set(modes.map((mode) => mode?.identity_requirement[action] ?? 'none'))
  if (identity_id === null && (asked.has('guest') || asked.has('registered'))) {
    throw new ApiError('MATCHMAKER_IDENTITY_REQUIRED')
  }
  // Every identity is a guest's.
  if (asked.has('registered')) throw new ApiError('MATCHMAKER_REGISTRATION_REQUIRED')
}
