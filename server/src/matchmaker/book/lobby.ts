// The records of a book: a lobby and a player, with what has happened to them since they were created.
import type { LobbyRecord, PlayerRecord, RemoveReason, StopReason } from '../../journal/changes.ts'

/** A lobby is starting, then ready (and perhaps closed), then stopped. */
export type Lobby = LobbyRecord & {
  /** 0: none. */
  max_spectators: number
  is_closed: boolean
  /** The lobby's server does not respond: no player enters, and players keep their seats. */
  is_stalled: boolean
  state: string | null
  ready_ms: number | null
  /** The lobby's server has called `connected` at least once, so the book knows its players from it. */
  has_reported_players: boolean
  /** When an empty lobby may be stopped; null while it has players. */
  idle_ms: number | null
  /** Its server asked that it does not end as idle before this. Null: it did not. */
  keep_until_ms: number | null
  stop_ms: number | null
  stop_reason: StopReason | null
  /** Seats that expired while the edge held open connections to the lobby. */
  seats_expired_while_connected: number
  /** Connections that were open when the lobby was stopped; null: none were, or the lobby runs. */
  connections_at_stop: number | null
  players: Map<string, Player>
  /** They keep no lobby alive, and are in no count of players. Lobbies without seats for them share NO_SPECTATORS. */
  spectators: Map<string, Player>
  /** Seats that are held (holds.ts): in memory only. */
  held_count: number
  held_spectator_count: number
  /** Open connections, as the edges report them: in memory only. */
  connection_count: number
  /** After its last connection closed, the lobby is not idle before this: in memory only. Null: it had none. */
  quiet_ms: number | null
}

/** The members of a lobby that tables and journal hold. */
export type StoredLobby = Omit<Lobby, keyof InMemory>

type InMemory = Pick<
  Lobby,
  'players' | 'spectators' | 'held_count' | 'held_spectator_count' | 'connection_count' | 'quiet_ms'
>

/** A player is reserved, then connected, then removed. A removed player is remembered for a while, for repeated calls. */
export type Player = PlayerRecord & {
  is_spectator: boolean
  connect_ms: number | null
  remove_ms: number | null
  remove_reason: RemoveReason | null
  connect_key: string | null
  disconnect_key: string | null
}

/** It stays empty: by L1 no spectator enters a lobby without seats for them. */
const NO_SPECTATORS = new Map<string, Player>()

/** A lobby in the moment of its creation. All lobbies have the same members in one order, which keeps their use fast. */
export function newLobby(record: LobbyRecord): Lobby {
  const { max_spectators = 0 } = record
  return {
    tier: record.tier,
    cpu_cores: record.cpu_cores,
    memory_mb: record.memory_mb,
    version_id: record.version_id,
    game_mode: record.game_mode,
    region: record.region,
    publicity: record.publicity,
    is_custom: record.is_custom,
    creator_identity_id: record.creator_identity_id,
    ray_id: record.ray_id,
    max_players_normal: record.max_players_normal,
    max_players_direct: record.max_players_direct,
    max_players_party: record.max_players_party,
    tags: record.tags,
    lobby_config: record.lobby_config,
    player_deadline_ms: record.player_deadline_ms,
    idle_grace_ms: record.idle_grace_ms,
    seat_hold_ms: record.seat_hold_ms ?? null,
    node_id: record.node_id ?? null,
    edge_ports: record.edge_ports,
    lobby_id: record.lobby_id,
    create_ms: record.create_ms,
    ready_deadline_ms: record.ready_deadline_ms,
    code: record.code ?? null,
    max_spectators,
    is_closed: false,
    is_stalled: false,
    state: null,
    ready_ms: null,
    has_reported_players: false,
    idle_ms: record.create_ms + record.idle_grace_ms,
    keep_until_ms: null,
    stop_ms: null,
    stop_reason: null,
    seats_expired_while_connected: 0,
    connections_at_stop: null,
    players: new Map(),
    spectators: max_spectators === 0 ? NO_SPECTATORS : new Map(),
    held_count: 0,
    held_spectator_count: 0,
    connection_count: 0,
    quiet_ms: null,
  }
}

/** A lobby whose players and connections are not known yet. */
export function loadedLobby(stored: StoredLobby): Lobby {
  return Object.assign(newLobby(stored), stored)
}

/** All players have the same members in one order, which keeps their use fast. */
export function newPlayer(record: PlayerRecord): Player {
  return {
    player_id: record.player_id,
    lobby_id: record.lobby_id,
    client: record.client,
    create_ms: record.create_ms,
    deadline_ms: record.deadline_ms,
    seat_key: record.seat_key,
    identity_id: record.identity_id,
    leader_player_id: record.leader_player_id,
    match: record.match ?? null,
    is_spectator: record.is_spectator ?? false,
    connect_ms: null,
    remove_ms: null,
    remove_reason: null,
    connect_key: null,
    disconnect_key: null,
  }
}

/** Players first. */
export function seatsIn({ players, spectators, max_spectators }: Lobby): Iterable<Player> {
  return max_spectators === 0 ? players.values() : [...players.values(), ...spectators.values()]
}

export function isWaiting(player: Player): boolean {
  return player.connect_ms === null && player.remove_ms === null
}

/** The seat was taken together with the seats of a party. */
export function isOfParty(player: Player): player is Player & { identity_id: string } {
  return player.leader_player_id !== null && player.identity_id !== null
}

export function isLobby(timed: Lobby | Player): timed is Lobby {
  return 'players' in timed
}

/** When a lobby stopped or a player left; infinity: not yet. */
export function endOf(timed: Lobby | Player): number {
  return (isLobby(timed) ? timed.stop_ms : timed.remove_ms) ?? Number.POSITIVE_INFINITY
}

export function hasEnded(timed: Lobby | Player): boolean {
  return (isLobby(timed) ? timed.stop_ms : timed.remove_ms) !== null
}

/** When time ends a lobby that is still starting, or a seat; infinity: never. Idle lobbies end by idle.ts. */
export function dueAt(timed: Lobby | Player): number {
  if (!isLobby(timed)) return timed.deadline_ms
  return timed.ready_ms === null ? timed.ready_deadline_ms : Number.POSITIVE_INFINITY
}
