// Connections by port, and by port and client: one player must not keep the others out of a lobby, nor all of them one
// lobby the players out of the next.
import { PORT_CONNECTIONS_MAX, PORT_CONNECTIONS_PER_CLIENT_MAX } from '../limits.ts'

export type PortConnectionLimits = {
  /** What is to be called at its end; null: there are too many. */
  enter: (port: number, client: string) => (() => void) | null
}

export function createPortConnectionLimits(): PortConnectionLimits {
  const ports = new Map<number, { sum: number; clients: Map<string, number> }>()
  return {
    enter(port, client) {
      const count = ports.get(port) ?? { sum: 0, clients: new Map() }
      const of_client = count.clients.get(client) ?? 0
      if (count.sum >= PORT_CONNECTIONS_MAX || of_client >= PORT_CONNECTIONS_PER_CLIENT_MAX) return null
      ports.set(port, count)
      count.sum++
      count.clients.set(client, of_client + 1)
      return () => {
        count.sum--
        const left = (count.clients.get(client) ?? 1) - 1
        if (left > 0) count.clients.set(client, left)
        else count.clients.delete(client)
        if (count.sum === 0) ports.delete(port)
      }
    },
  }
}
