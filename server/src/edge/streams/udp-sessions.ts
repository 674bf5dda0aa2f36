// The sessions of UDP sources. A source is an address and a port. Its session has a socket of its own towards the lobby, so
// that the lobby can tell sources apart and its replies find the way back.
//
// A session begins unvalidated, unless its source is known to be where it claims (address-validation.ts). It becomes validated
// by the handshake (contract/src/edge/udp-handshake.ts), or by a seat that its client took in the lobby (seats.ts). It ends when it has been
// silent, when its lobby has ended, or when another source needs the slot.
import type { RemoteInfo } from 'node:dgram'
import { proxyHeader, type StreamAdmitted } from '@musterhost/contract/edge'
import { clientKey } from '../../addresses/client-ip.ts'
import type { SharedShare } from '../../addresses/client-share.ts'
import { createTimerWhileNeeded } from '../../flow/timer-while-needed.ts'
import type { LobbyPaths, NodePort } from '../../links/platform/lobby-paths.ts'
import type { Metrics } from '../../observe/metrics.ts'
import {
  UDP_DATAGRAMS_PER_SECOND_MAX,
  UDP_IDLE_MS_MAX,
  UDP_SESSIONS_MAX,
  UDP_SESSIONS_PER_CLIENT_MAX,
  UDP_SESSIONS_SHARE,
  UDP_SWEEP_MS,
  UDP_UNVALIDATED_IDLE_MS_MAX,
  UDP_WAITING_MAX,
  UNVALIDATED_BYTES_MAX,
  UNVALIDATED_BYTES_PER_CLIENT_MAX,
} from '../limits.ts'
import type { ConnectionLimits } from '../presence/connection-limits.ts'
import type { FlowPlayer } from '../presence/flows.ts'
import type { LobbyConnections } from '../presence/lobby-connections.ts'
import type { RoutedPort, StreamAddress } from '../routes/routes.ts'
import type { SharedCounts } from '../shared-counts.ts'
import { type Allowance, type AllowanceState, createAllowance } from './address-validation.ts'
import type { PortOwners } from './port-owners.ts'
import type { Seats } from './seats.ts'
import type { UdpSocket } from './udp-socket.ts'
import { openUpstream, type UdpUpstream } from './udp-upstream.ts'

/** A client by its key, and what is counted for it in the current second. */
type Client = { client_key: string; sessions: Set<UdpSession>; datagrams: number; unvalidated_bytes: number }

export type UdpSession = {
  readonly udp_port: UdpPort
  readonly key: string
  readonly address: string
  readonly port: number
  /** The socket that its last datagram came to. Replies leave from its address. */
  via: UdpSocket
  readonly client: Client
  readonly lobby_id: string
  readonly upstream: UdpUpstream
  /** Datagrams that wait until the upstream socket is connected; then null. */
  waiting: Buffer[] | null
  /** Null: the source is validated. */
  allowance: Allowance | null
  /** The source has completed the handshake with its player's token. */
  is_handshake_done: boolean
  /** The PROXY header in front of each datagram to the lobby; null: none. */
  readonly header: Buffer | null
  is_active: boolean
  idle_ms: number
  /** Bytes of its datagrams from the source, and to it. */
  bytesRead: number
  bytesWritten: number
  /** Null: the lobby's server checks the seats. */
  readonly player: FlowPlayer | null
  readonly leave: () => void
}

/** A datagram that was read and not forwarded yet. `data`: base64. `local`: of the socket that it came to. */
export type DatagramFacts = { source: RemoteInfo; data: string; local: string | null }

/** A session for another process: its connected upstream socket travels beside it, if it has one. */
export type SessionFacts = {
  address: string
  port: number
  lobby_id: string
  /** The address of the socket that its last datagram came to. */
  local: string | null
  allowance: AllowanceState | null
  is_handshake_done: boolean
  /** Base64. */
  header: string | null
  player: FlowPlayer | null
  /** The port of a lobby on a joined node, which has no upstream socket here; null: on this machine. */
  node_port: NodePort | null
}

/**
 * One of the edge's udp ports. `main`: the socket of the configured address, or of every address without a socket of its
 * own. `waiting`: datagrams that wait for the look-up of the port's lobby.
 */
export type UdpPort = {
  readonly number: number
  readonly main: UdpSocket
  /** The sockets of single addresses, by address. */
  readonly beside: Map<string, UdpSocket>
  readonly sessions: Map<string, UdpSession>
  is_looking_up: boolean
  readonly waiting: Arrival[]
  /** Another edge has the port: no session begins here any more. */
  is_released: boolean
}
/** `via`: the socket that the source's datagram came to. */
export type Origin = { source: RemoteInfo; via: UdpSocket }
export type Arrival = Origin & { datagram: Buffer }
/** The lobby that a port belongs to, and its address. */
export type UdpTarget = { owner: RoutedPort; address: StreamAddress }

