// Counts the open connections to each lobby through this edge: raw connections, UDP sessions, and clients' HTTP connections
// whose last request went to the lobby, upgraded or not. report-connections.ts reports the changes. It also counts the bytes
// of these connections, from when each begins to count; report-traffic.ts reports them. Nothing is counted for each byte:
// a connection knows its bytes, and is asked at its end and for each report.

/** `connection_count`: the most that were open at once since the previous change was taken. */
export type ConnectionChange = { lobby_id: string; connection_count: number }

/** An HTTP connection of a client. `lobby_id`: where its last request went. */
export type CountedConnection = { readonly socket: CountedSocket; lobby_id: string | null; is_counted: boolean }

export type CountedSocket = ByteCounts & { once: (event: 'close', listener: () => void) => unknown }

/** What a connection has carried since it was opened: a socket, or a UDP session. */
export type ByteCounts = { readonly bytesRead: number; readonly bytesWritten: number }

/** `refused_count`: connections of addresses without a seat. `refused_client`: the newest of these. */
export type LobbyTraffic = {
  lobby_id: string
  bytes_in: number
  bytes_out: number
  refused_count: number
  refused_client: string | null
}

type CountedBytes = { lobby_id: string; bytes_in: number; bytes_out: number }

export class LobbyConnections {
  /** The open connections, each with what was counted of it before. */
  readonly #counted = new Map<ByteCounts, CountedBytes>()
  /** Bytes since the last report, by lobby: of connections that have ended. */
  #carried = new Map<string, LobbyTraffic>()
  readonly #open = new Map<string, number>()
  /** The most that were open at once since the last report. At most one entry for each connection opened or closed since. */
  #changed = new Map<string, number>()

  enter(lobby_id: string, connection: ByteCounts): void {
    this.#counted.set(connection, { lobby_id, ...bytesOf(connection) })
    const count = (this.#open.get(lobby_id) ?? 0) + 1
    this.#open.set(lobby_id, count)
    this.#changed.set(lobby_id, Math.max(count, this.#changed.get(lobby_id) ?? 0))
  }

  leave(lobby_id: string, connection: ByteCounts): void {
    this.#count(connection)
    this.#counted.delete(connection)
    const before = this.#open.get(lobby_id) ?? 0
    if (before > 1) this.#open.set(lobby_id, before - 1)
    else this.#open.delete(lobby_id)
    if (!this.#changed.has(lobby_id)) this.#changed.set(lobby_id, before)
  }

  /** The connection's next request goes to this lobby; null: to none. It counts until it closes or goes to another one. */
  follow(connection: CountedConnection, lobby_id: string | null): void {
    if (connection.lobby_id === lobby_id) return
    if (connection.lobby_id !== null) this.leave(connection.lobby_id, connection.socket)
    if (lobby_id !== null) this.enter(lobby_id, connection.socket)
    connection.lobby_id = lobby_id
    if (connection.is_counted) return
    connection.is_counted = true
    connection.socket.once('close', () => this.follow(connection, null))
  }

  /** Returns the changes since the previous call. */
  takeChanges(): ConnectionChange[] {
    const changes = [...this.#changed].map(([lobby_id, connection_count]) => ({ lobby_id, connection_count }))
    this.#changed = new Map()
    // Where fewer are open by now, that is the next change.
    for (const { lobby_id, connection_count } of changes) {
      const count = this.#open.get(lobby_id) ?? 0
      if (count !== connection_count) this.#changed.set(lobby_id, count)
    }
    return changes
  }

  /** No player with this address has a seat in the lobby, which admits players by address. */
  refused(lobby_id: string, client_key: string): void {
    const carried = this.#carriedFor(lobby_id)
    carried.refused_count++
    carried.refused_client = client_key
  }

  /** Returns the bytes and refusals of each lobby since the previous call. */
  takeTraffic(): LobbyTraffic[] {
    for (const connection of this.#counted.keys()) this.#count(connection)
    const carried = [...this.#carried.values()]
    this.#carried = new Map()
    return carried
  }

  #count(connection: ByteCounts): void {
    const before = this.#counted.get(connection)
    if (before === undefined) return
    const { bytes_in, bytes_out } = bytesOf(connection)
    const { lobby_id } = before
    const grown_in = Math.max(0, bytes_in - before.bytes_in)
    const grown_out = Math.max(0, bytes_out - before.bytes_out)
    if (grown_in + grown_out === 0) return
    Object.assign(before, { bytes_in, bytes_out })
    const sum = this.#carriedFor(lobby_id)
    sum.bytes_in += grown_in
    sum.bytes_out += grown_out
  }

  #carriedFor(lobby_id: string): LobbyTraffic {
    const none = { lobby_id, bytes_in: 0, bytes_out: 0, refused_count: 0, refused_client: null }
    const carried = this.#carried.get(lobby_id) ?? none
    this.#carried.set(lobby_id, carried)
    return carried
  }

  /** Returns all open connections, and forgets earlier changes. */
  takeAll(): ConnectionChange[] {
    this.#changed = new Map()
    return [...this.#open].map(([lobby_id, connection_count]) => ({ lobby_id, connection_count }))
  }
}

/** A socket without a handle has no count of what it wrote. */
function bytesOf({ bytesRead, bytesWritten }: ByteCounts): { bytes_in: number; bytes_out: number } {
  return { bytes_in: bytesRead ?? 0, bytes_out: bytesWritten ?? 0 }
}
