// Raw UDP: datagrams to a number of the edge's go to the lobby that has it, each as it came. A source, which is an address
// and a port, has a socket of its own towards the lobby, so that the lobby tells sources apart and its answers find back.
// A session is opened by a source's first datagram (on ports that require it, by its token: udp-handshake.ts); unproven
// until the source is known to be where it says, by a seat or by our cookie (address-validation.ts); proven; and ended when it has
// been idle, when its lobby has ended, or when others need the place more.
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import { clientKey } from '../../addresses/client-ip.ts'
import type { Context } from '../../context.ts'
import { createTimerWhileNeeded } from '../../timer-while-needed.ts'
import type { ConnectionLimits } from '../connection-limits.ts'
import {
  UDP_DATAGRAMS_PER_SECOND_MAX,
  UDP_IDLE_MS_MAX,
  UDP_SESSIONS_MAX,
  UDP_SESSIONS_PER_CLIENT_MAX,
  UDP_SESSIONS_SHARE,
  UDP_SWEEP_MS,
  UDP_UNPROVEN_IDLE_MS_MAX,
  UDP_WAITING_MAX,
  UNPROVEN_BYTES_MAX,
  UNPROVEN_BYTES_PER_CLIENT_MAX,
} from '../limits.ts'
import type { LobbyConnections } from '../lobby-connections.ts'
import type { LobbyPort, Routes, StreamAddress } from '../routes.ts'
import { type Allowance, createAllowance } from './address-validation.ts'
import type { OpenPort } from './edge-ports.ts'
import type { PortOwners } from './port-owners.ts'
import { proxyHeader } from './proxy-protocol.ts'
import type { Seats } from './seats.ts'
import { createWelcome, isWords, REFUSED, WELCOME } from './udp-handshake.ts'

export type Udp = { open: (port: number) => Promise<OpenPort | null>; close: () => void }
export type UdpOptions = {
  routes: Routes
  owners: PortOwners
  seats: Seats
  crowd: ConnectionLimits
  lobby_connections: LobbyConnections
  host: string | null
}

/** A client by its bucket, with what is counted of it. */
type Client = { name: string; sessions: Set<Session>; datagrams: number; unproven_bytes: number }

type Session = {
  front: Front
  key: string
  address: string
  port: number
  client: Client
  lobby_id: string
  upstream: Socket
  /** Until the socket is connected. */
  waiting: Buffer[] | null
  /** Null: proven. */
  allowance: Allowance | null
  /** It has shown its player's token, and where it is. */
  is_greeted: boolean
  /** In front of each datagram to the lobby. */
  header: Buffer | null
  is_active: boolean
  idle_ms: number
  leave: () => void
}

/** One number of the edge's. */
type Front = { number: number; socket: Socket; sessions: Map<string, Session>; is_asking: boolean; waiting: Arrival[] }
type Arrival = { datagram: Buffer; source: RemoteInfo }
type Target = { owner: LobbyPort; address: StreamAddress }
/** Whose player a source must be; `target` is null where it has a session already. */
type Listener = { lobby_id: string; target: Target | null }

const LOOPBACK = /^(?:127\.|::1$|::ffff:127\.)/
/** Addresses are addresses here: nothing is to be looked up, nor waited for. */
const asItIs = (address: string, ...rest: unknown[]): void => {
  const callback = rest.at(-1) as (error: null, address: string, family: number) => void
  callback(null, address, isIPv6(address) ? 6 : 4)
}

