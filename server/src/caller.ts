// Who calls, as far as the token (or the Origin) proved it. Made by http/auth.ts, read by the rooms.

import type { ClaimedPort } from './tokens/keys.ts'

export type Caller =
  | { kind: 'anyone' }
  | { kind: 'admin'; name: string }
  | { kind: 'cloud'; game_id: string }
  | { kind: 'namespace'; namespace_id: string }
  | { kind: 'development'; namespace_id: string; hostname: string; ports: readonly ClaimedPort[] }
  | { kind: 'lobby'; lobby_id: string; namespace_id: string }

export type CallerOf<K extends Caller['kind']> = Extract<Caller, { kind: K }>
