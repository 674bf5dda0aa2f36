// What can happen in a namespace. A Change is what the journal holds: plain JSON, complete in itself, never changed once
// it is released; what was added later is absent in older rows. Times are milliseconds since the epoch.

export type Publicity = 'public' | 'private'

/** A port of a lobby that players reach at a number of the edge's. */
export type EdgePort = { name: string; transport: 'tcp' | 'udp'; port: number }

/** What a lobby is from its first moment on. */
export type LobbyRecord = {
  lobby_id: string
  version_id: string
  game_mode: string
  region: string
  /** What it may use: its tier, as it was when the lobby was created. */
  tier: string
  cpu_cores: number
  memory_mb: number
  /** Its own while it lives and for a while after (port-pool.ts). */
  edge_ports: readonly EdgePort[]
  publicity: Publicity
  is_custom: boolean
  /** The identity that created it, if one did. */
  creator_identity_id: string | null
  /** Of the request that started it; null: no player asked for it. */
  ray_id: string | null
  max_players_normal: number
  max_players_direct: number
  max_players_party: number
  tags: Readonly<Record<string, string>>
  /** JSON text. */
  lobby_config: string | null
  create_ms: number
  ready_deadline_ms: number
  /** Durations, from the game mode as it was when the lobby was created. */
  player_deadline_ms: number
  idle_grace_ms: number
}

export type PlayerRecord = {
  player_id: string
  lobby_id: string
  /** The client bucket that limits count by. */
  client: string
  create_ms: number
  /** Before it a reserved player must connect and a connected one leave. */
  deadline_ms: number
  /** Action, caller and Idempotency-Key of the request that took the seat. */
  seat_key: string | null
  /** Who plays, where he has said so. */
  identity_id: string | null
  /** The seats of a party are taken together: its leader's player, which is in all of them. Null: he came alone. */
  leader_player_id: string | null
}

/** Who is in a party, and from where he came when he joined it. */
export type PartyMember = {
  identity_id: string
  address: string
  /** The client bucket of that address. */
  client: string
  user_agent: string | null
  join_ms: number
}

/** Players who are seated together. As a whole in every change of it: it is small. */
export type PartyRecord = {
  party_id: string
  /** Whoever has it may join. */
  code: string
  leader_identity_id: string
  /** In the order in which they came. */
  members: readonly PartyMember[]
  create_ms: number
  expire_ms: number
  /** Counts its changes. */
  revision: number
}

export type StopReason =
  | 'never_ready'
  | 'idle'
  /** Nobody was in it, and another version is deployed. */
  | 'outdated'
  | 'exited'
  /** A developer stopped it. */
  | 'requested'

export type RemoveReason =
  | 'disconnected'
  | 'expired'
  | 'too_long'
  | 'lobby_stopped'
  /** The request that took the seat was not answered: its lobby did not start in time, or the caller hung up. */
  | 'unanswered'
  /** A developer took the player out. */
  | 'requested'

/**
 * What a seat is given under, beside the change and not in the journal (JSON knows no symbols): limits change, so what is
 * read from there is not held to them again.
 */
export const LIMITS = Symbol('limits')
/** `lobby_count_max` null: no lobby was opened for it. */
export type SeatLimits = { client_players_max: number; lobby_count_max: number | null }

export type Change =
  | { kind: 'lobby_created'; lobby: LobbyRecord }
  | { kind: 'lobby_ready'; lobby_id: string; ms: number }
  | { kind: 'lobby_closed'; lobby_id: string; is_closed: boolean }
  /** Whether its server does not answer, as its runner sees it. */
  | { kind: 'lobby_stalled'; lobby_id: string; ms: number; is_stalled: boolean }
  | { kind: 'lobby_state'; lobby_id: string; state: string | null }
  /** `open_connections`: as the edges reported last; absent: none. */
  | { kind: 'lobby_stopped'; lobby_id: string; ms: number; reason: StopReason; open_connections?: number }
  | { kind: 'player_reserved'; player: PlayerRecord; [LIMITS]?: SeatLimits }
  | { kind: 'player_connected'; player_id: string; ms: number; deadline_ms: number; connect_key: string | null }
  /** The connection is gone, and the seat waits until then for the same token. */
  | { kind: 'player_dropped'; player_id: string; deadline_ms: number; disconnect_key: string | null }
  /** `open_connections`: the same, of the lobby of a seat that expired. */
  | {
      kind: 'player_removed'
      player_id: string
      ms: number
      reason: RemoveReason
      disconnect_key: string | null
      open_connections?: number
    }
  | { kind: 'version_draining'; version_id: string; is_draining: boolean }
  /** The client has solved a captcha; what it counts for ends at the latest then. */
  | { kind: 'client_verified'; client: string; ms: number; expire_ms: number }
  /** A request of a client that had solved one before. */
  | { kind: 'client_counted'; client: string }
  /** The party is like this from now on; `left`: who was in it until now. */
  | { kind: 'party_put'; party: PartyRecord; left: string | null }
  | { kind: 'party_ended'; party_id: string; ms: number }
