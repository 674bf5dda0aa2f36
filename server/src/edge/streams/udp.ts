// Raw UDP: a datagram to one of the edge's ports is forwarded unchanged to the lobby that has the port. A source's first
// datagram opens a session (udp-sessions.ts). On ports that require player tokens, the handshake does
// (contract/src/edge/udp-handshake.ts).
import type { RemoteInfo, Socket } from 'node:dgram'
import { networkInterfaces } from 'node:os'
import { ApiError } from '@musterhost/contract'
import {
  ACCEPTED,
  AddressHandshake,
  isHandshakeMessage,
  REFUSED,
  type StreamAdmission,
} from '@musterhost/contract/edge'
import { clientKey } from '../../addresses/client-ip.ts'
import { isLoopback } from '../../addresses/own-addresses.ts'
import type { Context } from '../../context.ts'
import { datagramHandleOf } from '../handles.ts'
import { UDP_ADDRESSES_EVERY_MS, UDP_ADDRESSES_MAX, UDP_ADMITTING_MAX, UDP_WAITING_MAX } from '../limits.ts'
import type { Players } from '../presence/players.ts'
import type { RoutedPort, Routes } from '../routes/routes.ts'
import { createAllowance } from './address-validation.ts'
import type { OpenPort } from './edge-ports.ts'
import {
  type Arrival,
  type DatagramFacts,
  keyOf,
  type Origin,
  type SessionFacts,
  socketFor,
  socketsOf,
  type UdpPort,
  type UdpSession,
  UdpSessions,
  type UdpSessionsOptions,
  type UdpTarget,
} from './udp-sessions.ts'
import { addressesWithSockets, bindBeside, bindUdp, type UdpSocket } from './udp-socket.ts'
import { adoptUpstream, openOverLink } from './udp-upstream.ts'

export type UdpOptions = UdpSessionsOptions & {
  admission: StreamAdmission
  players: Players
  routes: Routes
  /** The address to bind; null: every address of the machine. */
  host: string | null
}

/** The lobby whose player a source must be. `target`: null where the source has a session already. */
type Claim = { lobby_id: string; target: UdpTarget | null }

export class Udp {
  readonly #ctx: Context
  readonly #options: UdpOptions
  readonly #sessions: UdpSessions
  readonly #handshake: AddressHandshake
  readonly #admission: StreamAdmission
  readonly #ports = new Map<number, UdpPort>()
  /** Sources that wait for the book, with their datagrams; by port and source. */
  readonly #admitting = new Map<string, { udp_port: UdpPort; arrivals: Arrival[] }>()
  /** The addresses that need sockets of their own, as of the last read. */
  #addresses: ReadonlySet<string> = new Set()
  #addresses_read_ms = Number.NEGATIVE_INFINITY
  #is_cut_reported = false
  #is_failure_reported = false

  constructor(ctx: Context, options: UdpOptions) {
    this.#ctx = ctx
    this.#options = options
    this.#sessions = new UdpSessions(options)
    this.#sessions.registerMetrics(ctx.metrics)
    this.#handshake = new AddressHandshake(ctx.elapsed)
    this.#admission = options.admission
  }

