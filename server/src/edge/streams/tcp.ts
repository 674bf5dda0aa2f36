// Raw TCP: a connection to one of the edge's ports is joined to the lobby that has the port, and its bytes are forwarded
// unchanged. The steps: admit the connection, read the PROXY header where a balancer sends one, count it for its client and
// port, find the lobby, speak TLS where the port requires it, connect to the lobby, and splice.
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { type Endpoint, proxyHeader, type StreamAdmission, takeFirstLine, tokenOf } from '@musterhost/contract/edge'
import { clientKey, isTrustedPeer, parseTrustedProxies, type TrustedProxies } from '../../addresses/client-ip.ts'
import type { Context } from '../../context.ts'
import { handleOf, type SocketHandle } from '../handles.ts'
import {
  CONNECT_MS_MAX,
  FIRST_BYTE_MS_MAX,
  LISTEN_PAUSE_MS,
  LISTEN_WAIT_MS_MAX,
  SPLICE_IDLE_MS_MAX,
  TCP_BACKLOG,
} from '../limits.ts'
import { connectSharingReads } from '../node-internals.ts'
import type { ConnectionLimits } from '../presence/connection-limits.ts'
import type { FlowPlayer, Flows } from '../presence/flows.ts'
import type { LobbyConnections } from '../presence/lobby-connections.ts'
import type { HostMeaning } from '../routes/hosts.ts'
import type { Address, Routes, StreamAddress } from '../routes/routes.ts'
import { splice } from '../splice.ts'
import type { TicketKeys } from '../tls/ticket-keys.ts'
import { breakOff, endsOf } from '../tls/tls.ts'
import type { OpenPort } from './edge-ports.ts'
import { createHostFilter } from './named-host.ts'
import type { PortConnectionLimits } from './port-connection-limits.ts'
import type { PortOwners } from './port-owners.ts'
import { takeProxyHeader } from './proxy-protocol.ts'

export type TcpOptions = {
  routes: Routes
  meaningOf: (host: string) => HostMeaning | null
  owners: PortOwners
  connection_limits: ConnectionLimits
  lobby_connections: LobbyConnections
  port_limits: PortConnectionLimits
  flows: Flows
  admission: StreamAdmission
  /** The address to listen at; null: every address of the machine. */
  host: string | null
  /** Null: the edge has no certificates. */
  tls: TlsFacts | null
}

type TlsFacts = { options: TlsOptions; tickets: TicketKeys }

/** Bytes read at once from either side. A slow player has no more than this waiting here; the rest stays at the lobby. */
const READ_BYTES_MAX = 32 * 1024
const SOCKETS = { allowHalfOpen: true, pauseOnConnect: true, noDelay: true, highWaterMark: READ_BYTES_MAX }
const TIMES = { idle_ms: SPLICE_IDLE_MS_MAX, first_byte_ms: FIRST_BYTE_MS_MAX }

export class Tcp {
  readonly #ctx: Context
  readonly #options: TcpOptions
  readonly #balancers: TrustedProxies
  readonly #handshakes: TlsHandshakes | null
  readonly #admission: StreamAdmission

  constructor(ctx: Context, options: TcpOptions) {
    this.#ctx = ctx
    this.#options = options
    this.#admission = options.admission
    this.#balancers = parseTrustedProxies(ctx.config.proxy_protocol_from)
    this.#handshakes = options.tls === null ? null : new TlsHandshakes(options.tls)
  }