export type UdpSessionsOptions = {
  paths: Pick<LobbyPaths, 'datagrams'>
  owners: PortOwners
  seats: Seats
  connection_limits: ConnectionLimits
  lobby_connections: LobbyConnections
  /** Null: this process is the only edge of the machine. */
  shared: SharedCounts | null
}

export class UdpSessions {
  readonly #options: UdpSessionsOptions
  readonly #clients = new Map<string, Client>()
  /** Both in order of their begin. */
  readonly #unvalidated = new Set<UdpSession>()
  readonly #validated = new Set<UdpSession>()
  /** Forged sources must not take the slots of connections. */
  readonly #sessions_max: number
  /** The counts of other edge processes. */
  readonly #shares: ClientShares | null
  readonly #sweeping = createTimerWhileNeeded(UDP_SWEEP_MS, () => this.#sweep())
  /** Bytes sent to unvalidated sources in the current second. */
  #unvalidated_bytes = 0
  #received_count = 0
  #sent_count = 0

  constructor(options: UdpSessionsOptions) {
    const { connections_max } = options.connection_limits
    this.#options = options
    this.#shares = options.shared && sharesOf(options.shared)
    this.#sessions_max = Math.min(UDP_SESSIONS_MAX, Math.floor(connections_max * UDP_SESSIONS_SHARE))
  }

