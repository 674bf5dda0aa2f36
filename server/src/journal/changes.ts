// What can happen in a namespace. A Change is an entry of the journal: plain JSON, complete, and never modified once it is
// released. Members that were added later are absent in older rows. Times are milliseconds since the epoch.

export type Publicity = 'public' | 'private'

/** A port of a lobby that players reach on a port of the edge. */
export type EdgePort = { name: string; transport: 'tcp' | 'udp'; port: number }

/** The members of a lobby that are fixed at its creation. */
export type LobbyRecord = {
  lobby_id: string
  version_id: string
  game_mode: string
  region: string
  /** Where it runs; null: any runner of the region may run it. */
  node_id: string | null
  /** The tier, as it was when the lobby was created. */
  tier: string
  cpu_cores: number
  memory_mb: number
  /** No other lobby gets them until a while after its end (matchmaker/shards/port-pool.ts). */
  edge_ports: readonly EdgePort[]
  publicity: Publicity
  is_custom: boolean
  /** The identity that created it, if one did. */
  creator_identity_id: string | null
  /** The ray of the request that started it; null: no player's request did. */
  ray_id: string | null
  max_players_normal: number
  max_players_direct: number
  max_players_party: number
  /** Absent: none. */
  max_spectators?: number
  tags: Readonly<Record<string, string>>
  /** JSON text. */
  lobby_config: string | null
  create_ms: number
  ready_deadline_ms: number
  /** Durations, from the game mode as it was when the lobby was created. */
  player_deadline_ms: number
  idle_grace_ms: number
  /** Time for which a player without a connection keeps the seat. Null or absent: the lobby's server checks the seats. */
  seat_hold_ms?: number | null
  /** Players join with it. Unique among the lobbies of the namespace. Null or absent: it has none. */
  code?: string | null
}

export type PlayerRecord = {
  player_id: string
  lobby_id: string
  /** The client key (an IPv4 address or an IPv6 /64), by which limits count. Rows of the journal have it under this name. */
  client: string
  create_ms: number
  /** A reserved player must connect before it, and a connected player must leave. */
  deadline_ms: number
  /** Action, caller and Idempotency-Key of the request that took the seat; null: the request had no key. */
  seat_key: string | null
  /** The player's identity; null: the request had none. */
  identity_id: string | null
  /** The seat of a spectator, which counts in no limit of players. Absent: of a player. */
  is_spectator?: boolean
  /** The leader's player, in every seat that was taken with a party. Null: without a party. */
  leader_player_id: string | null
  /** How the player came into the lobby by the rules of its game mode. Null or absent: without rules. */
  match?: PlayerMatch | null
}

/** What the rules of a game mode know of a player, by name. */
export type PlayerAttributes = Readonly<Record<string, number | string | readonly string[]>>

/** `ticket_id`: players with the same one came together. */
export type PlayerMatch = {
  ticket_id: string
  team: string | null
  attributes: PlayerAttributes
  /** Milliseconds by region. */
  latencies: Readonly<Record<string, number>> | null
}

/** A player of a request that waits for a match. `players_max`: the limit of its client when the request came. */
export type TicketPlayer = {
  player_id: string
  client: string
  players_max: number
  identity_id: string | null
  attributes: PlayerAttributes
}

/** A request that waits for a match: one player, or a party with its leader first. */
export type TicketRecord = {
  /** The player that the caller becomes, who also names the ticket. */
  player_id: string
  version_id: string
  game_mode: string
  tags: Readonly<Record<string, string>>
  /** Since when it waits. */
  create_ms: number
  seat_key: string | null
  is_party: boolean
  players: readonly TicketPlayer[]
  /** Acceptable regions, the best first. */
  regions: readonly string[]
  latencies: Readonly<Record<string, number>> | null
}

export type TicketEnd =
  | 'matched'
  /** The caller hung up, and did not repeat the call in time. */
  | 'withdrawn'
  /** The party has other members now. */
  | 'party_changed'
  /** Another version is deployed, or the version is drained. */
  | 'version_ended'