  /** Opens a port; null: another program has it. `inherited`: the previous edge listened with this handle. */
  async open(port: number, inherited: SocketHandle | null = null): Promise<OpenPort | null> {
    const { log } = this.#ctx
    const { host } = this.#options
    const sockets = new Set<Socket>()
    const server = createServer(SOCKETS, (client) => {
      sockets.add(client)
      client.once('close', () => sockets.delete(client))
      this.#onConnection(client, port)
    })
    const listening = once(server, 'listening')
    if (inherited !== null) server.listen(inherited, TCP_BACKLOG)
    else server.listen({ port, ...(host !== null && { host }), backlog: TCP_BACKLOG, exclusive: true })
    try {
      await listening
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') {
        log.warn({ err: error, port }, 'tcp port cannot be opened')
      }
      return null
    }
    // From here on an error concerns one connection, which is closed: the process is out of descriptors.
    server.on('error', (error) => log.warn({ err: error, port }, 'tcp port cannot accept a connection'))
    return {
      handle: () => handleOf(server),
      release: () => void server.close(),
      close() {
        server.close()
        for (const socket of sockets) socket.destroy()
      },
    }
  }

  #onConnection(client: Socket, number: number): void {
    // A peer may break a connection at any moment, also while nothing else listens to it.
    client.on('error', () => {})
    if (!this.#options.connection_limits.admit('tcp', client)) return
    this.#join(client, number).catch((error: unknown) => {
      // There is no such lobby, a limit is reached, or the server does not listen. A raw protocol can state no reason.
      this.#ctx.log.debug({ err: error, number }, 'raw connection cannot be joined to a lobby')
      client.resetAndDestroy()
    })
  }

  /** Joins a client's connection to the lobby that has the port. */
  async #join(client: Socket, number: number): Promise<void> {
    const { routes, meaningOf, owners, lobby_connections, port_limits, flows } = this.#options
    const source = await this.#sourceOf(client)
    const client_key = clientKey(source.address)
    const leave = port_limits.enter(number, client_key)
    if (leave === null) throw new Error('This client has too many connections to the port.')
    if (client.destroyed) return leave()
    client.once('close', leave)

    const owner = await owners.find('tcp', number, client_key)
    const target = owner && (await routes.stream(owner, client_key))
    if (owner === null || target === null) throw new Error('The port has no lobby, or the lobby has ended.')
    const local = { address: client.localAddress ?? '', port: number }
    const is_secure = target.protocol === 'tcp_tls'
    const open = is_secure ? await this.#secure(client) : client
    const admitted = await this.#admit(open, target, { lobby_id: owner.lobby_id, port: number, client_key })
    const player = admitted?.player ?? null
    if (player !== null && !player.is_by_address && target.admission?.has_several_connections !== true) {
      await flows.endOf(player.player_id, { number })
    }
    const header = target.proxy_protocol ? proxyHeader('stream', source, local, player) : null
    const local_address = player?.address ?? undefined
    const upstream = await connectTo(local_address === undefined ? target : { ...target, local_address }, open)
    if (upstream === null) return
    lobby_connections.enter(owner.lobby_id, client)
    client.once('close', () => lobby_connections.leave(owner.lobby_id, client))
    if (header !== null) upstream.write(header)
    if (admitted?.kept != null) upstream.write(admitted.kept)
    // Over TLS, the certificate has shown the browser whose port this is.
    const joined = splice(open, upstream, TIMES, is_secure ? null : createHostFilter(meaningOf))
    const { lobby_id } = owner
    flows.add(joined, { kind: 'tcp', peer: client.remoteAddress ?? '', client_key, number, lobby_id, player })
    open.resume()
  }

  /**
   * Waits until the player has been admitted. Null: the lobby's server checks the seats. `kept`: the line of the token, which
   * the server receives too. Throws the refusal; the player leaves with the connection.
   */
  async #admit(
    open: Socket,
    { admission, player_network }: StreamAddress,
    { lobby_id, port, client_key }: { lobby_id: string; port: number; client_key: string },
  ): Promise<{ player: FlowPlayer; kept: Buffer | null } | null> {
    if (admission === undefined) return null
    const entrance = { lobby_id, port, network: player_network ?? null }
    const end = (): void => breakOff(open)
    const line = admission.by.includes('first_line') ? await takeFirstLine(open) : null
    const admitted = admission.by.includes('address')
      ? await this.#admission.byAddress(client_key, entrance, end)
      : await this.#admission.byToken(tokenOf(line), entrance, end)
    const { leave, ...player } = admitted
    if (open.destroyed) leave()
    else open.once('close', leave)
    return { player, kept: admission.keep_token ? line : null }
  }

  /** Returns the client's address: the peer's, or the one that a balancer states in its PROXY header. */
  async #sourceOf(client: Socket): Promise<Endpoint> {
    const peer: Endpoint = { address: client.remoteAddress ?? '', port: client.remotePort ?? 0 }
    if (!isTrustedPeer(peer.address, this.#balancers)) return peer
    const header = await takeProxyHeader(client)
    if (header === null) throw new Error('The connection of a balancer has no PROXY header.')
    return header.source ?? peer
  }

  async #secure(client: Socket): Promise<Socket> {
    if (this.#handshakes === null) throw new Error('The edge has no certificates.')
    return this.#handshakes.secure(client)
  }
}

/** TLS over connections that are already accepted. The TLS server itself listens nowhere. */
class TlsHandshakes {
  readonly #server: ReturnType<typeof createTlsServer>
  /** By the two ends of a connection. */
  readonly #waiting = new Map<string, (secured: Socket) => void>()

  constructor({ options, tickets }: TlsFacts) {
    this.#server = tickets.keep(createTlsServer({ ...options, allowHalfOpen: true }))
    this.#server.on('secureConnection', (secured) => this.#waiting.get(endsOf(secured))?.(secured))
  }

  /** Resolves with the decrypted side of the connection. Rejects when the handshake fails. */
  secure(client: Socket): Promise<Socket> {
    const ends = endsOf(client)
    return new Promise<Socket>((resolve, reject) => {
      this.#waiting.set(ends, resolve)
      client.once('close', () => reject(new Error('There was no handshake.')))
      this.#server.emit('connection', client)
    }).finally(() => this.#waiting.delete(ends))
  }
}

/** Retries while the lobby does not listen yet, for LISTEN_WAIT_MS_MAX. Returns null when the client is gone. */
async function connectTo(target: Address, client: Socket): Promise<Socket | null> {
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
