// The platform's end of all links. The edge forwards upgraded connections to a unix socket of its own process, where this
// listens. Each connection begins with mutual TLS; a machine without a certificate may only join. States of a connection:
// upgraded -> secured -> `calls` and `edge`: serves the node's calls, or `streams`: carries connections to the node's lobbies
// -> closed.
// A node has one connection of each kind. A newer one replaces it. Connections of a removed node are closed within a second.
// A listener whose edge is being replaced is retired: each node connects to the next edge, and keeps these connections for the
// players who play over them.
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, rmSync } from 'node:fs'
import { createServer as createHttpServer, type Server as HttpServer, type IncomingMessage } from 'node:http'
import {
  type ClientHttp2Session,
  connect,
  type Http2Session,
  performServerHandshake,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Duplex } from 'node:stream'
import { createServer as createTlsServer, type TLSSocket, type TlsOptions } from 'node:tls'
import type { Context } from '../../context.ts'
import { createPoller, type Poller } from '../../database/poller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import type { Authority } from '../authority.ts'
import { type NodePeer, nodePeer } from '../peers.ts'
import { CONNECTION_KINDS, type ConnectionKind, HANDSHAKE_MS_MAX, LINK_PATH, RETIRE_PATH } from '../protocol.ts'
import { keepAlive, responseOf, sessionOptions } from '../streams.ts'
import { type LinkCaller, serveCall } from './calls.ts'
import { dropRevokedRoles } from './database-role.ts'
import type { LobbyPorts } from './edge-calls.ts'

/** Links whose TLS handshake is not over, and links of machines that have not joined yet. */
const GUESTS_MAX = 64
/** How long a machine may take to join. */
const GUEST_MS_MAX = 60_000
/** How often removed nodes are searched without a notification while any is linked, and while none is. */
const CHECK_MS = 1_000
const CHECK_UNLINKED_MS = 30_000

/** Time in which a node must respond that it connects to the next edge. A node that does not is disconnected. */
const RETIRE_MS_MAX = 5_000
/** How long a retired listener waits for calls of nodes that are no connections of players. */
const CALLS_RETIRE_MS_MAX = 10_000
/** How long after its start the listener of a next edge waits for a node, whose connection is on its way. */
const NODES_RETURN_MS_MAX = 5_000

/** Streams that a retired listener does not wait for: they last, and the node opens others over its next link. */
const LASTING_PATHS: ReadonlySet<string> = new Set(['/postgres', '/link'])

/** Connections that every linked node has. */
const LINKED_KINDS: readonly ConnectionKind[] = ['muster-calls', 'muster-streams']

const SWITCHING =
  'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  // The edge, and proxies before it, check a WebSocket handshake no further than this.
  'Sec-WebSocket-Accept: \r\n\r\n'

type Opened = { authority: Authority; certificate: X509Certificate; options: TlsOptions }
/** `below`: the upgraded connection. `client_ip`: of the other machine, as the edge says. */
type Arrival = { below: Duplex; client_ip: string }
type Kept = { session: Http2Session; key_hash: string }
type NodeSessions = Map<ConnectionKind, Kept>

/** `path`: of the unix socket, in a folder that only this user can enter. */
export type ListenerOptions = {
  path: string
  version: string
  lobby_ports: LobbyPorts
  /** Nodes had links to the edge before this one. */
  is_successor: boolean
}

export class LinkListener {
  readonly path: string
  readonly #ctx: Context
  readonly #version: string
  readonly #lobby_ports: LobbyPorts
  readonly #http: HttpServer
  readonly #checks: Poller
  readonly #stop_listening: () => void
  readonly #timers: readonly NodeJS.Timeout[]
  /** Sessions by node. */
  readonly #sessions = new Map<string, NodeSessions>()
  readonly #guests = new Set<Duplex>()
  #opened: Promise<Opened> | null = null
  /** Time until which nodes of the previous edge may connect, on the monotonic clock. */
  readonly #return_end_ms: number
  /** Callers that wait for the link of a node. */
  readonly #waiting = new Set<{ node_id: string; wake: () => void }>()
  #retired_ms: number | null = null
  /** Connections of players at the edge of a node, and other calls that end. */
  #ports_count = 0
  #calls_count = 0

