// The seats of the lobby of `muster dev`: those that the page server has passed on from the platform. They admit players as
// the book does. A seat without a connection ends after `player_deadline_ms`, and after `hold_ms` once it had one.
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
  has_connected: boolean
  timer: NodeJS.Timeout | null
}

/** `hold_ms`: null where the server checks the seats. Then they end only for later ones. */
export type SeatOptions = {
  lobby_id: string
  namespace_id: string
  hold_ms: number | null
  player_deadline_ms: number
  event: (text: string) => void
}

export class DevSeats implements SeatHolders {
  readonly #options: SeatOptions
  /** By token, the oldest first. */
  readonly #seats = new Map<string, Seat>()
  #count = 0
  #refused_ms = Number.NEGATIVE_INFINITY

  constructor(options: SeatOptions) {
    this.#options = options
  }

  /** How many players have a connection. */
  get connected_count(): number {
    return [...this.#seats.values()].filter(({ connections }) => connections.size > 0).length
  }

  /** A find, join or create has returned this player token to a client. */
  give({ token, role }: { token: string; role?: 'spectator' }, client_key: string): void {
    const { lobby_id, namespace_id, hold_ms, player_deadline_ms } = this.#options
    if (this.#seats.size >= SEATS_MAX) this.#endOldest()
    const seat: Seat = {
      ...{ player_id: randomUUID(), lobby_id, namespace_id, is_spectator: role === 'spectator' },
      ...{ number: ++this.#count, token, client_key },
      ...{ address: null, connections: new Set<() => void>(), has_connected: false, timer: null },
    }
    this.#seats.set(token, seat)
    if (hold_ms !== null) this.#endAfter(seat, player_deadline_ms, 'it did not connect')
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
    const connection = (): void => end()
    seat.connections.add(connection)
    if (!seat.has_connected) this.#options.event(`player ${seat.number} connected`)
    seat.has_connected = true
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
    for (const seat of [...this.#seats.values()]) this.#end(seat)
  }

  #addressFor({ player_id }: Seat, network: string): string {
    const used = [...this.#seats.values()].flatMap(({ address }) => address ?? [])
    return addressIn(network, player_id, new Set(used))
  }

  #leave(seat: Seat, connection: () => void): void {
    if (!seat.connections.delete(connection) || seat.connections.size > 0) return
    if (this.#seats.get(seat.token) !== seat) return
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
    const oldest = [...this.#seats.values()].find(({ connections }) => connections.size === 0)
    if (oldest === undefined) throw new ApiError('MATCHMAKER_NO_AVAILABLE_LOBBIES')
    this.#end(oldest)
  }

  #end(seat: Seat): void {
    if (seat.timer !== null) clearTimeout(seat.timer)
    this.#seats.delete(seat.token)
    for (const end of [...seat.connections]) end()
  }

  #sayRefused(text: string): void {
    const now_ms = performance.now()
    if (now_ms - this.#refused_ms < REFUSALS_EVERY_MS) return
    this.#refused_ms = now_ms
    this.#options.event(text)
  }
}