/** A member of a party, with its address at the time when it joined. */
export type PartyMember = {
  identity_id: string
  /** The client IP address, as `address` in the rows of the journal. */
  address: string
  /** The client key of that address, as `client` in those rows. */
  client: string
  user_agent: string | null
  join_ms: number
}

/** Players who get their seats together. Every change has the whole record, which is small. */
export type PartyRecord = {
  party_id: string
  /** A player with this code may join. */
  code: string
  leader_identity_id: string
  /** In the order in which they joined. */
  members: readonly PartyMember[]
  create_ms: number
  expire_ms: number
  /** The number of changes. */
  revision: number
}

export type StopReason =
  | 'never_ready'
  | 'idle'
  /** It was empty, and another version is deployed. */
  | 'outdated'
  | 'exited'
  /** A developer stopped it. */
  | 'requested'
  /** The node that ran it was away for too long. */
  | 'node_lost'
  /** The node that ran it was drained. */
  | 'node_drained'
  /** An administrator removed the node that ran it. */
  | 'node_removed'

export type RemoveReason =
  | 'disconnected'
  | 'expired'
  | 'too_long'
  | 'lobby_stopped'
  /** The request that took the seat got no response: its lobby did not start in time, or the caller hung up. */
  | 'unanswered'
  /** A developer removed the player. */
  | 'requested'

/**
 * The limits under which a seat was granted. They are not in the journal, because JSON has no symbols: limits change, so
 * changes that are read from the journal are not checked against them again.
 */
export const LIMITS = Symbol('limits')
/** `lobby_count_max` null: no lobby was opened for the seat. */
export type SeatLimits = { client_players_max: number; lobby_count_max: number | null }

export type Change =
  | { kind: 'lobby_created'; lobby: LobbyRecord }
  /** A runner has taken a lobby that had no node, or its node has a new name. */
  | { kind: 'lobby_placed'; lobby_id: string; node_id: string }
  | { kind: 'lobby_ready'; lobby_id: string; ms: number }
  | { kind: 'lobby_closed'; lobby_id: string; is_closed: boolean }
  /** The runner found that the lobby's server stopped responding, or responds again. */
  | { kind: 'lobby_stalled'; lobby_id: string; ms: number; is_stalled: boolean }
  | { kind: 'lobby_state'; lobby_id: string; state: string | null }
  /** What the lobby's server asked for. `keep_until_ms`: until then the lobby does not count as idle. Absent: unchanged. */
  | { kind: 'lobby_changed'; lobby_id: string; keep_until_ms?: number | null; tags?: Readonly<Record<string, string>> }
  /** `open_connections`: as the edges last reported; absent: none. */
  | { kind: 'lobby_stopped'; lobby_id: string; ms: number; reason: StopReason; open_connections?: number }
  | { kind: 'player_reserved'; player: PlayerRecord; [LIMITS]?: SeatLimits }
  | { kind: 'player_connected'; player_id: string; ms: number; deadline_ms: number; connect_key: string | null }
  /** The player's connection has closed; until `deadline_ms` the same token can connect again. */
  | { kind: 'player_dropped'; player_id: string; deadline_ms: number; disconnect_key: string | null }
  /** `open_connections`: of the lobby, for a seat that expired. */
  | {
      kind: 'player_removed'
      player_id: string
      ms: number
      reason: RemoveReason
      disconnect_key: string | null
      open_connections?: number
    }
  | { kind: 'version_draining'; version_id: string; is_draining: boolean }
  /** The client has solved a captcha, which is valid until `expire_ms` at the latest. */
  | { kind: 'client_verified'; client: string; ms: number; expire_ms: number }
  /** A request of a client that had solved a captcha before. */
  | { kind: 'client_counted'; client: string }
  /** The party's new record. `left`: the identity that left it with this change. */
  | { kind: 'party_put'; party: PartyRecord; left: string | null }
  | { kind: 'party_ended'; party_id: string; ms: number }
  | { kind: 'ticket_put'; ticket: TicketRecord }
  | { kind: 'ticket_ended'; player_id: string; ms: number; reason: TicketEnd }
