// Rows of the audit log: who (actor), from where, which operation, where (scope), its outcome, and what changed.
import type { AuditChange, AuditOutcome } from '@musterhost/contract'
import type { Caller } from '../tokens/caller.ts'
import type { Keys, Token } from '../tokens/keys.ts'

/** What an event is about. A missing group or game follows from the game or namespace when the row is written. */
export type Scope = { group_id?: string; game_id?: string; namespace_id?: string }

export type Actor = { actor_kind: string; user_id?: string; actor_name?: string; token_id?: string }

/** A request whose effect the audit log records. */
export type AuditedRequest = {
  operation: string
  /** `platform`: no request, but a job. */
  caller: Caller | 'platform'
  /** The Authorization header as it came. */
  authorization: string | undefined
  client_ip: string
  ray_id: string
}

export type Event = Scope &
  Actor & {
    event_id: string
    create_ts: Date
    client_ip: string
    ray_id: string
    operation: string
    outcome: AuditOutcome
    code?: string
    changes: readonly AuditChange[]
    dropped_count: number
  }

/** Inserts the events of $1, a JSON array. */
export const INSERT_SQL = `
  insert into audit_events
    (event_id, create_ts, group_id, game_id, namespace_id, actor_kind, user_id, actor_name, token_id, client_ip, ray_id,
     operation, outcome, code, changes, dropped_count)
  select event_id, e.create_ts, coalesce(group_id, developer_group_id), coalesce(e.game_id, n.game_id), e.namespace_id,
    actor_kind, user_id, actor_name, token_id, client_ip, ray_id, operation, outcome, code, changes, dropped_count
  from jsonb_to_recordset($1::jsonb) as e
    (event_id uuid, create_ts timestamptz, group_id uuid, game_id uuid, namespace_id uuid, actor_kind text, user_id uuid,
     actor_name text, token_id uuid, client_ip text, ray_id uuid, operation text, outcome text, code text, changes jsonb,
     dropped_count integer)
  left join namespaces n on n.namespace_id = e.namespace_id and e.game_id is null
  left join games g on g.game_id = coalesce(e.game_id, n.game_id)`

const BEARER = /^Bearer (\S+)$/i

/** The claims of a token, also of one that has expired; null when there is no genuine token. */
export function tokenOf(keys: Keys, authorization: string | undefined): Token | null {
  const text = BEARER.exec(authorization ?? '')?.[1]
  if (text === undefined) return null
  try {
    // At this time no token has expired.
    return keys.verify(text, 0)
  } catch {
    return null
  }
}

export function actorOf(caller: Caller | 'platform', token: Token | null): Actor {
  if (caller === 'platform') return { actor_kind: 'platform' }
  const user_id = 'user_id' in caller ? caller.user_id : null
  return {
    actor_kind: caller.kind,
    ...(user_id === null ? {} : { user_id }),
    ...('name' in caller ? { actor_name: caller.name } : {}),
    ...(token === null ? {} : { token_id: tokenIdOf(token) }),
  }
}

/** The caller that a token names, for a request that was refused before its caller was known. */
export function actorOfToken(token: Token | null): Actor {
  if (token === null) return { actor_kind: 'anyone' }
  return {
    actor_kind: CALLER_KINDS[token.kind],
    ...(token.kind === 'user' ? { user_id: token.user_id } : {}),
    ...(token.kind === 'access' ? { actor_name: token.name } : {}),
    token_id: tokenIdOf(token),
  }
}

/** The scope that a token stands for. */
export function scopeOfToken(token: Token | null): Scope {
  if (token === null) return {}
  if ('game_id' in token) return { game_id: token.game_id }
  return 'namespace_id' in token ? { namespace_id: token.namespace_id } : {}
}

const CALLER_KINDS = {
  access: 'admin',
  user: 'user',
  device: 'device',
  cloud: 'cloud',
  public: 'namespace',
  lobby: 'lobby',
  player: 'player',
  development: 'development',
  dev_player: 'player',
  game_user: 'identity',
} as const satisfies Record<Token['kind'], string>

/** A user token is replaced every few minutes; the session stays. */
function tokenIdOf(token: Token): string {
  return token.kind === 'user' ? token.session_id : token.token_id
}
