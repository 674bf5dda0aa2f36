// The seats of the lobby of `muster dev`: those that the page server has passed on from the platform. They admit players as
// the book does. A seat without a connection ends after `player_deadline_ms`, and after `hold_ms` once it had one. Where the
// server speaks the protocol of another platform, its reports count as connections.
import { randomUUID } from 'node:crypto'
import { ApiError } from '@musterhost/contract'
import { type Admitted, addressIn, type PlayerId, type SeatHolders } from '@musterhost/contract/edge'

/** Seats at once. Beyond them, the oldest one without a connection ends. */
const SEATS_MAX = 4_096
/** Connections of one player. */
const PLAYER_CONNECTIONS_MAX = 64
/** Milliseconds between two lines about refused connections. */
const REFUSALS_EVERY_MS = 1_000

/** `number`: by which people tell players apart. */
type Seat = PlayerId & {
  number: number
  token: string
  client_key: string
  address: string | null
  connections: Set<() => void>
  /** The server has reported by its protocol that the player is in the game. */
  is_reported: boolean
  has_connected: boolean
  create_ts: number
  timer: NodeJS.Timeout | null
}

/** A seat as the protocol of the server sees it. */
type ListedSeat = { player_id: string; is_connected: boolean; role?: 'spectator'; create_ts: number }

/**
 * `hold_ms`: null where the server checks the seats. Then they end only for later ones. `has_protocol`: then they end as with
 * `hold_ms`, and when the server starts again.
 */
export type SeatOptions = {
  lobby_id: string
  namespace_id: string
  hold_ms: number | null
  has_protocol: boolean
  now: () => number
  player_deadline_ms: number
  event: (text: string) => void
}

export class DevSeats implements SeatHolders {
  readonly #options: SeatOptions
  /** By token, the oldest first. */
  readonly #seats = new Map<string, Seat>()
  readonly #listeners = new Set<() => void>()
  #count = 0
  #refused_ms = Number.NEGATIVE_INFINITY

  constructor(options: SeatOptions) {
    this.#options = options
  }

  /** Whether this command checks the seats. What the server reports of players then has no effect. */
  get are_checked(): boolean {
    return this.#options.hold_ms !== null
  }