export function createUdp(ctx: Context, options: UdpOptions): Udp {
  const { routes, owners, seats, crowd, lobby_connections, host } = options
  const clients = new Map<string, Client>()
  /** By how soon they are given up for others: the unproven ones first. */
  const unproven = new Set<Session>()
  const proven = new Set<Session>()
  const welcome = createWelcome(ctx.elapsed)
  const datagrams = { received: 0, sent: 0 }
  const { metrics } = ctx
  metrics.gauge('edge_udp_sources', 'Sources of datagrams that have a session.', ['state'], (tell) => {
    tell(proven.size, 'proven')
    tell(unproven.size, 'unproven')
  })
  metrics.sum('edge_datagrams_total', 'Datagrams between sources and lobbies.', ['direction'], (tell) => {
    tell(datagrams.received, 'received')
    tell(datagrams.sent, 'sent')
  })
  let unproven_bytes = 0
  const sweeping = createTimerWhileNeeded(UDP_SWEEP_MS, sweep)
  /** Whoever forges sources must not take the places of connections. */
  const sessions_max = Math.min(UDP_SESSIONS_MAX, Math.floor(crowd.connections_max * UDP_SESSIONS_SHARE))

  function onDatagram(front: Front, datagram: Buffer, source: RemoteInfo): void {
    const session = front.sessions.get(`${source.address} ${source.port}`)
    if (session === undefined) meet(front, { datagram, source })
    else if (!isWords(datagram)) receive(session, datagram)
    // The welcome was lost.
    else if (session.is_greeted) answer(front, source, WELCOME)
    else hear(front, { datagram, source }, { lobby_id: session.lobby_id, target: null })
  }

  function receive(session: Session, datagram: Buffer): void {
    if (session.client.datagrams >= UDP_DATAGRAMS_PER_SECOND_MAX) return
    session.client.datagrams++
    datagrams.received++
    session.is_active = true
    session.allowance?.received(datagram.length)
    if (session.waiting === null) pass(session, datagram)
    else if (session.waiting.length < UDP_WAITING_MAX) session.waiting.push(datagram)
  }

  function pass({ upstream, header }: Session, datagram: Buffer): void {
    upstream.send(header === null ? datagram : [header, datagram], ignore)
  }

  function reply(session: Session, datagram: Buffer): void {
    const { allowance, client } = session
    if (allowance !== null) {
      const sum = unproven_bytes + datagram.length
      const of_client = client.unproven_bytes + datagram.length
      if (sum > UNPROVEN_BYTES_MAX || of_client > UNPROVEN_BYTES_PER_CLIENT_MAX) return
      if (!allowance.mayReply(datagram.length)) return
      unproven_bytes = sum
      client.unproven_bytes = of_client
    }
    session.is_active = true
    datagrams.sent++
    session.front.socket.send(datagram, session.port, session.address, ignore)
  }

  /** A source that has no session: what becomes of it follows from whose the port is. */
  function meet(front: Front, arrival: Arrival): void {
    if (front.is_asking) {
      if (front.waiting.length < UDP_WAITING_MAX) front.waiting.push(arrival)
      return
    }
    const target = targetOf(front, clientKey(arrival.source.address))
    if (!(target instanceof Promise)) {
      admit(front, arrival, target)
      return
    }
    front.is_asking = true
    front.waiting.push(arrival)
    target
      .catch((error: unknown) => {
        ctx.log.debug({ err: error, number: front.number }, 'a datagram could not be routed')
        return null
      })
      .then((found) => {
        front.is_asking = false
        for (const waiting of front.waiting.splice(0)) {
          const { address, port } = waiting.source
          const session = front.sessions.get(`${address} ${port}`)
          if (session === undefined) admit(front, waiting, found)
          else onDatagram(front, waiting.datagram, waiting.source)
        }
      })
  }

  function targetOf(front: Front, source: string): Target | null | Promise<Target | null> {
    const owner = owners.find('udp', front.number, source)
    if (owner instanceof Promise) return owner.then((found) => withAddress(found, source))
    return withAddress(owner, source)
  }

  function withAddress(owner: LobbyPort | null, source: string): Target | null | Promise<Target | null> {
    const address = owner && routes.stream(owner, source)
    if (address instanceof Promise) return address.then((found) => owner && found && { owner, address: found })
    return owner && address && { owner, address }
  }

  function admit(front: Front, arrival: Arrival, target: Target | null): void {
    if (target === null) return
    const { datagram, source } = arrival
    if (target.address.require_player_token || isWords(datagram)) {
      hear(front, arrival, { lobby_id: target.owner.lobby_id, target })
      return
    }
    const session = begin(front, source, target, LOOPBACK.test(source.address) ? null : createAllowance())
    if (session !== null) receive(session, datagram)
  }

  /** A source that has yet to show its cookie and its token. */
  function hear(front: Front, { datagram, source }: Arrival, listener: Listener): void {
    const words = welcome.read(source, front.number, datagram)
    if (words.kind === 'answer') answer(front, source, words.datagram)
    else if (words.kind === 'token') void greet(front, source, listener, words.token)
  }

  async function greet(front: Front, source: RemoteInfo, { lobby_id, target }: Listener, token: string): Promise<void> {
    try {
      if (!(await isPlayer(lobby_id, token))) {
        answer(front, source, REFUSED)
        return
      }
      const before = front.sessions.get(`${source.address} ${source.port}`)
      // One that ended meanwhile begins again with the next words.
      const session = before ?? (target && begin(front, source, target, null))
      if (session === null || session.lobby_id !== lobby_id) return
      if (session.allowance !== null) prove(session)
      session.is_greeted = true
      if (before === undefined && target?.address.require_player_token) receive(session, Buffer.from(token, 'latin1'))
      answer(front, source, WELCOME)
    } catch (error) {
      ctx.log.debug({ err: error }, 'a player could not be looked up')
    }
  }

  async function isPlayer(lobby_id: string, text: string): Promise<boolean> {
    const token = verified(ctx, text)
    if (token?.kind !== 'player' || token.lobby_id !== lobby_id) return false
    return !(await seats.wasRemoved(lobby_id, token.player_id))
  }

  function answer(front: Front, { address, port }: RemoteInfo, datagram: Buffer): void {
    front.socket.send(datagram, port, address, ignore)
  }

  function begin(front: Front, source: RemoteInfo, target: Target, allowance: Allowance | null): Session | null {
    const client = clientOf(clientKey(source.address))
    if (client.sessions.size >= UDP_SESSIONS_PER_CLIENT_MAX) endOneOf(client.sessions)
    if (unproven.size + proven.size >= sessions_max) endOneOf(unproven.size > 0 ? unproven : proven)
    const is_room = client.sessions.size < UDP_SESSIONS_PER_CLIENT_MAX && unproven.size + proven.size < sessions_max
    const leave = is_room ? crowd.enter(source.address) : null
    if (leave === null) {
      forgetClient(client)
      return null
    }
    const { address } = target
    const upstream = createSocket({ type: 'udp4', lookup: asItIs })
    const local = { address: front.socket.address().address, port: front.number }
    const session: Session = {
      ...{ front, key: `${source.address} ${source.port}`, address: source.address, port: source.port, client, leave },
      ...{ lobby_id: target.owner.lobby_id, upstream, waiting: [], allowance },
      ...{ is_greeted: false, is_active: true, idle_ms: 0 },
      header: address.proxy_protocol ? proxyHeader('datagram', source, local) : null,
    }
    // ECONNREFUSED, told by ICMP: the server does not listen yet, or no more. It says nothing about the next datagram.
    upstream.on('error', ignore)
    upstream.on('message', (datagram) => reply(session, datagram))
    upstream.connect(address.port, address.hostname, () => {
      for (const datagram of session.waiting ?? []) pass(session, datagram)
      session.waiting = null
    })
    front.sessions.set(session.key, session)
    client.sessions.add(session)
    lobby_connections.enter(session.lobby_id)
    if (allowance === null) proven.add(session)
    else if (seats.has(session.lobby_id, client.name)) prove(session)
    else unproven.add(session)
    return session
  }

  function prove(session: Session): void {
    session.allowance = null
    unproven.delete(session)
    proven.add(session)
  }

  function end(session: Session): void {
    session.front.sessions.delete(session.key)
    session.client.sessions.delete(session)
    lobby_connections.leave(session.lobby_id)
    forgetClient(session.client)
    unproven.delete(session)
    proven.delete(session)
    session.waiting = []
    session.upstream.close()
    session.leave()
  }

  /** The oldest that has nothing proven, or has been silent: players who play keep theirs, and then none is ended. */
  function endOneOf(sessions: ReadonlySet<Session>): void {
    for (const session of sessions) {
      if (session.allowance === null && session.idle_ms === 0) continue
      end(session)
      return
    }
  }

  function clientOf(name: string): Client {
    const client = clients.get(name) ?? { name, sessions: new Set(), datagrams: 0, unproven_bytes: 0 }
    clients.set(name, client)
    sweeping.need()
    return client
  }

  function forgetClient(client: Client): void {
    if (client.sessions.size === 0) clients.delete(client.name)
  }

  /** Returns whether there is a client. */
  function sweep(): boolean {
    unproven_bytes = 0
    for (const client of clients.values()) {
      client.datagrams = 0
      client.unproven_bytes = 0
    }
    for (const session of [...unproven, ...proven]) {
      session.idle_ms = session.is_active ? 0 : session.idle_ms + UDP_SWEEP_MS
      session.is_active = false
      if (session.allowance !== null && seats.has(session.lobby_id, session.client.name)) prove(session)
      const idle_ms_max = session.allowance === null ? UDP_IDLE_MS_MAX : UDP_UNPROVEN_IDLE_MS_MAX
      const is_over = owners.known('udp', session.front.number)?.lobby_id !== session.lobby_id
      if (is_over || session.idle_ms >= idle_ms_max) end(session)
    }
    return clients.size > 0
  }

  async function open(number: number): Promise<OpenPort | null> {
    const socket = await bind(ctx, number, host)
    if (socket === null) return null
    const front: Front = { number, socket, sessions: new Map(), is_asking: false, waiting: [] }
    socket.on('message', (datagram, source) => onDatagram(front, datagram, source))
    return {
      close: () => {
        for (const session of [...front.sessions.values()]) end(session)
        socket.close()
      },
    }
  }

  return { open, close: sweeping.close }
}

/** Null: another program has the port. Null for a host is every address of the machine. */
async function bind(ctx: Context, port: number, host: string | null): Promise<Socket | null> {
  const types = host === null ? (['udp6', 'udp4'] as const) : [isIPv6(host) ? ('udp6' as const) : ('udp4' as const)]
  for (const type of types) {
    const socket = createSocket({ type, lookup: asItIs })
    const listening = once(socket, 'listening')
    socket.bind({ port, exclusive: true, ...(host !== null && { address: host }) })
    try {
      await listening
      // What cannot be sent is lost, as datagrams are.
      socket.on('error', ignore)
      return socket
    } catch (error) {
      socket.close()
      const { code } = error as NodeJS.ErrnoException
      if (host === null && type === 'udp6' && (code === 'EAFNOSUPPORT' || code === 'EADDRNOTAVAIL')) continue
      if (code !== 'EADDRINUSE') ctx.log.warn({ err: error, port }, 'a udp port cannot be bound')
      return null
    }
  }
  return null
}

function verified(ctx: Context, text: string) {
  try {
    return ctx.keys.verify(text, ctx.now())
  } catch {
    // Whatever is wrong with it, it is none.
    return null
  }
}

function ignore(): void {}
