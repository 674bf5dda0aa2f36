// What one connection of HTTP/2 is for lobbies and players. Over HTTP/1.1 a connection counts for the lobby and the player of its
// last request, until it closes. Streams of one connection are for several at once, so each lobby and each player has a visit:
// it begins with a request, and ends KEEP_ALIVE_MS_MAX after the last one, or with the connection.
import { EventEmitter } from 'node:events'
import type { Admitted, PlayerConnection, PlayerId } from '@musterhost/contract/edge'
import type { ClientSocket } from '../http/client-socket.ts'
import type { Exchange, StreamVisits } from '../http/exchange.ts'
import { ticksOf } from '../http/ticks.ts'
import { HTTP2_VISITS_MAX, KEEP_ALIVE_MS_MAX } from '../limits.ts'
import type { ByteCounts, CountedConnection } from '../presence/lobby-connections.ts'

const KEEP_ALIVE_TICKS = ticksOf(KEEP_ALIVE_MS_MAX)

type Clock = { readonly now: number }

/** A visit is its own socket: the end of it closes the streams that it has. */
class Visit extends EventEmitter implements CountedConnection, PlayerConnection, ByteCounts {
  readonly remoteFamily = undefined
  lobby_id: string | null = null
  is_counted = false
  player: Admitted | null = null
  destroyed = false
  /** The tick at which its last stream ended. */
  since: number
  readonly #clock: Clock
  readonly #streams = new Set<ClientSocket>()
  #received_bytes = 0
  #sent_bytes = 0

  constructor(clock: Clock) {
    super()
    this.#clock = clock
    this.since = clock.now
  }

  get socket(): Visit {
    return this
  }

  get bytesRead(): number {
    return [...this.#streams].reduce((bytes, stream) => bytes + stream.bytesRead, this.#received_bytes)
  }

  get bytesWritten(): number {
    return [...this.#streams].reduce((bytes, stream) => bytes + stream.bytesWritten, this.#sent_bytes)
  }

  get is_idle(): boolean {
    return this.#streams.size === 0
  }

  enter(stream: ClientSocket): this {
    this.#streams.add(stream)
    stream.once('close', () => {
      this.#streams.delete(stream)
      this.#received_bytes += stream.bytesRead
      this.#sent_bytes += stream.bytesWritten
      this.since = this.#clock.now
    })
    return this
  }

  destroy(): void {
    if (this.destroyed) return
    this.destroyed = true
    for (const stream of this.#streams) stream.destroy()
    this.emit('close')
  }

  resetAndDestroy(): void {
    this.destroy()
  }
}

export class Visits implements StreamVisits {
  readonly #clock: Clock
  /** By lobby, and by lobby and player. */
  readonly #all = new Map<string, Visit>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  ofLobby({ connection }: Exchange, lobby_id: string): CountedConnection {
    return this.#of(lobby_id, connection.socket)
  }

  ofPlayer({ connection }: Exchange, { lobby_id, player_id }: PlayerId): PlayerConnection {
    return this.#of(`${lobby_id} ${player_id}`, connection.socket)
  }

  /** Ends the visits without a request for KEEP_ALIVE_MS_MAX. */
  endLate(): void {
    for (const [key, visit] of this.#all) {
      if (visit.is_idle && this.#clock.now - visit.since > KEEP_ALIVE_TICKS) this.#end(key, visit)
    }
  }

  close(): void {
    for (const [key, visit] of this.#all) this.#end(key, visit)
  }

  #of(key: string, stream: ClientSocket): Visit {
    const before = this.#all.get(key)
    if (before !== undefined && !before.destroyed) return before.enter(stream)
    if (this.#all.size >= HTTP2_VISITS_MAX) this.#endOldest()
    const visit = new Visit(this.#clock)
    this.#all.set(key, visit)
    return visit.enter(stream)
  }

  /** Each stream has at most two visits, and HTTP2_VISITS_MAX is larger than those of all streams: one is idle. */
  #endOldest(): void {
    for (const [key, visit] of this.#all) {
      if (!visit.is_idle) continue
      this.#end(key, visit)
      return
    }
  }

  #end(key: string, visit: Visit): void {
    this.#all.delete(key)
    visit.destroy()
  }
}
