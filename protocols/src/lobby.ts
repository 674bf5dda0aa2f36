// The port between a protocol and the platform: what a protocol knows of its lobby, and what it can do. A room of a protocol
// imports nothing else of the platform.

/** A seat of the lobby. `is_connected`: its player is in the game. `attributes` and `team`: from the rules of the game mode. */
export type LobbySeat = {
  player_id: string
  is_connected: boolean
  role?: 'spectator'
  team?: string
  attributes?: Readonly<Record<string, number | string | string[]>>
  /** When the seat was taken, in milliseconds since the epoch. */
  create_ts: number
}

/** A port of the version config. `listening`: the number at which the server listens; null: a range. */
export type LobbyPort = {
  name: string
  protocol: 'http' | 'https' | 'tcp' | 'tcp_tls' | 'udp'
  listening: number | null
  /** How players reach it. `port`: null for a range. */
  public: { hostname: string; port: number | null; url: string }
}

/** What does not change while the lobby runs. */
export type LobbyFacts = {
  /** A UUID. */
  lobby_id: string
  namespace_id: string
  version_id: string
  game_mode: string
  region_id: string
  /** Maximum number of players when a player comes by find. */
  max_players: number
  /** `lobby_config` of the creator of a custom lobby; null for every other lobby. */
  config: unknown
  tags: Readonly<Record<string, string>>
  /** Where this machine reaches the server's ports. */
  host: string
  /** In the order of the version config. */
  ports: readonly LobbyPort[]
  /** The lobby's writable folder, as its server sees it. */
  home: string
  /** When its server was started, in milliseconds since the epoch. */
  start_ts: number
}

/** What changes while the lobby runs. */
export type LobbyView = {
  seats: readonly LobbySeat[]
  is_closed: boolean
  /** The platform is going to end the lobby; its players should be led to an end of the game. */
  is_draining: boolean
}

/** What the hub and `muster explain` show of a server in the words of its protocol. */
export type ProtocolReport = {
  /** Example: `Allocated`. */
  state: string
  /** When the server last reported its health, in milliseconds since the epoch; null: never. */
  health_ts: number | null
  /** What the server reported of its health; null: nothing. */
  is_healthy: boolean | null
}

/** Raised by the calls of a lobby. `code`: of the public interface. Example: `PLAYER_TOKEN_INVALID`. */
export class LobbyError extends Error {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/**
 * One lobby. Its calls are repeated while the platform restarts, for up to ten seconds; then they throw a LobbyError, as
 * they do when the platform refuses. They are idempotent.
 */
export type ProtocolLobby = {
  facts: LobbyFacts
  /** As the platform reported it last. The same object until it changes. */
  readonly view: LobbyView
  /** Calls the listener after each change of `view`. Returns a function that ends it. */
  onChange(listener: () => void): () => void
  /** The server accepts players. */
  ready(): Promise<void>
  /** Find leaves out a closed lobby. */
  setClosed(is_closed: boolean): Promise<void>
  /** The state that lists of lobbies show: any JSON of at most 16 KiB. */
  setState(state: unknown): Promise<void>
  /** The tags of the lobby, in place of all that it has. */
  setTags(tags: Readonly<Record<string, string>>): Promise<void>
  /** For so long, at most a day, the lobby does not end because it is empty. 0: no longer. */
  keep(keep_ms: number): Promise<void>
  /** A player with this token has come. Throws when the token has no seat in this lobby. */
  connected(player_token: string): Promise<void>
  /** A player has left. */
  disconnected(player_token: string): Promise<void>
  /**
   * All players who are in the game now, each by its id or by its player token. A seat whose player is new in the list counts as connected; a
   * connected seat that is missing is given back. Members without a seat are returned.
   */
  setPlayers(player_ids: readonly string[]): Promise<{ unknown: string[] }>
  /** Ends the lobby at the request of its server. */
  stop(): Promise<void>
  /** What an earlier program that served this lobby gave to `remember`; null: there is none. */
  readonly remembered: unknown
  /** Keeps a small JSON value for the program that serves this lobby after a crash of this one. Replaces the last one. */
  remember(value: unknown): void
  /** Replaces the last report. */
  report(report: ProtocolReport): void
  /** The server does not respond or has reported that it is unhealthy: what follows is decided by the game mode. */
  unhealthy(reason: string): void
  /** Milliseconds since the epoch. */
  now(): number
  /** A line for the lobby's log, for its developer. */
  log(line: string): void
}
