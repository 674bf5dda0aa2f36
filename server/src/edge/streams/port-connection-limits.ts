// Limits connections per port, and per client and port: one player cannot lock others out of a lobby, one lobby cannot starve
// another.
import { PORT_CONNECTIONS_MAX, PORT_CONNECTIONS_PER_CLIENT_MAX } from '../limits.ts'

type Counts = { sum: number; by_client: Map<string, number> }

export class PortConnectionLimits {
  readonly #ports = new Map<number, Counts>()

  /** Counts a connection. Returns a function to call once at its end; null: there are too many. */
  enter(port: number, client_key: string): (() => void) | null {
    const counts = this.#ports.get(port) ?? { sum: 0, by_client: new Map() }
    const of_client = counts.by_client.get(client_key) ?? 0
    if (counts.sum >= PORT_CONNECTIONS_MAX || of_client >= PORT_CONNECTIONS_PER_CLIENT_MAX) return null
    this.#ports.set(port, counts)
    counts.sum++
    counts.by_client.set(client_key, of_client + 1)
    return () => this.#leave(port, counts, client_key)
  }

  #leave(port: number, counts: Counts, client_key: string): void {
    counts.sum--
    const left = (counts.by_client.get(client_key) ?? 1) - 1
    if (left > 0) counts.by_client.set(client_key, left)
    else counts.by_client.delete(client_key)
    if (counts.sum === 0) this.#ports.delete(port)
  }
}
