// Counts the open connections to each lobby through this edge: raw connections, UDP sessions, and clients' HTTP connections
// whose last request went to the lobby, upgraded or not. report-connections.ts reports the changes.
import type { Socket } from 'node:net'

/** `connection_count`: the most that were open at once since the previous change was taken. */
export type ConnectionChange = { lobby_id: string; connection_count: number }

/** An HTTP connection of a client. `lobby_id`: where its last request went. */
export type CountedConnection = { readonly socket: Socket; lobby_id: string | null; is_counted: boolean }

export class LobbyConnections {
  readonly #open = new Map<string, number>()
  /** The most that were open at once since the last report. At most one entry for each connection opened or closed since. */
  #changed = new Map<string, number>()

  enter(lobby_id: string): void {
    const count = (this.#open.get(lobby_id) ?? 0) + 1
    this.#open.set(lobby_id, count)
    this.#changed.set(lobby_id, Math.max(count, this.#changed.get(lobby_id) ?? 0))
  }

  leave(lobby_id: string): void {
    const before = this.#open.get(lobby_id) ?? 0
    if (before > 1) this.#open.set(lobby_id, before - 1)
    else this.#open.delete(lobby_id)
    if (!this.#changed.has(lobby_id)) this.#changed.set(lobby_id, before)
  }

  /** The connection's next request goes to this lobby; null: to none. It counts until it closes or goes to another one. */
  follow(connection: CountedConnection, lobby_id: string | null): void {
    if (connection.lobby_id === lobby_id) return
    if (connection.lobby_id !== null) this.leave(connection.lobby_id)
    if (lobby_id !== null) this.enter(lobby_id)
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

  /** Returns all open connections, and forgets earlier changes. */
  takeAll(): ConnectionChange[] {
    this.#changed = new Map()
    return [...this.#open].map(([lobby_id, connection_count]) => ({ lobby_id, connection_count }))
  }
}
