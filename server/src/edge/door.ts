// Every connection of the edge comes through here, over whichever port, and is counted: altogether, and by where it comes
// from.
import { once } from 'node:events'
import { createServer, type Server, type ServerOptions } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Server as NetServer, Socket } from 'node:net'
import type { TlsOptions, Server as TlsServer } from 'node:tls'
import { clientBucket } from '../net/client-ip.ts'
import { shouldUpgrade } from './http.ts'
import {
  CONNECTIONS_PER_SOURCE_SHARE,
  connectionsMax,
  HEADER_BYTES_MAX,
  HEADER_CHECK_MS,
  HEADER_MS_MAX,
  KEEP_ALIVE_MS_MAX,
  REQUEST_IDLE_MS_MAX,
  STOP_MS_MAX,
} from './limits.ts'

export type Door = {
  connections_max: number
  plain: () => Server
  secure: (options: TlsOptions) => Server & TlsServer
  /** Stops listening; what is under way may end, for STOP_MS_MAX. */
  close: (servers: readonly Server[]) => Promise<void>
}

const OPTIONS: ServerOptions = {
  requireHostHeader: false,
  insecureHTTPParser: false,
  maxHeaderSize: HEADER_BYTES_MAX,
  headersTimeout: HEADER_MS_MAX,
  connectionsCheckingInterval: HEADER_CHECK_MS,
  // An upload may take long; what must not happen is that nothing moves.
  requestTimeout: 0,
  keepAliveTimeout: KEEP_ALIVE_MS_MAX,
  shouldUpgradeCallback: shouldUpgrade,
}

export function createDoor(): Door {
  const connections_max = connectionsMax()
  const per_source_max = Math.ceil(connections_max * CONNECTIONS_PER_SOURCE_SHARE)
  const sockets = new Set<Socket>()
  const counts = new Map<string, number>()

  function onConnection(socket: Socket): void {
    // A peer may break a connection at any moment, also when nobody else is looking at it.
    socket.on('error', () => {})
    const source = clientBucket(socket.remoteAddress ?? '')
    const count = counts.get(source) ?? 0
    // Refused while there still are descriptors: with none left, nobody's requests could be answered.
    if (sockets.size >= connections_max || count >= per_source_max) {
      socket.resetAndDestroy()
      return
    }
    sockets.add(socket)
    counts.set(source, count + 1)
    socket.once('close', () => {
      sockets.delete(socket)
      const left = (counts.get(source) ?? 1) - 1
      if (left === 0) counts.delete(source)
      else counts.set(source, left)
    })
  }

  function guard<S extends Server>(server: S): S {
    server.timeout = REQUEST_IDLE_MS_MAX
    // Counted by us, who refuse; the parser would only forget the rest.
    server.maxHeadersCount = 0
    // Before TLS, where there is any: a handshake costs too.
    ;(server as NetServer).prependListener('connection', onConnection)
    return server
  }

  return {
    connections_max,
    plain: () => guard(createServer(OPTIONS)),
    secure: (options) => guard(createSecureServer({ ...OPTIONS, ...options, allowHalfOpen: true, noDelay: true })),
    async close(servers) {
      const closed = servers.map((item) => {
        const end = once(item, 'close')
        item.close()
        item.closeIdleConnections()
        return end
      })
      const timer = setTimeout(() => {
        for (const socket of sockets) socket.destroy()
      }, STOP_MS_MAX)
      await Promise.all(closed)
      clearTimeout(timer)
    },
  }
}