  /** Opens a port; null: another program has it. A port that was adopted is open already. */
  async open(number: number): Promise<OpenPort | null> {
    const known = this.#ports.get(number)
    const socket = known?.main.socket ?? (await bindUdp(this.#ctx.log, number, this.#options.host))
    if (socket === null) return null
    const udp_port = known ?? this.#begin(number, socket)
    await this.#bindAddresses(udp_port)
    const close = (): void => this.release(udp_port)
    return { handle: () => datagramHandleOf(socket), release: close, close }
  }

  /** Opens the sockets of addresses that the machine has got, and closes those of addresses that it has lost. */
  async followAddresses(): Promise<void> {
    if (!this.#readAddresses()) return
    for (const udp_port of [...this.#ports.values()]) await this.#bindAddresses(udp_port)
  }

  /** Returns whether the addresses were read now. */
  #readAddresses(): boolean {
    if (this.#options.host !== null) return false
    const now_ms = this.#ctx.elapsed()
    if (now_ms - this.#addresses_read_ms < UDP_ADDRESSES_EVERY_MS) return false
    this.#addresses_read_ms = now_ms
    const { addresses, is_cut } = addressesWithSockets(networkInterfaces(), this.#ctx.config.lobby_network)
    this.#addresses = addresses
    if (is_cut && !this.#is_cut_reported) {
      this.#ctx.log.warn(
        { addresses: [...addresses], max: UDP_ADDRESSES_MAX },
        'this machine has more addresses than udp ports have sockets: replies to datagrams for the others may leave from another address; set MUSTER_EDGE_PORTS_HOST to the address of the players',
      )
      this.#is_cut_reported = true
    }
    return true
  }

  async #bindAddresses(udp_port: UdpPort): Promise<void> {
    const { main, beside } = udp_port
    for (const [local, { socket }] of beside) {
      if (this.#addresses.has(local)) continue
      beside.delete(local)
      socket.close()
      for (const session of udp_port.sessions.values()) if (session.via.local === local) session.via = main
    }
    for (const local of this.#addresses) {
      if (udp_port.is_released) return
      if (beside.has(local)) continue
      try {
        this.#addBeside(udp_port, local, await bindBeside(main.socket, local))
      } catch (error) {
        this.#reportFailure(error as NodeJS.ErrnoException, udp_port.number, local)
      }
    }
  }

  /** An address that is gone, or that the machine may not use yet, is tried again with the next read. */
  #reportFailure(error: NodeJS.ErrnoException, port: number, address: string): void {
    if (error.code === 'EADDRNOTAVAIL' || this.#is_failure_reported) return
    this.#is_failure_reported = true
    this.#ctx.log.warn(
      { err: error, port, address },
      'a udp port has no socket of its own at this address: replies to datagrams for it may leave from another address; retrying',
    )
  }

  /** The open ports, each with its sessions. */
  get ports(): ReadonlyMap<number, UdpPort> {
    return this.#ports
  }

  factsOf(session: UdpSession): SessionFacts | null {
    return this.#sessions.factsOf(session)
  }

  /** Continues a port of another edge. `socket` receives nothing before `startReceiving`. */
  adoptPort(number: number, socket: Socket): void {
    socket.on('error', ignore)
    this.#begin(number, socket)
  }

  /** The same for the socket of one address, after `adoptPort`. */
  adoptAddress(number: number, local: string, socket: Socket): void {
    socket.on('error', ignore)
    const udp_port = this.#ports.get(number)
    if (udp_port === undefined) socket.close()
    else this.#addBeside(udp_port, local, socket)
  }

  /**
   * Continues a session of another edge at an adopted port. `upstream`: null where the lobby is on a joined node. Returns
   * false when there is no place for it.
   */
  adoptSession(number: number, upstream: Socket | null, facts: SessionFacts): boolean {
    const udp_port = this.#ports.get(number)
    if (udp_port === undefined) return false
    const { player, node_port } = facts
    const { admission, players, paths } = this.#options
    if (upstream === null && node_port === null) return false
    const to_lobby = upstream === null ? openOverLink(node_port!, paths) : adoptUpstream(upstream)
    const end = (): void => this.#sessions.endOf(udp_port, keyOf(facts))
    const admitted = player && players.adopt(player, end)
    const leaveAddress = player?.is_by_address ? admission.adopt(number, player) : null
    const leave = (): void => {
      leaveAddress?.()
      admitted?.leave()
    }
    if (this.#sessions.adopt(udp_port, to_lobby, facts, leave) !== null) return true
    leave()
    return false
  }

  /** An adopted session has changed at the other edge. */
  changeSession(number: number, facts: SessionFacts): void {
    const session = this.#ports.get(number)?.sessions.get(keyOf(facts))
    if (session !== undefined) this.#sessions.change(session, facts)
  }

  /** An adopted session has ended at the other edge. */
  endSession(number: number, key: string): void {
    const udp_port = this.#ports.get(number)
    if (udp_port !== undefined) this.#sessions.endOf(udp_port, key)
  }

  /** Whether a session of the port waits for its socket, or a datagram to be sent. Neither lasts long. */
  isBusy(udp_port: UdpPort): boolean {
    const isOpening = ({ waiting }: UdpSession): boolean => waiting !== null
    const isSending = ({ upstream }: UdpSession): boolean => (upstream.socket?.getSendQueueCount() ?? 0) > 0
    if (socketsOf(udp_port).some(({ socket }) => socket.getSendQueueCount() > 0)) return true
    return [...udp_port.sessions.values()].some((one) => isOpening(one) || isSending(one))
  }

  /** Removes and returns the datagrams of a port that were read and not forwarded yet. */
  takePending(udp_port: UdpPort): DatagramFacts[] {
    const of_admission = [...this.#admitting.values()].filter((one) => one.udp_port === udp_port)
    const arrivals = [udp_port, ...of_admission.map(({ arrivals }) => ({ waiting: arrivals }))].flatMap(({ waiting }) =>
      waiting.splice(0),
    )
    return arrivals.map(({ datagram, source, via }) => ({
      ...{ source, data: datagram.toString('base64'), local: via.local },
    }))
  }

  /** Forwards datagrams that another edge has read. */
  deliver(number: number, datagrams: readonly DatagramFacts[]): void {
    const udp_port = this.#ports.get(number)
    if (udp_port === undefined) return
    for (const { source, data, local } of datagrams) {
      this.#onDatagram(udp_port, Buffer.from(data, 'base64'), source, socketFor(udp_port, local))
    }
  }

  /** Ends the sessions of a port, and closes its descriptors. Where another edge has them too, they continue there. */
  release(udp_port: UdpPort): void {
    if (this.#ports.get(udp_port.number) !== udp_port) return
    this.#ports.delete(udp_port.number)
    udp_port.is_released = true
    this.#sessions.endAll(udp_port)
    for (const { socket } of socketsOf(udp_port)) socket.close()
  }

  #begin(number: number, socket: Socket): UdpPort {
    const begun = { beside: new Map(), sessions: new Map(), is_looking_up: false, waiting: [], is_released: false }
    const main = { local: null, socket }
    const udp_port: UdpPort = { number, main, ...begun }
    socket.on('message', (datagram, source) => this.#onDatagram(udp_port, datagram, source, main))
    this.#ports.set(number, udp_port)
    return udp_port
  }

  #addBeside(udp_port: UdpPort, local: string, socket: Socket): void {
    if (udp_port.is_released) {
      socket.close()
      return
    }
    const via = { local, socket }
    socket.on('message', (datagram, source) => this.#onDatagram(udp_port, datagram, source, via))
    udp_port.beside.set(local, via)
  }

  /** Also closes adopted ports that were never opened again. */
  close(): void {
    for (const udp_port of [...this.#ports.values()]) this.release(udp_port)
    this.#sessions.close()
  }

  #onDatagram(udp_port: UdpPort, datagram: Buffer, source: RemoteInfo, via: UdpSocket): void {
    const session = udp_port.sessions.get(keyOf(source))
    if (session === undefined) {
      this.#onUnknownSource(udp_port, { datagram, source, via })
      return
    }
    session.via = socketFor(udp_port, via.local)
    if (!isHandshakeMessage(datagram)) this.#sessions.receive(session, datagram)
    // The edge's last message was lost.
    else if (session.is_handshake_done) send(udp_port, { source, via }, ACCEPTED)
    else this.#onHandshakeMessage(udp_port, { datagram, source, via }, { lobby_id: session.lobby_id, target: null })
  }

  /** A datagram of a source without a session waits for the look-up of the port's lobby. */
  #onUnknownSource(udp_port: UdpPort, arrival: Arrival): void {
    if (udp_port.is_looking_up) {
      if (udp_port.waiting.length < UDP_WAITING_MAX) udp_port.waiting.push(arrival)
      return
    }
    const target = this.#targetOf(udp_port, clientKey(arrival.source.address))
    if (!(target instanceof Promise)) {
      this.#admit(udp_port, arrival, target)
      return
    }
    udp_port.is_looking_up = true
    udp_port.waiting.push(arrival)
    target
      .catch((error: unknown) => {
        this.#ctx.log.debug({ err: error, number: udp_port.number }, 'datagram cannot be routed')
        return null
      })
      .then((found) => this.#admitWaiting(udp_port, found))
  }

  #admitWaiting(udp_port: UdpPort, target: UdpTarget | null): void {
    udp_port.is_looking_up = false
    for (const arrival of udp_port.waiting.splice(0)) {
      const session = udp_port.sessions.get(keyOf(arrival.source))
      if (session === undefined) this.#admit(udp_port, arrival, target)
      else this.#onDatagram(udp_port, arrival.datagram, arrival.source, arrival.via)
    }
  }

  #targetOf(udp_port: UdpPort, client_key: string): UdpTarget | null | Promise<UdpTarget | null> {
    const owner = this.#options.owners.find('udp', udp_port.number, client_key)
    if (owner instanceof Promise) return owner.then((found) => this.#withAddress(found, client_key))
    return this.#withAddress(owner, client_key)
  }

  #withAddress(owner: RoutedPort | null, client_key: string): UdpTarget | null | Promise<UdpTarget | null> {
    const address = owner && this.#options.routes.stream(owner, client_key)
    if (address instanceof Promise) return address.then((found) => owner && found && { owner, address: found })
    return owner && address && { owner, address }
  }

  #admit(udp_port: UdpPort, arrival: Arrival, target: UdpTarget | null): void {
    if (target === null) return
    const { datagram, source } = arrival
    if (target.address.require_player_token || isHandshakeMessage(datagram)) {
      this.#onHandshakeMessage(udp_port, arrival, { lobby_id: target.owner.lobby_id, target })
      return
    }
    if (target.address.admission !== undefined) {
      void this.#admitByAddress(udp_port, arrival, target)
      return
    }
    const allowance = isLoopback(source.address) ? null : createAllowance()
    const session = this.#sessions.begin(udp_port, arrival, target, allowance)
    if (session !== null) this.#sessions.receive(session, datagram)
  }

  /** The datagrams of a source wait until its player has been admitted. */
  async #admitByAddress(udp_port: UdpPort, arrival: Arrival, target: UdpTarget): Promise<void> {
    const { source } = arrival
    const key = `${udp_port.number} ${keyOf(source)}`
    const known = this.#admitting.get(key)
    if (known !== undefined) {
      if (known.arrivals.length < UDP_WAITING_MAX) known.arrivals.push(arrival)
      return
    }
    if (this.#admitting.size >= UDP_ADMITTING_MAX) return
    const arrivals = [arrival]
    this.#admitting.set(key, { udp_port, arrivals })
    try {
      const end = (): void => this.#sessions.endOf(udp_port, keyOf(source))
      const admitted = await this.#admission.byAddress(clientKey(source.address), entranceOf(udp_port, target), end)
      const allowance = isLoopback(source.address) ? null : createAllowance()
      const session = this.#sessions.begin(udp_port, arrival, target, allowance, admitted)
      if (session === null) admitted.leave()
      else for (const { datagram } of arrivals) this.#sessions.receive(session, datagram)
    } catch (error) {
      this.#ctx.log.debug({ err: error }, 'a source without a seat is not forwarded')
    } finally {
      this.#admitting.delete(key)
    }
  }

  #onHandshakeMessage(udp_port: UdpPort, arrival: Arrival, claim: Claim): void {
    const message = this.#handshake.read(arrival.source, udp_port.number, arrival.datagram)
    if (message.kind === 'reply') send(udp_port, arrival, message.datagram)
    else if (message.kind === 'token') void this.#completeHandshake(udp_port, arrival, claim, message.token)
  }

  /** The source's address is proven by its cookie; its token is checked here. */
  async #completeHandshake(udp_port: UdpPort, origin: Origin, claim: Claim, token: string): Promise<void> {
    const { lobby_id, target } = claim
    if (target?.address.admission !== undefined) {
      await this.#admitByToken(udp_port, origin, target, token)
      return
    }
    try {
      if (!(await this.#isPlayer(lobby_id, token))) {
        send(udp_port, origin, REFUSED)
        return
      }
      const before = udp_port.sessions.get(keyOf(origin.source))
      // A session that has ended meanwhile begins again with the next message.
      const session = before ?? (target && this.#sessions.begin(udp_port, origin, target, null))
      if (session === null || session.lobby_id !== lobby_id) return
      if (session.allowance !== null) this.#sessions.validate(session)
      session.is_handshake_done = true
      if (before === undefined && target?.address.require_player_token)
        this.#sessions.receive(session, Buffer.from(token, 'latin1'))
      send(udp_port, origin, ACCEPTED)
    } catch (error) {
      this.#ctx.log.debug({ err: error }, 'look-up of a player failed')
    }
  }

  /** The source's player waits for the book. A client repeats its message meanwhile. */
  async #admitByToken(udp_port: UdpPort, origin: Origin, target: UdpTarget, token: string): Promise<void> {
    const { source } = origin
    const key = `${udp_port.number} ${keyOf(source)}`
    if (this.#admitting.has(key) || this.#admitting.size >= UDP_ADMITTING_MAX) return
    this.#admitting.set(key, { udp_port, arrivals: [] })
    try {
      const end = (): void => this.#sessions.endOf(udp_port, keyOf(source))
      const admitted = await this.#admission.byToken(token, entranceOf(udp_port, target), end)
      const session = this.#sessions.begin(udp_port, origin, target, null, admitted)
      if (session === null) {
        admitted.leave()
        return
      }
      session.is_handshake_done = true
      if (target.address.admission?.keep_token) this.#sessions.receive(session, Buffer.from(token, 'latin1'))
      send(udp_port, origin, ACCEPTED)
    } catch (error) {
      this.#ctx.log.debug({ err: error }, 'a source without a seat is not forwarded')
      // While the book cannot decide, the client asks again.
      if (error instanceof ApiError && error.code !== 'API_NOT_AVAILABLE') send(udp_port, origin, REFUSED)
    } finally {
      this.#admitting.delete(key)
    }
  }

  async #isPlayer(lobby_id: string, text: string): Promise<boolean> {
    const token = verified(this.#ctx, text)
    if (token?.kind !== 'player' || token.lobby_id !== lobby_id) return false
    return !(await this.#options.seats.wasRemoved(lobby_id, token.player_id))
  }
}

function entranceOf({ number }: UdpPort, { owner, address }: UdpTarget) {
  return { lobby_id: owner.lobby_id, port: number, network: address.player_network ?? null }
}

function send(udp_port: UdpPort, { source, via }: Origin, datagram: Buffer): void {
  if (udp_port.is_released) return
  socketFor(udp_port, via.local).socket.send(datagram, source.port, source.address, ignore)
}

function verified(ctx: Context, text: string) {
  try {
    return ctx.keys.verify(text, ctx.now())
  } catch {
    // A token that fails for any reason is treated as none.
    return null
  }
}

function ignore(): void {}