  /** How many players have a connection, or are in the game as the server reports by its protocol. */
  get connected_count(): number {
    return [...this.#seats.values()].filter(isConnected).length
  }

  /** Calls the listener after each change of `list`. Returns a function that ends it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** The oldest first. */
  list(): ListedSeat[] {
    return [...this.#seats.values()].map((seat) => ({
      player_id: seat.player_id,
      is_connected: isConnected(seat),
      ...(seat.is_spectator === true && { role: 'spectator' as const }),
      create_ts: seat.create_ts,
    }))
  }

  /** The lobby has ended. */
  endAll(): void {
    for (const seat of [...this.#seats.values()]) this.#end(seat)
  }

  /** The server reports that the player with this token has come. */
  connected(token: string): void {
    const seat = this.#seats.get(token)
    if (seat === undefined) throw new ApiError('PLAYER_TOKEN_INVALID')
    if (seat.is_reported) throw new ApiError('MATCHMAKER_PLAYER_ALREADY_CONNECTED')
    this.#report(seat)
  }

  /** The server reports that the player with this token has left. */
  disconnected(token: string): void {
    const seat = this.#seats.get(token)
    if (seat === undefined) throw new ApiError('PLAYER_TOKEN_INVALID')
    this.#endReported(seat)
  }

  /** The server reports all players in the game, by id or by token. Returns those without a seat. */
  setPlayers(player_ids: readonly string[]): string[] {
    const wanted = new Set(player_ids)
    for (const seat of [...this.#seats.values()]) {
      if (!wanted.delete(seat.player_id) && !wanted.delete(seat.token)) {
        if (isConnected(seat)) this.#endReported(seat)
      } else if (!seat.is_reported) this.#report(seat)
    }
    return [...wanted]
  }

  /** A find, join or create has returned this player token to a client. */
  give({ token, role }: { token: string; role?: 'spectator' }, client_key: string): void {
    const { lobby_id, namespace_id, hold_ms, has_protocol, player_deadline_ms, now } = this.#options
    if (this.#seats.size >= SEATS_MAX) this.#endOldest()
    const seat: Seat = {
      ...{ player_id: randomUUID(), lobby_id, namespace_id, is_spectator: role === 'spectator' },
      ...{ number: ++this.#count, token, client_key },
      ...{ address: null, connections: new Set<() => void>(), has_connected: false, timer: null },
      ...{ is_reported: false, create_ts: now() },
    }
    this.#seats.set(token, seat)
    this.#changed()
    if (hold_ms !== null || has_protocol) this.#endAfter(seat, player_deadline_ms, 'it did not connect')
  }

  playerOf(token: string | null, lobby_id: string): PlayerId {
    const seat = token === null ? undefined : this.#seats.get(token)
    if (seat !== undefined && seat.lobby_id === lobby_id) return seat
    const what = token === null ? 'without a player token' : 'whose player token has no seat here'
    this.#sayRefused(`a connection ${what} was refused`)
    const message = 'The lobby admits only players, and the connection has no player token.'
    throw new ApiError('PLAYER_TOKEN_INVALID', {}, token === null ? { message } : {})
  }

  async admit({ player_id }: PlayerId, end: () => void, network: string | null): Promise<Admitted> {
    const seat = [...this.#seats.values()].find((one) => one.player_id === player_id)
    if (seat === undefined) throw new ApiError('PLAYER_TOKEN_INVALID')
    if (seat.connections.size >= PLAYER_CONNECTIONS_MAX) {
      throw new ApiError('API_NOT_AVAILABLE', {}, { message: 'The player has too many connections to the lobby.' })
    }
    if (network !== null) seat.address ??= this.#addressFor(seat, network)
    if (seat.timer !== null) clearTimeout(seat.timer)
    seat.timer = null
    const was_connected = isConnected(seat)
    const connection = (): void => end()
    seat.connections.add(connection)
    if (!seat.has_connected) this.#options.event(`player ${seat.number} connected`)
    seat.has_connected = true
    if (!was_connected) this.#changed()
    const { lobby_id, namespace_id, is_spectator = false, address } = seat
    return { player_id, lobby_id, namespace_id, is_spectator, address, leave: () => this.#leave(seat, connection) }
  }

  async playersAt(lobby_id: string, client_key: string): Promise<PlayerId[]> {
    return [...this.#seats.values()].filter((seat) => seat.lobby_id === lobby_id && seat.client_key === client_key)
  }

  refused(_lobby_id: string, client_key: string): void {
    this.#sayRefused(`a connection from ${client_key} was refused: no seat was taken from this address`)
  }

  close(): void {
    this.endAll()
  }

  #addressFor({ player_id }: Seat, network: string): string {
    const used = [...this.#seats.values()].flatMap(({ address }) => address ?? [])
    return addressIn(network, player_id, new Set(used))
  }

  #leave(seat: Seat, connection: () => void): void {
    if (!seat.connections.delete(connection) || seat.connections.size > 0) return
    if (this.#seats.get(seat.token) !== seat || seat.is_reported) return
    this.#changed()
    const { hold_ms } = this.#options
    if (hold_ms !== null) this.#endAfter(seat, hold_ms, `without a connection for ${hold_ms} ms`)
  }

  #endAfter(seat: Seat, wait_ms: number, reason: string): void {
    if (seat.timer !== null) clearTimeout(seat.timer)
    seat.timer = setTimeout(() => {
      this.#end(seat)
      this.#options.event(`player ${seat.number} left (${reason})`)
    }, wait_ms)
    seat.timer.unref()
  }

  #endOldest(): void {
    const oldest = [...this.#seats.values()].find((seat) => !isConnected(seat))
    if (oldest === undefined) throw new ApiError('MATCHMAKER_NO_AVAILABLE_LOBBIES')
    this.#end(oldest)
  }

  #end(seat: Seat): void {
    if (seat.timer !== null) clearTimeout(seat.timer)
    this.#seats.delete(seat.token)
    for (const end of [...seat.connections]) end()
    this.#changed()
  }

  #report(seat: Seat): void {
    if (seat.timer !== null) clearTimeout(seat.timer)
    seat.timer = null
    seat.is_reported = true
    if (!seat.has_connected) this.#options.event(`player ${seat.number} connected`)
    seat.has_connected = true
    this.#changed()
  }

  #endReported(seat: Seat): void {
    this.#end(seat)
    this.#options.event(`player ${seat.number} left (as its server reports)`)
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener()
  }

  #sayRefused(text: string): void {
    const now_ms = performance.now()
    if (now_ms - this.#refused_ms < REFUSALS_EVERY_MS) return
    this.#refused_ms = now_ms
    this.#options.event(text)
  }
}

function isConnected({ connections, is_reported }: Seat): boolean {
  return connections.size > 0 || is_reported
}
