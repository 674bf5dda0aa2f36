// What the book of a namespace is made of: a lobby and a player, as what has happened to them made them.
import type { LobbyRecord, PlayerRecord, RemoveReason, StopReason } from '../../journal/changes.ts'

/** A lobby as the book knows it: starting, ready (and perhaps closed), stopped. */
export type Lobby = LobbyRecord & {
  is_closed: boolean
  /** Its server does not answer: it takes nobody, and who has a seat keeps it. */
  is_stalled: boolean
  state: string | null
  ready_ms: number | null
  /** Its server has called `connected` at least once, so the book knows from it who plays. */
  has_reported_players: boolean
  /** When it is stopped for want of players; null while it has some. */
  idle_ms: number | null
  stop_ms: number | null
  stop_reason: StopReason | null
  /** Seats that expired while the edge held open connections to the lobby. */
  seats_expired_while_connected: number
  /** Connections that were open when the lobby was stopped; null: none were, or it runs. */
  connections_at_stop: number | null
  players: Map<string, Player>
  /** Places that are held (holds.ts): in memory only. */
  held_count: number
  /** Open connections, as the edges report them: in memory only. */
  connection_count: number
  /** After its last connection closed, the lobby is not idle before this: in memory only. Null: it had none. */
  quiet_ms: number | null
}

/** A lobby as tables and journal make it. */
export type StoredLobby = Omit<Lobby, 'players' | 'held_count' | 'connection_count' | 'quiet_ms'>

/** A player: reserved, connected, removed. A removed one is remembered for a while, to answer repeats. */
export type Player = PlayerRecord & {
  connect_ms: number | null
  remove_ms: number | null
  remove_reason: RemoveReason | null
  connect_key: string | null
  disconnect_key: string | null
}
