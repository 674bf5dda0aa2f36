// A UDP port of the lobby of `muster dev`. Each source has a socket of its own towards the server, as on the platform. Where
// the edge checks the seats, the handshake or the source's address admits a player before a datagram reaches the server.
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import {
  ACCEPTED,
  AddressHandshake,
  isHandshakeMessage,
  proxyHeader,
  REFUSED,
  StreamAdmission,
  type StreamAdmitted,
} from '@musterhost/contract/edge'
import { clientKeyOf, clientOf, type DevPort, type OpenDevPort, SERVER_HOST } from './port.ts'

/** Sources at once. Beyond them, the one that has been silent for longest ends. */
const SOURCES_MAX = 1_024
/** Datagrams that wait until their source is admitted. */
const WAITING_MAX = 32
/** Milliseconds of silence after which a source is forgotten. */
const SILENT_MS_MAX = 120_000

type Session = { upstream: Socket; header: Buffer | null; leave: () => void; timer: NodeJS.Timeout }

export async function openUdpPort(port: DevPort): Promise<OpenDevPort> {
  const type = port.bind === undefined || isIPv6(port.bind) ? 'udp6' : 'udp4'
  const socket = createSocket(type)
  socket.bind({ port: port.public, exclusive: true, ...(port.bind !== undefined && { address: port.bind }) })
  await once(socket, 'listening')
  // A datagram that cannot be sent is lost, as datagrams are.
  socket.on('error', () => {})
  const sources = new DevUdp(port, socket)
  socket.on('message', (datagram, source) => sources.receive(datagram, source))
  return {
    async close() {
      sources.close()
      socket.close()
    },
  }
}

class DevUdp {
  readonly #port: DevPort
  readonly #socket: Socket
  readonly #handshake = new AddressHandshake(() => performance.now())
  readonly #admission: StreamAdmission
  /** By source, the one that was silent for longest first. */
  readonly #sessions = new Map<string, Session>()
  /** Sources that wait for their admission, with their datagrams. */
  readonly #waiting = new Map<string, Buffer[]>()
  #is_closed = false

  constructor(port: DevPort, socket: Socket) {
    this.#port = port
    this.#socket = socket
    this.#admission = new StreamAdmission(port.seats, port.seats, port.seats)
  }

  receive(datagram: Buffer, source: RemoteInfo): void {
    const { admission, require_player_token } = this.#port
    const known = this.#sessions.get(keyOf(source))
    const is_handshake = isHandshakeMessage(datagram)
    const needs_token = require_player_token || admission?.by.includes('handshake') === true
    if (is_handshake || (known === undefined && needs_token)) this.#onHandshake(datagram, source)
    else if (known !== undefined) this.#forward(known, datagram, source)
    else if (admission !== null) void this.#admitByAddress(datagram, source)
    else this.#forward(this.#begin(source, null), datagram, source)
  }

  close(): void {
    this.#is_closed = true
    for (const key of [...this.#sessions.keys()]) this.#end(key)
  }

  #onHandshake(datagram: Buffer, source: RemoteInfo): void {
    const message = this.#handshake.read(source, this.#port.public, datagram)
    if (message.kind === 'reply') this.#socket.send(message.datagram, source.port, source.address)
    else if (message.kind === 'token') void this.#admitByToken(message.token, source)
  }

  async #admitByToken(token: string, source: RemoteInfo): Promise<void> {
    const { admission, require_player_token, seats, lobby_id } = this.#port
    const is_known = this.#sessions.has(keyOf(source))
    try {
      if (admission === null) seats.playerOf(token, lobby_id)
      if (!is_known) {
        const admitted = admission === null ? null : await this.#admission.byToken(token, ...this.#entrance(source))
        const session = this.#begin(source, admitted)
        const keeps_token = admission === null ? require_player_token : admission.keep_token
        if (keeps_token) this.#forward(session, Buffer.from(token, 'latin1'), source)
      }
      this.#socket.send(ACCEPTED, source.port, source.address)
    } catch {
      this.#socket.send(REFUSED, source.port, source.address)
    }
  }

  async #admitByAddress(datagram: Buffer, source: RemoteInfo): Promise<void> {
    const key = keyOf(source)
    const waiting = this.#waiting.get(key)
    if (waiting !== undefined) {
      if (waiting.length < WAITING_MAX) waiting.push(datagram)
      return
    }
    if (this.#waiting.size >= SOURCES_MAX) return
    const arrived = [datagram]
    this.#waiting.set(key, arrived)
    try {
      const admitted = await this.#admission.byAddress(clientKeyOf(source.address), ...this.#entrance(source))
      const session = this.#begin(source, admitted)
      for (const one of arrived) this.#forward(session, one, source)
    } catch {
      // The seats have said that the source was refused.
    } finally {
      this.#waiting.delete(key)
    }
  }

  #entrance(source: RemoteInfo) {
    const { lobby_id, public: number, player_network } = this.#port
    return [{ lobby_id, port: number, network: player_network }, () => this.#end(keyOf(source))] as const
  }

  #begin(source: RemoteInfo, admitted: StreamAdmitted | null): Session {
    const key = keyOf(source)
    if (this.#sessions.size >= SOURCES_MAX) this.#end(this.#sessions.keys().next().value!)
    const upstream = createSocket('udp4')
    upstream.on('error', () => {})
    upstream.on('message', (reply) => this.#is_closed || this.#socket.send(reply, source.port, source.address))
    if (admitted?.address != null) upstream.bind({ address: admitted.address })
    const from = { address: clientOf(source.address), port: source.port }
    const to = { address: this.#port.bind ?? SERVER_HOST, port: this.#port.public }
    const header = this.#port.proxy_protocol ? proxyHeader('datagram', from, to, admitted) : null
    const timer = setTimeout(() => this.#end(key), SILENT_MS_MAX).unref()
    const session = { upstream, header, timer, leave: admitted?.leave ?? (() => {}) }
    this.#sessions.set(key, session)
    return session
  }

  #forward(session: Session, datagram: Buffer, source: RemoteInfo): void {
    const { upstream, header, timer } = session
    timer.refresh()
    this.#sessions.delete(keyOf(source))
    this.#sessions.set(keyOf(source), session)
    const parts = header === null ? [datagram] : [header, datagram]
    upstream.send(parts, this.#port.listening, SERVER_HOST, () => {})
  }

  #end(key: string): void {
    const session = this.#sessions.get(key)
    if (session === undefined) return
    this.#sessions.delete(key)
    clearTimeout(session.timer)
    session.upstream.close()
    session.leave()
  }
}

const keyOf = ({ address, port }: RemoteInfo): string => `${address} ${port}`
