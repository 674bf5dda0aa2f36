// Players of raw ports whose seats the edge checks: by the player token in the first line of a TCP connection, by the
// handshake of UDP (udp-handshake.ts), or by the address that took the seat. Of several players with one address, the one
// with the fewest connections to the port is taken: an address proves no more than that.
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { ApiError } from '../errors.ts'
import type { Admitted, PlayerId, SeatHolders } from './players.ts'

/** Milliseconds until a client has sent its player token. */
const TOKEN_MS_MAX = 10_000
/** Bytes of a first line with a player token. */
const TOKEN_LINE_BYTES_MAX = 1_024
/** Milliseconds between two look-ups of the players of an address: a seat becomes visible within a second. */
const ADDRESS_LOOKUP_PAUSE_MS = 250
/** Look-ups that wait for a player without a connection to the port, before players share connections. */
const ADDRESS_FREE_LOOKUPS_MAX = 6
/** Look-ups of the players of an address for one connection. */
const ADDRESS_LOOKUPS_MAX = 12

/** `port`: the edge's. `network`: of which players get addresses of their own; null: none. */
type Entrance = { lobby_id: string; port: number; network: string | null }

/** `is_by_address`: the client's address admitted the player, and no token. */
export type StreamAdmitted = Admitted & { is_by_address: boolean }

/** `playersAt`: the players of a client in a lobby, oldest first. */
type AddressSeats = { playersAt: (lobby_id: string, client_key: string) => Promise<PlayerId[]> }
/** Learns which clients without a seat were refused. */
type Refusals = { refused: (lobby_id: string, client_key: string) => void }

export class StreamAdmission {
  readonly #players: SeatHolders
  readonly #seats: AddressSeats
  readonly #refusals: Refusals
  /** Connections that an address admitted, by port and player. */
  readonly #counts = new Map<string, number>()

  constructor(players: SeatHolders, seats: AddressSeats, refusals: Refusals) {
    this.#players = players
    this.#refusals = refusals
    this.#seats = seats
  }

  /** Waits for the book. `end` ends the connection when the player is removed. Throws the refusal. */
  async byToken(token: string | null, { lobby_id, network }: Entrance, end: () => void): Promise<StreamAdmitted> {
    const player = this.#players.playerOf(token, lobby_id)
    return { ...(await this.#players.admit(player, end, network)), is_by_address: false }
  }

  /**
   * The same for a client without a token. A seat that was taken a moment ago may not be visible yet: players share
   * connections only after ADDRESS_FREE_LOOKUPS_MAX look-ups found nobody without one.
   */
  async byAddress(client_key: string, { lobby_id, port, network }: Entrance, end: () => void): Promise<StreamAdmitted> {
    for (let lookup = 0; lookup < ADDRESS_LOOKUPS_MAX; lookup++) {
      if (lookup > 0) await delay(ADDRESS_LOOKUP_PAUSE_MS)
      const players = await this.#seats.playersAt(lobby_id, client_key)
      const player = this.#choose(port, players, lookup >= ADDRESS_FREE_LOOKUPS_MAX)
      if (player === null) continue
      const key = keyOf(port, player)
      try {
        const admitted = await this.#players.admit(player, end, network)
        const leave = (): void => {
          this.#count(key, -1)
          admitted.leave()
        }
        return { ...admitted, leave, is_by_address: true }
      } catch (error) {
        this.#count(key, -1)
        throw error
      }
    }
    this.#refusals.refused(lobby_id, client_key)
    throw new ApiError('PLAYER_TOKEN_INVALID', {}, { message: 'No player with this address has a seat in the lobby.' })
  }

  /** Counts a connection that another edge admitted by its address. Returns a function to call once at its end. */
  adopt(port: number, player: PlayerId): () => void {
    const key = keyOf(port, player)
    this.#count(key, 1)
    return () => this.#count(key, -1)
  }

  /** Counts a connection of the player with the fewest to the port. Null: there is none. */
  #choose(port: number, players: readonly PlayerId[], is_shared: boolean): PlayerId | null {
    const countOf = (player: PlayerId): number => this.#counts.get(keyOf(port, player)) ?? 0
    const [first] = players.toSorted((one, other) => countOf(one) - countOf(other))
    if (first === undefined || (countOf(first) > 0 && !is_shared)) return null
    this.#count(keyOf(port, first), 1)
    return first
  }

  #count(key: string, difference: 1 | -1): void {
    const count = (this.#counts.get(key) ?? 0) + difference
    if (count === 0) this.#counts.delete(key)
    else this.#counts.set(key, count)
  }
}

const keyOf = (port: number, { player_id }: PlayerId): string => `${port} ${player_id}`

const NEWLINE = 0x0a

/** Reads the first line of a paused connection, and leaves the rest in it, paused again. Null: it is too long or too late. */
export function takeFirstLine(socket: Socket): Promise<Buffer | null> {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0)
    const finish = (line: Buffer | null): void => {
      clearTimeout(timer)
      socket.off('data', onData)
      socket.off('end', onEnd)
      socket.off('close', onEnd)
      socket.pause()
      resolve(line)
    }
    const onEnd = (): void => finish(null)
    const onData = (chunk: Buffer): void => {
      bytes = Buffer.concat([bytes, chunk])
      const end = bytes.indexOf(NEWLINE)
      if (end < 0 && bytes.length < TOKEN_LINE_BYTES_MAX) return
      finish(end < 0 || end >= TOKEN_LINE_BYTES_MAX ? null : bytes.subarray(0, end + 1))
      if (end >= 0 && end + 1 < bytes.length) socket.unshift(bytes.subarray(end + 1))
    }
    const timer = setTimeout(onEnd, TOKEN_MS_MAX)
    socket.on('data', onData)
    socket.once('end', onEnd)
    socket.once('close', onEnd)
    socket.resume()
  })
}

/** The token in a line; CR and LF do not belong to it. */
export function tokenOf(line: Buffer | null): string | null {
  const text = line?.toString('latin1').trim() ?? ''
  return text === '' ? null : text
}
