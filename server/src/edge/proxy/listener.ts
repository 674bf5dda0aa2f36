// Accepts all HTTP connections, on every port, and counts them (connection-limits.ts).
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createSecureServer, type Server as SecureServer, type TlsOptions } from 'node:tls'
import type { IdleConnection, IdleFacts } from '../http/connections.ts'
import { STOP_MS_MAX } from '../limits.ts'
import type { NodeInternals } from '../node-internals.ts'
import { type AdmittedConnection, type ConnectionLimits, PROXY_PEER } from '../presence/connection-limits.ts'
import { endsOf, HTTPS_PROTOCOLS } from '../tls/tls.ts'
import type { Dispatch } from './dispatch.ts'

const OPTIONS = { allowHalfOpen: true, noDelay: true }

export class HttpListener {
  readonly #connection_limits: ConnectionLimits
  readonly #http: Dispatch
  readonly #internals: NodeInternals
  readonly #sockets = new Set<Socket>()
  /** Connections whose TLS handshake is not over, by their two ends. */
  readonly #handshakes = new Map<string, AdmittedConnection>()

  constructor(connection_limits: ConnectionLimits, http: Dispatch, internals: NodeInternals) {
    this.#connection_limits = connection_limits
    this.#http = http
    this.#internals = internals
  }

  plain(): Server {
    return this.#createPlain()
  }

  /** A server for a proxy on this machine, over a unix socket. */
  proxied(): Server {
    return this.#createPlain(PROXY_PEER)
  }

  /** Serves a connection that another edge has let go of. */
  adopt(socket: Socket, { peer, lobby_id }: IdleFacts): void {
    const admitted = this.#admit(socket, peer)
    if (admitted === null) return
    this.#http.serve(socket, admitted, lobby_id)
    socket.resume()
  }

  secure(options: TlsOptions): SecureServer {
    const server = createSecureServer({ ...OPTIONS, ...options, ALPNProtocols: HTTPS_PROTOCOLS }, (socket) => {
      socket.on('error', () => {})
      const admitted = this.#handshakes.get(endsOf(socket))
      if (admitted !== undefined && !socket.destroyed) this.#http.serve(socket, admitted, null)
    })
    // The TLS alert has been sent; no response is possible.
    server.on('tlsClientError', (_error, socket) => void socket.destroy())
    // Connections are admitted before the handshake, because the handshake costs too.
    return server.prependListener('connection', (socket) => this.#admitHandshake(socket))
  }

  idle(): IdleConnection[] {
    return this.#http.idle()
  }

  /** Stops listening. Each connection ends after its next response. */
  retire(servers: readonly Server[]): void {
    for (const server of servers) server.close()
    this.#http.retire()
  }

  /** Stops listening. Requests under way may end, for STOP_MS_MAX. */
  async close(servers: readonly Server[]): Promise<void> {
    const closed = servers.filter(({ listening }) => listening).map((server) => once(server, 'close'))
    for (const server of servers) server.close()
    this.#http.stop()
    const timer = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy()
    }, STOP_MS_MAX)
    // Connections that another edge handed over belong to no server.
    const ended = [...this.#sockets].filter(({ closed }) => !closed).map(closeOf)
    await Promise.all([...closed, ...ended])
    clearTimeout(timer)
  }

  #createPlain(peer?: string): Server {
    return createServer({ ...OPTIONS, pauseOnConnect: true }, (accepted) => {
      const socket = this.#internals.acceptSharingReads(accepted)
      const admitted = this.#admit(socket, peer)
      if (admitted !== null && !socket.destroyed) this.#http.serve(socket, admitted, null)
    })
  }

  /** Counts a connection before anything is read from it. */
  #admit(socket: Socket, peer?: string): AdmittedConnection | null {
    // A peer may break a connection at any moment, also while nothing else listens to it.
    socket.on('error', () => {})
    const admitted = this.#connection_limits.admit('http', socket, peer === undefined ? {} : { peer })
    if (admitted === null) return null
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    return admitted
  }

  #admitHandshake(socket: Socket): void {
    const ends = endsOf(socket)
    const admitted = this.#admit(socket)
    if (admitted === null) return
    this.#handshakes.set(ends, admitted)
    socket.once('close', () => this.#handshakes.delete(ends))
  }
}

/** A broken connection closes too, and its error says nothing more. */
function closeOf(socket: Socket): Promise<void> {
  return new Promise((resolve) => void socket.once('close', () => resolve()))
}
