// The UDP ports that an edge gives to its successor, with their sessions. All descriptors are sent ahead, while this edge
// forwards datagrams on. `update` sends what has changed since, as often as wanted. `hold` stops receiving, and sends the last
// differences: sessions that have begun or ended, and datagrams that were read and not forwarded yet.
import type { Socket } from 'node:dgram'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { datagramHandleOf, startReceiving, stopReceiving } from '../handles.ts'
import { HAND_OVER_BUFFER_BYTES } from '../limits.ts'
import type { Udp } from '../streams/udp.ts'
import {
  type DatagramFacts,
  type SessionFacts,
  socketsOf,
  type UdpPort,
  type UdpSession,
} from '../streams/udp-sessions.ts'
import type { UdpSocket } from '../streams/udp-socket.ts'
import type { HandleChannel } from './channel.ts'
import type { HeldTraffic } from './given-connections.ts'
import { type FromEdge, monotonicMs } from './messages.ts'

/** Handles sent between two turns of the event loop: datagrams are forwarded meanwhile. */
const SENT_AT_ONCE_MAX = 32
/** Sessions in one message. */
const SESSIONS_MAX = 50
/** Bytes of datagrams in one message, in base64. One that is longer has a message of its own. */
const DATAGRAM_BYTES_MAX = 32 * 1024
/** The first version in which a port has sockets of single addresses. */
const ADDRESSES_VERSION = 3
/** Turns of the event loop until the sockets of new sessions are connected, and what was read has been sent. */
const BUSY_TURNS_MAX = 50

export class GivenDatagrams {
  readonly #channel: HandleChannel
  readonly #udp: Udp
  readonly #ports: readonly UdpPort[]
  readonly #version: number
  /** What their buffers held before. */
  readonly #buffer_bytes = new Map<Socket, number>()
  /** The facts as they were sent last, as JSON. */
  readonly #sent = new Map<UdpSession, string>()

  /** `version`: of the hand-over, that both edges speak. */
  constructor(channel: HandleChannel, udp: Udp, version: number) {
    this.#version = version
    this.#channel = channel
    this.#udp = udp
    this.#ports = [...udp.ports.values()]
  }

  /** Sends all ports and sessions. */
  async send(): Promise<void> {
    for (const udp_port of this.#ports) {
      // After its release, the first socket of the port gets the datagrams of the others.
      const sent = this.#version < ADDRESSES_VERSION ? [udp_port.main] : socketsOf(udp_port)
      for (const one of sent) await this.#sendSocket(udp_port.number, one)
    }
    await this.update({ has_turns: true })
  }