  registerMetrics(metrics: Metrics): void {
    metrics.gauge('edge_udp_sources', 'UDP sources that have a session.', ['state'], (report) => {
      report(this.#validated.size, 'proven')
      report(this.#unvalidated.size, 'unproven')
    })
    const help = 'Datagrams between UDP sources and lobbies.'
    metrics.sum('edge_datagrams_total', help, ['direction'], (report) => {
      report(this.#received_count, 'received')
      report(this.#sent_count, 'sent')
    })
  }

  /**
   * Begins a session. `allowance`: null for a validated source. `admitted`: null where the lobby's server checks the
   * seats. Returns null when there is no slot.
   */
  begin(
    udp_port: UdpPort,
    { source, via }: Origin,
    target: UdpTarget,
    allowance: Allowance | null,
    admitted: StreamAdmitted | null = null,
  ): UdpSession | null {
    const { connection_limits, paths } = this.#options
    if (udp_port.is_released) return null
    const client = this.#clientOf(clientKey(source.address))
    const leave = this.#hasRoom(client) ? connection_limits.enter(source.address) : null
    if (leave === null) {
      this.#forgetClient(client)
      return null
    }
    const { address } = target
    const local = { address: via.socket.address().address, port: udp_port.number }
    const upstream = openUpstream(address, admitted?.address ?? null, paths)
    const session: UdpSession = {
      ...{ udp_port, via, key: keyOf(source), address: source.address, port: source.port, client },
      ...{ lobby_id: target.owner.lobby_id, upstream, waiting: [], allowance },
      ...BEGUN,
      player: admitted && playerOf(admitted),
      leave() {
        leave()
        admitted?.leave()
      },
      header: address.proxy_protocol ? proxyHeader('datagram', source, local, admitted) : null,
    }
    this.#add(session)
    return session
  }

  /** Continues a session of another edge. `upstream` receives nothing yet. Returns null when there is no slot. */
  adopt(udp_port: UdpPort, upstream: UdpUpstream, facts: SessionFacts, leavePlayer: () => void): UdpSession | null {
    const { address, port, lobby_id, allowance, header, player } = facts
    const client = this.#clientOf(clientKey(address))
    const leave = this.#hasRoom(client) ? this.#options.connection_limits.enter(address) : null
    if (leave === null) {
      this.#forgetClient(client)
      return null
    }
    const session: UdpSession = {
      ...{ udp_port, key: keyOf({ address, port }), address, port, client, lobby_id, upstream, waiting: null, player },
      via: socketFor(udp_port, facts.local),
      ...BEGUN,
      allowance: allowance && createAllowance(allowance),
      is_handshake_done: facts.is_handshake_done,
      leave() {
        leave()
        leavePlayer()
      },
      header: header === null ? null : Buffer.from(header, 'base64'),
    }
    this.#add(session)
    return session
  }

  /** The facts by which another process continues the session. Null: it has no target yet, or it has ended. */
  factsOf(session: UdpSession): SessionFacts | null {
    const { udp_port, key, waiting, upstream, address, port, lobby_id, allowance, player } = session
    if (waiting !== null || udp_port.sessions.get(key) !== session) return null
    return {
      ...{ address, port, local: session.via.local, lobby_id, player, node_port: upstream.node_port },
      allowance: allowance?.state() ?? null,
      is_handshake_done: session.is_handshake_done,
      header: session.header?.toString('base64') ?? null,
    }
  }

  /** The same session is now as another edge says. */
  change(session: UdpSession, { allowance, is_handshake_done, local }: SessionFacts): void {
    session.via = socketFor(session.udp_port, local)
    session.is_handshake_done = is_handshake_done
    session.is_active = true
    if (allowance !== null) session.allowance = createAllowance(allowance)
    else if (session.allowance !== null) this.validate(session)
  }

  /** Forwards a datagram of the source to the lobby. */
  receive(session: UdpSession, datagram: Buffer): void {
    if (!this.#mayForward(session.client)) return
    session.client.datagrams++
    this.#received_count++
    session.bytesRead += datagram.length
    session.is_active = true
    session.allowance?.received(datagram.length)
    if (session.waiting === null) forward(session, datagram)
    else if (session.waiting.length < UDP_WAITING_MAX) session.waiting.push(datagram)
  }

  /** The source is known to be where it claims: its allowance ends. */
  validate(session: UdpSession): void {
    session.allowance = null
    this.#unvalidated.delete(session)
    this.#validated.add(session)
  }

  /** Ends the session of a source, if it has one. */
  endOf(udp_port: UdpPort, key: string): void {
    const session = udp_port.sessions.get(key)
    if (session !== undefined) this.#end(session)
  }

  /** Ends all sessions of a port. */
  endAll(udp_port: UdpPort): void {
    for (const session of [...udp_port.sessions.values()]) this.#end(session)
  }

  close(): void {
    this.#sweeping.close()
  }

  #add(session: UdpSession): void {
    const { udp_port, client, lobby_id, upstream, allowance } = session
    const { lobby_connections, seats } = this.#options
    upstream.open({
      onOpen: () => {
        for (const datagram of session.waiting ?? []) forward(session, datagram)
        session.waiting = null
      },
      onDatagram: (datagram) => this.#reply(session, datagram),
    })
    udp_port.sessions.set(session.key, session)
    client.sessions.add(session)
    lobby_connections.enter(lobby_id, session)
    if (allowance === null) this.#validated.add(session)
    else if (seats.has(lobby_id, client.client_key)) this.validate(session)
    else this.#unvalidated.add(session)
  }

  /** Sends a datagram of the lobby to the source, within its allowance. */
  #reply(session: UdpSession, datagram: Buffer): void {
    const { allowance, client } = session
    if (allowance !== null) {
      const sum = this.#unvalidated_bytes + datagram.length
      const of_client = client.unvalidated_bytes + datagram.length
      if (sum > UNVALIDATED_BYTES_MAX || of_client > UNVALIDATED_BYTES_PER_CLIENT_MAX) return
      if (this.#shares !== null && !mayReplyUnvalidated(this.#shares, client, { sum, of_client })) return
      if (!allowance.mayReply(datagram.length)) return
      this.#unvalidated_bytes = sum
      client.unvalidated_bytes = of_client
    }
    session.is_active = true
    this.#sent_count++
    session.bytesWritten += datagram.length
    session.via.socket.send(datagram, session.port, session.address, ignore)
  }

  #mayForward({ client_key, datagrams }: Client): boolean {
    if (datagrams >= UDP_DATAGRAMS_PER_SECOND_MAX) return false
    return this.#shares?.datagrams.allows(client_key, datagrams + 1, UDP_DATAGRAMS_PER_SECOND_MAX) !== false
  }

  #isFull({ client_key, sessions }: Client): boolean {
    if (sessions.size >= UDP_SESSIONS_PER_CLIENT_MAX) return true
    return this.#shares?.sessions.allows(client_key, sessions.size + 1, UDP_SESSIONS_PER_CLIENT_MAX) === false
  }

  /** Ends sessions that may be displaced, and returns whether the client then has a slot for another one. */
  #hasRoom(client: Client): boolean {
    if (this.#isFull(client)) this.#endOneOf(client.sessions)
    if (this.#count >= this.#sessions_max)
      this.#endOneOf(this.#unvalidated.size > 0 ? this.#unvalidated : this.#validated)
    return !this.#isFull(client) && this.#count < this.#sessions_max
  }

  get #count(): number {
    return this.#unvalidated.size + this.#validated.size
  }

  #end(session: UdpSession): void {
    session.udp_port.sessions.delete(session.key)
    session.client.sessions.delete(session)
    const { client_key, sessions } = session.client
    this.#shares?.sessions.left(client_key, sessions.size, UDP_SESSIONS_PER_CLIENT_MAX)
    this.#options.lobby_connections.leave(session.lobby_id, session)
    this.#forgetClient(session.client)
    this.#unvalidated.delete(session)
    this.#validated.delete(session)
    session.waiting = []
    session.upstream.close()
    session.leave()
  }

  /** Ends the oldest session that is unvalidated or silent. Players who play keep theirs; then none is ended. */
  #endOneOf(sessions: ReadonlySet<UdpSession>): void {
    for (const session of sessions) {
      if (session.allowance === null && session.idle_ms === 0) continue
      this.#end(session)
      return
    }
  }

