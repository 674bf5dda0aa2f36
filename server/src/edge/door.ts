// Every connection for HTTP comes through here, over whichever port, and is counted (crowd.ts).
import { once } from 'node:events'
import { createServer, type Server, type ServerOptions } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Server as NetServer, Socket } from 'node:net'
import type { TlsOptions, Server as TlsServer } from 'node:tls'
import type { Crowd } from './crowd.ts'
import { shouldUpgrade } from './http.ts'
import {
  HEADER_BYTES_MAX,
  HEADER_CHECK_MS,
  HEADER_MS_MAX,
  KEEP_ALIVE_MS_MAX,
  REQUEST_IDLE_MS_MAX,
  STOP_MS_MAX,
} from './limits.ts'

export type Door = {
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

export function createDoor(crowd: Crowd): Door {
  const sockets = new Set<Socket>()

  function onConnection(socket: Socket): void {
    // A peer may break a connection at any moment, also when nobody else is looking at it.
    socket.on('error', () => {})
    const leave = crowd.enter(socket.remoteAddress ?? '')
    if (leave === null) {
      socket.resetAndDestroy()
      return
    }
    sockets.add(socket)
    socket.once('close', () => {
      sockets.delete(socket)
      leave()
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
