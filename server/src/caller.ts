// Who calls, as far as the token (or the Origin) proved it. Made by http/auth.ts, read by the rooms.

export type Caller =
  | { kind: 'anyone' }
  | { kind: 'admin'; name: string }
  | { kind: 'cloud'; game_id: string }
  | { kind: 'namespace'; namespace_id: string }
  | { kind: 'lobby'; lobby_id: string; namespace_id: string }

export type CallerOf<K extends Caller['kind']> = Extract<Caller, { kind: K }>
