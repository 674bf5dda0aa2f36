// The records of a book: a lobby and a player, with what has happened to them since they were created.
import type { LobbyRecord, PlayerRecord, RemoveReason, StopReason } from '../../journal/changes.ts'

/** A lobby is starting, then ready (and perhaps closed), then stopped. */
export type Lobby = LobbyRecord & {
  is_closed: boolean
  /** The lobby's server does not respond: no player enters, and players keep their seats. */
  is_stalled: boolean
  state: string | null
  ready_ms: number | null
  /** The lobby's server has called `connected` at least once, so the book knows its players from it. */
  has_reported_players: boolean
  /** When an empty lobby may be stopped; null while it has players. */
  idle_ms: number | null
  stop_ms: number | null
  stop_reason: StopReason | null
  /** Seats that expired while the edge held open connections to the lobby. */
  seats_expired_while_connected: number
  /** Connections that were open when the lobby was stopped; null: none were, or the lobby runs. */
  connections_at_stop: number | null
  players: Map<string, Player>
  /** Seats that are held (holds.ts): in memory only. */
  held_count: number
  /** Open connections, as the edges report them: in memory only. */
  connection_count: number
  /** After its last connection closed, the lobby is not idle before this: in memory only. Null: it had none. */
  quiet_ms: number | null
}

/** The members of a lobby that tables and journal hold. */
export type StoredLobby = Omit<Lobby, 'players' | 'held_count' | 'connection_count' | 'quiet_ms'>

/** A player is reserved, then connected, then removed. A removed player is remembered for a while, for repeated calls. */
export type Player = PlayerRecord & {
  connect_ms: number | null
  remove_ms: number | null
  remove_reason: RemoveReason | null
  connect_key: string | null
  disconnect_key: string | null
}

/** A lobby in the moment of its creation. */
export function newLobby(record: LobbyRecord): Lobby {
  return {
    ...record,
    seat_hold_ms: record.seat_hold_ms ?? null,
    code: record.code ?? null,
    node_id: record.node_id ?? null,
    is_closed: false,
    is_stalled: false,
    state: null,
    ready_ms: null,
    has_reported_players: false,
    idle_ms: record.create_ms + record.idle_grace_ms,
    stop_ms: null,
    stop_reason: null,
    seats_expired_while_connected: 0,
    connections_at_stop: null,
    ...onlyInMemory(),
  }
}

/** A lobby whose players and connections are not known yet. */
export function loadedLobby(stored: StoredLobby): Lobby {
  return { ...stored, ...onlyInMemory() }
}

function onlyInMemory(): Omit<Lobby, keyof StoredLobby> {
  return { players: new Map(), held_count: 0, connection_count: 0, quiet_ms: null }
}

export function newPlayer(record: PlayerRecord): Player {
  const { match = null } = record
  return {
    ...record,
    match,
    connect_ms: null,
    remove_ms: null,
    remove_reason: null,
    connect_key: null,
    disconnect_key: null,
  }
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