  async #sendSocket(number: number, { local, socket }: UdpSocket): Promise<void> {
    const buffer_bytes = enlargeBuffer(socket)
    this.#buffer_bytes.set(socket, buffer_bytes)
    const type = socket.address().family === 'IPv6' ? 'udp6' : 'udp4'
    await this.#channel.send(
      { kind: 'udp_port', number, local, type, buffer_bytes } satisfies FromEdge,
      datagramHandleOf(socket),
    )
  }

  /** Everything continues here. */
  keep(): void {
    for (const [socket, bytes] of this.#buffer_bytes) socket.setRecvBufferSize(bytes)
  }

  /** Sends what differs. `has_turns`: datagrams are forwarded meanwhile. */
  async update({ has_turns }: { has_turns: boolean }): Promise<void> {
    await this.#sendEnded()
    for (const udp_port of this.#ports) await this.#sendSessions(udp_port, has_turns)
  }

  /** Stops receiving, and sends the last differences. Returns also when the pause began; null: there is no port. */
  async hold(): Promise<{ held: HeldTraffic; begin_ms: number | null }> {
    const begin_ms = this.#ports.length > 0 ? monotonicMs() : null
    const sockets = this.#ports.flatMap((udp_port) => [
      ...socketsOf(udp_port).map(({ socket }) => socket),
      ...[...udp_port.sessions.values()].flatMap(({ upstream }) => upstream.socket ?? []),
    ])
    for (const one of sockets) stopReceiving(one)
    const pending = new Map<UdpPort, DatagramFacts[]>()
    const held: HeldTraffic = {
      release: () => {
        for (const udp_port of this.#ports) this.#udp.release(udp_port)
      },
      resume: () => {
        for (const [udp_port, datagrams] of pending) this.#udp.deliver(udp_port.number, datagrams)
        for (const one of sockets) startReceiving(one)
      },
    }
    try {
      const isBusy = (): boolean => this.#ports.some((one) => this.#udp.isBusy(one))
      for (let turn = 0; isBusy() && turn < BUSY_TURNS_MAX; turn++) await nextTurn()
      await this.update({ has_turns: false })
      for (const udp_port of this.#ports) {
        const datagrams = this.#udp.takePending(udp_port)
        pending.set(udp_port, datagrams)
        await this.#sendDatagrams(udp_port.number, datagrams)
      }
      return { held, begin_ms }
    } catch (error) {
      held.resume()
      throw error
    }
  }

  async #sendEnded(): Promise<void> {
    const ended = new Map<number, string[]>()
    for (const session of this.#sent.keys()) {
      const { udp_port, key } = session
      if (udp_port.sessions.get(key) === session) continue
      this.#sent.delete(session)
      ended.set(udp_port.number, [...(ended.get(udp_port.number) ?? []), key])
    }
    for (const [number, keys] of ended) {
      for (let from = 0; from < keys.length; from += SESSIONS_MAX) {
        const some = keys.slice(from, from + SESSIONS_MAX)
        await this.#channel.send({ kind: 'sessions_ended', number, keys: some } satisfies FromEdge)
      }
    }
  }

  async #sendSessions({ number, sessions }: UdpPort, has_turns: boolean): Promise<void> {
    let changed: SessionFacts[] = []
    const sendChanged = async (): Promise<void> => {
      await this.#channel.send({ kind: 'sessions_changed', number, sessions: changed } satisfies FromEdge)
      changed = []
    }
    let count = 0
    for (const session of [...sessions.values()]) {
      const facts = this.#udp.factsOf(session)
      if (facts === null) continue
      const text = JSON.stringify(facts)
      const before = this.#sent.get(session)
      if (before === text) continue
      this.#sent.set(session, text)
      if (before === undefined) {
        const { socket } = session.upstream
        const handle = socket && datagramHandleOf(socket)
        await this.#channel.send({ kind: 'session', number, facts } satisfies FromEdge, handle)
      } else if (changed.push(facts) >= SESSIONS_MAX) await sendChanged()
      if (has_turns && ++count % SENT_AT_ONCE_MAX === 0) await nextTurn()
    }
    if (changed.length > 0) await sendChanged()
  }

  async #sendDatagrams(number: number, datagrams: readonly DatagramFacts[]): Promise<void> {
    let some: DatagramFacts[] = []
    let bytes = 0
    for (const one of datagrams) {
      if (some.length > 0 && bytes + one.data.length > DATAGRAM_BYTES_MAX) {
        await this.#channel.send({ kind: 'datagrams', number, datagrams: some } satisfies FromEdge)
        some = []
        bytes = 0
      }
      some.push(one)
      bytes += one.data.length
    }
    if (some.length > 0) await this.#channel.send({ kind: 'datagrams', number, datagrams: some } satisfies FromEdge)
  }
}

/** Returns the bytes that restore the buffer. The system counts twice of what was set, and may allow less than was asked for. */
function enlargeBuffer(socket: Socket): number {
  const bytes = Math.floor(socket.getRecvBufferSize() / 2)
  if (bytes < HAND_OVER_BUFFER_BYTES) socket.setRecvBufferSize(HAND_OVER_BUFFER_BYTES)
  return bytes
}
