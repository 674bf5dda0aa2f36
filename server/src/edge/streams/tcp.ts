// Raw TCP: a connection to a number of the edge's goes to the lobby that has it, and from then on bytes are bytes. A
// connection is accepted, counted (altogether, and by client and port), told apart (its PROXY header, where a balancer
// sends one), routed, secured (where the port speaks TLS), connected to the lobby, spliced.
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { clientKey, isTrustedPeer, parseTrustedProxies } from '../../addresses/client-ip.ts'
import type { Context } from '../../context.ts'
import type { ConnectionLimits } from '../connection-limits.ts'
import type { HostMeaning } from '../hosts.ts'
import {
  CONNECT_MS_MAX,
  FIRST_BYTE_MS_MAX,
  LISTEN_PAUSE_MS,
  LISTEN_WAIT_MS_MAX,
  SPLICE_IDLE_MS_MAX,
  TCP_BACKLOG,
} from '../limits.ts'
import type { LobbyConnections } from '../lobby-connections.ts'
import type { Routes, StreamAddress } from '../routes.ts'
import { connectSharingReads } from '../shared-reads.ts'
import { splice } from '../splice.ts'
import { endsOf } from '../tls/tls.ts'
import type { OpenPort } from './edge-ports.ts'
import { createHostGate } from './named-host.ts'
import { createPortConnectionLimits } from './port-connection-limits.ts'
import type { PortOwners } from './port-owners.ts'
import { type Endpoint, proxyHeader, takeProxyHeader } from './proxy-protocol.ts'

export type Tcp = { open: (port: number) => Promise<OpenPort | null> }
export type TcpOptions = {
  routes: Routes
  meaningOf: (host: string) => HostMeaning | null
  owners: PortOwners
  crowd: ConnectionLimits
  lobby_connections: LobbyConnections
  /** The address to listen at; null: every address of the machine. */
  host: string | null
  tls: TlsOptions | null
}

/** Of a lobby's server, whose player may take nothing: so much waits for him here, and the rest there. */
const READ_BYTES_MAX = 32 * 1024
const SOCKETS = { allowHalfOpen: true, pauseOnConnect: true, noDelay: true, highWaterMark: READ_BYTES_MAX }
const TIMES = { idle_ms: SPLICE_IDLE_MS_MAX, first_byte_ms: FIRST_BYTE_MS_MAX }

export function createTcp(ctx: Context, options: TcpOptions): Tcp {
  const { routes, meaningOf, owners, crowd, lobby_connections, host, tls } = options
  const balancers = parseTrustedProxies(ctx.config.proxy_protocol_from)
  const counts = createPortConnectionLimits()
  // It listens nowhere: connections are handed to it once it is known that their port speaks TLS.
  const tls_server = tls === null ? null : createTlsServer({ ...tls, allowHalfOpen: true })
  const handshakes = new Map<string, (secured: Socket) => void>()
  tls_server?.on('secureConnection', (secured) => handshakes.get(endsOf(secured))?.(secured))

  function onConnection(client: Socket, number: number): void {
    // A peer may break a connection at any moment, also when nobody else is looking at it.
    client.on('error', () => {})
    if (!crowd.admit('tcp', client)) return
    carry(client, number).catch((error: unknown) => {
      // No such lobby, a budget that is used up, a server that does not listen: a raw protocol has no word for any.
      ctx.log.debug({ err: error, number }, 'a connection could not be carried')
      client.resetAndDestroy()
    })
  }

  async function carry(client: Socket, number: number): Promise<void> {
    const peer: Endpoint = { address: client.remoteAddress ?? '', port: client.remotePort ?? 0 }
    const told = isTrustedPeer(peer.address, balancers) ? await takeProxyHeader(client) : { source: null }
    if (told === null) throw new Error('The connection of a balancer has no PROXY header.')
    const source = told.source ?? peer
    const bucket = clientKey(source.address)
    const leave = counts.enter(number, bucket)
    if (leave === null) throw new Error('This client has too many connections to the port.')
    if (client.destroyed) return leave()
    client.once('close', leave)

    const owner = await owners.find('tcp', number, bucket)
    const target = owner && (await routes.stream(owner, bucket))
    if (owner === null || target === null) throw new Error('The port has no lobby, or the lobby has ended.')
    const local = { address: client.localAddress ?? '', port: number }
    const header = target.proxy_protocol ? proxyHeader('stream', source, local) : null
    const open = target.protocol === 'tcp_tls' ? await secure(client) : client
    const upstream = await connectTo(target, open)
    if (upstream === null) return
    lobby_connections.enter(owner.lobby_id)
    client.once('close', () => lobby_connections.leave(owner.lobby_id))
    if (header !== null) upstream.write(header)
    // Over TLS the certificate has told the browser whose port it is.
    splice(open, upstream, TIMES, open === client ? createHostGate(meaningOf) : null)
    open.resume()
  }

  /** The server's side of TLS, over a connection that has been accepted. Rejects when there is no handshake. */
  function secure(client: Socket): Promise<Socket> {
    if (tls_server === null) throw new Error('The edge has no certificates.')
    const ends = endsOf(client)
    return new Promise<Socket>((resolve, reject) => {
      handshakes.set(ends, resolve)
      client.once('close', () => reject(new Error('There was no handshake.')))
      tls_server.emit('connection', client)
    }).finally(() => handshakes.delete(ends))
  }

  async function open(port: number): Promise<OpenPort | null> {
    const sockets = new Set<Socket>()
    const server = createServer(SOCKETS, (client) => {
      sockets.add(client)
      client.once('close', () => sockets.delete(client))
      onConnection(client, port)
    })
    const listening = once(server, 'listening')
    server.listen({ port, ...(host !== null && { host }), backlog: TCP_BACKLOG, exclusive: true })
    try {
      await listening
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') {
        ctx.log.warn({ err: error, port }, 'a tcp port cannot be listened at')
      }
      return null
    }
    // After this it fails for a single connection, which is closed then: out of descriptors.
    server.on('error', (error) => ctx.log.warn({ err: error, port }, 'a tcp port could not accept'))
    return {
      close() {
        server.close()
        for (const socket of sockets) socket.destroy()
      },
    }
  }

  return { open }
}

/** What tells a connection from all others, whether TLS is spoken over it or not. */
/** Null: the client is gone. A server that says that it is ready a moment before it listens is waited for. */
async function connectTo(target: StreamAddress, client: Socket): Promise<Socket | null> {
  for (let waited_ms = 0; ; waited_ms += LISTEN_PAUSE_MS) {
    if (client.destroyed) return null
    const upstream = connectSharingReads(target, { allowHalfOpen: true, bytes_max: READ_BYTES_MAX })
    try {
      await once(upstream, 'connect', { signal: AbortSignal.timeout(CONNECT_MS_MAX) })
      if (!client.destroyed) return upstream
      upstream.destroy()
      return null
    } catch (error) {
      upstream.destroy()
      const is_refused = (error as NodeJS.ErrnoException).code === 'ECONNREFUSED'
      if (!is_refused || waited_ms >= LISTEN_WAIT_MS_MAX) throw error
      await delay(LISTEN_PAUSE_MS)
    }
  }
}