  constructor(ctx: Context, { path, version, lobby_ports, is_successor }: ListenerOptions) {
    this.path = path
    this.#ctx = ctx
    this.#version = version
    this.#lobby_ports = lobby_ports
    this.#return_end_ms = is_successor ? ctx.elapsed() + NODES_RETURN_MS_MAX : 0
    this.#http = createHttpServer((_request, response) => response.writeHead(404).end())
    this.#http.on('upgrade', (request, socket) => this.#onUpgrade(request, socket))
    this.#checks = createPoller(ctx, {
      run: () => this.#endRemoved(),
      failure: 'removed nodes could not be read; retrying',
    })
    this.#stop_listening = ctx.listener.on(CHANNELS.nodes, () => this.#checks.wake())
    this.#timers = [
      setInterval(() => this.#sessions.size > 0 && this.#checks.wake(), CHECK_MS),
      setInterval(() => this.#checks.wake(), CHECK_UNLINKED_MS),
    ]
    ctx.metrics.gauge('linked_nodes', 'Joined nodes whose link is open.', [], (set) =>
      set([...this.#sessions.values()].filter((sessions) => LINKED_KINDS.every((kind) => sessions.has(kind))).length),
    )
  }

  async listen(): Promise<void> {
    rmSync(this.path, { force: true })
    this.#http.listen(this.path)
    await once(this.#http, 'listening')
    chmodSync(this.path, 0o600)
  }

  /** The connection to the lobbies of a node; null while its link is down. */
  streamsOf(node_id: string): ClientHttp2Session | null {
    const session = this.#sessions.get(node_id)?.get('muster-streams')?.session as ClientHttp2Session | undefined
    return session === undefined || session.destroyed ? null : session
  }

  /** The same, for a node that is expected to connect again. */
  async streamsSoonOf(node_id: string): Promise<ClientHttp2Session | null> {
    const wait_ms = this.#return_end_ms - this.#ctx.elapsed()
    if (wait_ms <= 0) return null
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiting = { node_id, wake: resolve }
    this.#waiting.add(waiting)
    const overdue = setTimeout(resolve, wait_ms)
    await promise
    clearTimeout(overdue)
    this.#waiting.delete(waiting)
    return this.streamsOf(node_id)
  }

  /** What must not end with this edge yet, beside connections to the edge itself. */
  get carried_count(): number {
    const has_calls = this.#retired_ms !== null && this.#ctx.elapsed() - this.#retired_ms < CALLS_RETIRE_MS_MAX
    return this.#ports_count + (has_calls ? this.#calls_count : 0)
  }

  /** Nodes connect to the next edge, which accepts by now. What runs over these links runs on, until `close`. */
  retire(): void {
    this.#retired_ms = this.#ctx.elapsed()
    for (const [node_id, sessions] of this.#sessions) {
      this.#retireNode(node_id, sessions).catch((error: unknown) => {
        this.#ctx.log.warn({ err: error, node_id }, 'node keeps no link to this edge; its connections end')
        for (const { session } of sessions.values()) session.destroy()
      })
    }
  }

  async #retireNode(node_id: string, sessions: NodeSessions): Promise<void> {
    const streams = this.streamsOf(node_id)
    if (streams === null) throw new Error('Its connection for players is down.')
    const stream = streams.request(
      { ':method': 'POST', ':path': RETIRE_PATH },
      { endStream: true, signal: AbortSignal.timeout(RETIRE_MS_MAX) },
    )
    const { ':status': status } = await responseOf(stream)
    stream.resume()
    if (status !== 200) throw new Error('It is of an older version.')
    this.#ctx.log.info({ node_id, connections: sessions.size }, 'node connects to the next edge')
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    for (const { wake } of this.#waiting) wake()
    this.#stop_listening()
    await this.#checks.close()
    for (const guest of this.#guests) guest.destroy()
    for (const sessions of this.#sessions.values()) for (const { session } of sessions.values()) session.destroy()
    this.#http.close()
    this.#http.closeAllConnections()
  }

  #onUpgrade({ url, headers }: IncomingMessage, socket: Duplex): void {
    socket.on('error', () => {})
    if (url !== LINK_PATH || this.#guests.size >= GUESTS_MAX || this.#retired_ms !== null) {
      socket.end('HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
      return
    }
    this.#guests.add(socket)
    const overdue = setTimeout(() => this.#guests.has(socket) && socket.destroy(), GUEST_MS_MAX)
    socket.once('close', () => {
      clearTimeout(overdue)
      this.#guests.delete(socket)
    })
    this.#open().then(
      (opened) => {
        socket.write(SWITCHING)
        // A server for each connection, because the secured side does not show which connection is below it.
        const tls = createTlsServer(opened.options, (secured) =>
          this.#onSecured(opened, secured, { below: socket, client_ip: String(headers['x-forwarded-for'] ?? '-') }),
        )
        tls.on('tlsClientError', () => void socket.destroy())
        tls.emit('connection', socket)
      },
      (error: unknown) => {
        this.#ctx.log.error({ err: error }, 'link could not be opened')
        socket.destroy()
      },
    )
  }

  /** At the first link, because most platforms have none. */
  #open(): Promise<Opened> {
    this.#opened ??= this.#openAuthority().catch((error: unknown) => {
      this.#opened = null
      throw error
    })
    return this.#opened
  }

  async #openAuthority(): Promise<Opened> {
    const { openPlatformAuthority } = await import('./authority.ts')
    const authority = await openPlatformAuthority(this.#ctx)
    const own = await authority.certifyPlatform(this.#ctx.now())
    const options: TlsOptions = {
      cert: own.certificate + authority.certificate,
      key: own.key,
      ca: authority.certificate,
      requestCert: true,
      // A machine that joins has no certificate, and one that ended lately may be renewed: peers.ts decides.
      rejectUnauthorized: false,
      minVersion: 'TLSv1.3',
      ALPNProtocols: [...CONNECTION_KINDS],
      handshakeTimeout: HANDSHAKE_MS_MAX,
    }
    return { authority, certificate: new X509Certificate(authority.certificate), options }
  }

  #onSecured({ certificate, authority }: Opened, socket: TLSSocket, { below, client_ip }: Arrival): void {
    socket.on('error', () => {})
    const peer = nodePeer(socket, certificate, this.#ctx.now())
    if (socket.alpnProtocol === 'muster-streams') {
      if (peer === null || peer.is_late) socket.destroy()
      else void this.#carryStreams(peer, socket, below)
      return
    }
    const kind = socket.alpnProtocol === 'muster-edge' ? 'muster-edge' : 'muster-calls'
    const caller: LinkCaller = { peer, client_ip, round_trip_ms: null }
    const session = performServerHandshake(socket, sessionOptions(kind))
    keepAlive(session, (round_trip_ms) => {
      caller.round_trip_ms = round_trip_ms
    })
    if (peer !== null) void this.#keepCalls(peer, kind, session, below)
    const calls = {
      ...{ ctx: this.#ctx, version: this.#version, lobby_ports: this.#lobby_ports, links_path: this.path },
      authority: async () => authority,
    }
    session.on('stream', (stream, headers) => {
      stream.on('error', () => {})
      this.#count(stream, String(headers[':path']))
      void serveCall(calls, caller, stream, headers)
    })
  }

  #count(stream: ServerHttp2Stream, path: string): void {
    if (LASTING_PATHS.has(path)) return
    if (path === '/lobby-port') {
      this.#ports_count++
      stream.once('close', () => this.#ports_count--)
    } else {
      this.#calls_count++
      stream.once('close', () => this.#calls_count--)
    }
  }

  /** A revoked certificate takes the place of no other connection. Its calls are refused one by one, with the reason. */
  async #keepCalls(peer: NodePeer, kind: ConnectionKind, session: Http2Session, below: Duplex): Promise<void> {
    if ((await this.#isValid(peer)) && !session.destroyed) this.#keep(peer, kind, session, below)
  }

  async #isValid({ node_id, key_hash }: NodePeer): Promise<boolean> {
    const known = await this.#known([node_id]).catch(() => new Map<string, string>())
    return known.get(node_id) === key_hash
  }

  /** Only for a node that is one of the platform now. */
  async #carryStreams(peer: NodePeer, socket: TLSSocket, below: Duplex): Promise<void> {
    if (!(await this.#isValid(peer)) || socket.destroyed) {
      socket.destroy()
      return
    }
    const session = connect('http://node', { ...sessionOptions('muster-streams'), createConnection: () => socket })
    keepAlive(session)
    this.#keep(peer, 'muster-streams', session, below)
  }

  /** The newest connection of a kind counts. */
  #keep({ node_id, key_hash }: NodePeer, kind: ConnectionKind, session: Http2Session, below: Duplex): void {
    const { log } = this.#ctx
    this.#guests.delete(below)
    // It began before this edge was replaced. The node dials again.
    if (this.#retired_ms !== null) {
      session.destroy()
      return
    }
    const sessions: NodeSessions = this.#sessions.get(node_id) ?? new Map()
    this.#sessions.set(node_id, sessions)
    sessions.get(kind)?.session.destroy()
    sessions.set(kind, { session, key_hash })
    log.info({ node_id, kind }, 'node is linked')
    if (kind === 'muster-streams') {
      for (const waiting of this.#waiting) if (waiting.node_id === node_id) waiting.wake()
    }
    session.once('close', () => {
      if (sessions.get(kind)?.session !== session) return
      sessions.delete(kind)
      if (sessions.size === 0) this.#sessions.delete(node_id)
      log.info({ node_id, kind }, 'link of a node has ended')
    })
  }

  /** Closes the links of removed nodes, and takes their database roles. */
  async #endRemoved(): Promise<void> {
    const ids = [...this.#sessions.keys()]
    if (ids.length > 0) {
      const known = await this.#known(ids)
      for (const node_id of ids) {
        const valid = known.get(node_id)
        for (const { session, key_hash } of this.#sessions.get(node_id)?.values() ?? []) {
          if (key_hash === valid) continue
          this.#ctx.log.warn({ node_id }, 'node was removed; its link is closed')
          session.destroy()
        }
      }
    }
    await dropRevokedRoles(this.#ctx)
  }

  /** The hash of the key of each of these nodes, without removed ones. */
  async #known(node_ids: readonly string[]): Promise<Map<string, string>> {
    const { rows } = await this.#ctx.pool.query<{ node_id: string; key_hash: string }>({
      name: 'known-nodes',
      text: `select node_id, key_hash from node_links join nodes using (node_id)
        where removed_ts is null and revoke_ts is null and node_id = any($1)`,
      values: [node_ids],
    })
    return new Map(rows.map(({ node_id, key_hash }) => [node_id, key_hash]))
  }
}