  #clientOf(client_key: string): Client {
    const known = this.#clients.get(client_key)
    const client = known ?? { client_key, sessions: new Set(), datagrams: 0, unvalidated_bytes: 0 }
    this.#clients.set(client_key, client)
    this.#sweeping.need()
    return client
  }

  #forgetClient(client: Client): void {
    if (client.sessions.size > 0) return
    this.#clients.delete(client.client_key)
    this.#forgetSecond(client)
    this.#shares?.sessions.left(client.client_key, 0, UDP_SESSIONS_PER_CLIENT_MAX)
  }

  #forgetSecond(client: Client): void {
    client.datagrams = 0
    client.unvalidated_bytes = 0
    this.#shares?.datagrams.left(client.client_key, 0, UDP_DATAGRAMS_PER_SECOND_MAX)
    this.#shares?.bytes.left(client.client_key, 0, UNVALIDATED_BYTES_PER_CLIENT_MAX)
  }

  /** Returns whether there is a client. */
  #sweep(): boolean {
    const { owners, seats } = this.#options
    this.#unvalidated_bytes = 0
    this.#shares?.bytes.left(ALL_CLIENTS, 0, UNVALIDATED_BYTES_MAX)
    for (const client of this.#clients.values()) this.#forgetSecond(client)
    for (const session of [...this.#unvalidated, ...this.#validated]) {
      session.idle_ms = session.is_active ? 0 : session.idle_ms + UDP_SWEEP_MS
      session.is_active = false
      if (session.allowance !== null && seats.has(session.lobby_id, session.client.client_key)) this.validate(session)
      const idle_ms_max = session.allowance === null ? UDP_IDLE_MS_MAX : UDP_UNVALIDATED_IDLE_MS_MAX
      const is_over = owners.known('udp', session.udp_port.number)?.lobby_id !== session.lobby_id
      if (is_over || session.idle_ms >= idle_ms_max) this.#end(session)
    }
    return this.#clients.size > 0
  }
}

type ClientShares = Record<'sessions' | 'datagrams' | 'bytes', SharedShare>

/** Among the keys of clients. */
const ALL_CLIENTS = 'all'

function sharesOf(shared: SharedCounts): ClientShares {
  return {
    sessions: shared.of('udp sessions'),
    datagrams: shared.of('udp datagrams'),
    bytes: shared.of('udp bytes'),
  }
}

function mayReplyUnvalidated(
  { bytes }: ClientShares,
  { client_key }: Client,
  { sum, of_client }: { sum: number; of_client: number },
): boolean {
  if (!bytes.allows(ALL_CLIENTS, sum, UNVALIDATED_BYTES_MAX)) return false
  return bytes.allows(client_key, of_client, UNVALIDATED_BYTES_PER_CLIENT_MAX)
}

const BEGUN = { bytesRead: 0, bytesWritten: 0, is_handshake_done: false, is_active: true, idle_ms: 0 }

export function keyOf({ address, port }: Pick<RemoteInfo, 'address' | 'port'>): string {
  return `${address} ${port}`
}

/** `local`: of the socket. The main one has replaced a socket that is closed. */
export function socketFor({ main, beside }: UdpPort, local: string | null): UdpSocket {
  return (local === null ? undefined : beside.get(local)) ?? main
}

export function socketsOf({ main, beside }: UdpPort): UdpSocket[] {
  return [main, ...beside.values()]
}

function playerOf({ leave: _, ...player }: StreamAdmitted): FlowPlayer {
  return player
}

function forward({ upstream, header }: UdpSession, datagram: Buffer): void {
  if (header === null) upstream.send(datagram)
  else upstream.send(header, datagram)
}

function ignore(): void {}
