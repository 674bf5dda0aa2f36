// A bound on the connections of a server that lets each newcomer in: when there are too many, the one is closed whose last
// request is the longest ago. Clients that keep connections for later open another.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'

export function limitConnections(server: Server, connections_max: number): void {
  /** The one whose last request is the longest ago comes first. */
  const by_use = new Set<Socket>()
  server.on('connection', (socket) => {
    const [unused] = by_use
    if (unused !== undefined && by_use.size >= connections_max) {
      by_use.delete(unused)
      unused.destroy()
    }
    by_use.add(socket)
    socket.once('close', () => by_use.delete(socket))
  })
  server.on('request', ({ socket }) => {
    if (by_use.delete(socket)) by_use.add(socket)
  })
}
