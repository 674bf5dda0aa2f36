// Limits the connections of a server. Beyond the limit a new connection closes the one whose last request is the longest ago.
// A client that keeps connections for later opens another.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'

export function limitConnections(server: Server, connections_max: number): void {
  /** In the order of their last request. */
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
