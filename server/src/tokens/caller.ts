// Who calls, as far as the token (or the Origin) proved it. Made by http/auth.ts, read by the rooms.
import type { GroupRole } from '@musterhost/contract'
import type { ClaimedPort } from './keys.ts'

export type Caller =
  | { kind: 'anyone' }
  /** `user_id`: the user who has logged in with an access token and calls with the session. */
  | { kind: 'admin'; name: string; user_id: string | null; session_id?: string }
  /** `role`: the role that the operation requires (contract: Operation.role). The user's own is looked up later. */
  | { kind: 'user'; user_id: string; role: GroupRole | null; session_id?: string }
  | { kind: 'cloud'; game_id: string }
  /** `identity_id`: the player, where the identity's token was sent. */
  | { kind: 'namespace'; namespace_id: string; identity_id: string | null }
  | { kind: 'identity'; identity_id: string; namespace_id: string }
  | { kind: 'development'; namespace_id: string; hostname: string; ports: readonly ClaimedPort[] }
  | { kind: 'lobby'; lobby_id: string; namespace_id: string }

export type CallerOf<K extends Caller['kind']> = Extract<Caller, { kind: K }>

/** The person behind a call; null when there is none. */
export function userOf(caller: Caller): string | null {
  return caller.kind === 'user' || caller.kind === 'admin' ? caller.user_id : null
}
