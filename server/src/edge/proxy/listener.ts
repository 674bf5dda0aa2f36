// Every connection for HTTP comes through here, over whichever port, and is counted (crowd.ts).
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createSecureServer, type TlsOptions } from 'node:tls'
import { type ConnectionLimits, type Guest, PROXY_PEER } from '../connection-limits.ts'
import { STOP_MS_MAX } from '../limits.ts'
import { acceptSharingReads } from '../shared-reads.ts'
import { endsOf } from '../tls/tls.ts'
import type { Dispatch } from './dispatch.ts'

export type Listener = {
  plain: () => Server
  /** For a proxy on this machine, over a unix socket. */
  proxied: () => Server
  secure: (options: TlsOptions) => Server
  /** Stops listening; what is under way may end, for STOP_MS_MAX. */
  close: (servers: readonly Server[]) => Promise<void>
}

const OPTIONS = { allowHalfOpen: true, noDelay: true }

export function createListener(crowd: ConnectionLimits, http: Dispatch): Listener {
  const sockets = new Set<Socket>()
  const handshakes = new Map<string, Guest>()

  /** A connection costs, whatever comes over it: it is counted before anything of it is read. */
  function enter(socket: Socket, peer = socket.remoteAddress): Guest | null {
    // A peer may break a connection at any moment, also when nobody else is looking at it.
    socket.on('error', () => {})
    const guest = crowd.admit('http', socket, peer)
    if (guest === null) return null
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    return guest
  }

  /** Until its handshake is over, a connection is known by its two ends. */
  function enterHandshake(socket: Socket): void {
    const ends = endsOf(socket)
    const guest = enter(socket)
    if (guest === null) return
    handshakes.set(ends, guest)
    socket.once('close', () => handshakes.delete(ends))
  }

  function createPlain(peer?: string): Server {
    return createServer({ ...OPTIONS, pauseOnConnect: true }, (accepted) => {
      const socket = acceptSharingReads(accepted)
      const guest = enter(socket, peer)
      if (guest !== null && !socket.destroyed) http.serve(socket, guest)
    })
  }

  return {
    plain: () => createPlain(),
    proxied: () => createPlain(PROXY_PEER),
    secure(options) {
      const server = createSecureServer({ ...OPTIONS, ...options }, (socket) => {
        socket.on('error', () => {})
        const guest = handshakes.get(endsOf(socket))
        if (guest !== undefined && !socket.destroyed) http.serve(socket, guest)
      })
      // The alert has been sent, and nothing else can be said.
      server.on('tlsClientError', (_error, socket) => void socket.destroy())
      // Before the handshake, which costs too.
      return server.prependListener('connection', enterHandshake)
    },
    async close(servers) {
      const closed = servers.map((server) => {
        const end = once(server, 'close')
        server.close()
        return end
      })
      http.stop()
      const timer = setTimeout(() => {
        for (const socket of sockets) socket.destroy()
      }, STOP_MS_MAX)
      await Promise.all(closed)
      clearTimeout(timer)
    },
  }
}
