// The side of the edge that takes over. It receives everything from the edge before it, and reads nothing of it until that
// edge has let go.
import { rmSync } from 'node:fs'
import { StartError } from '../../config/start-error.ts'
import type { Context } from '../../context.ts'
import { HAND_OVER_VERSION, HAND_OVER_VERSION_MIN } from '../../wire/compatibility.ts'
import { openDatagramSocket, type SocketHandle, startReceiving } from '../handles.ts'
import { HAND_OVER_BUFFER_MS } from '../limits.ts'
import { openSharingReads } from '../node-internals.ts'
import type { FlowFacts, Flows } from '../presence/flows.ts'
import type { HttpListener } from '../proxy/listener.ts'
import type { Udp } from '../streams/udp.ts'
import { lookupNothing } from '../streams/udp-socket.ts'
import { HandleChannel } from './channel.ts'
import { Inheritance } from './inheritance.ts'
import { type FromEdge, type FromSuccessor, isKind, monotonicMs, type PauseBegin } from './messages.ts'

const UDP = { lookup: lookupNothing }

export type Heir = { flows: Flows; udp: Udp; listener: HttpListener; players: { written: () => Promise<void> } }

/** A connection that both edges have. `drop`: closes the descriptors of this process; the other edge keeps the connection. */
type Shared = { resume: () => void; drop: () => void }

export class Predecessor {
  readonly inheritance = new Inheritance()
  readonly #ctx: Context
  readonly #channel: HandleChannel
  /** By which the edge before is registered until it ends. */
  readonly #retired_name: string
  /** The first half of a flow, whose upstream connection follows. */
  #client: { id: number; facts: FlowFacts; handle: SocketHandle } | null = null
  /** What begins to receive once the edge before has let go, in this order: datagrams, then `#shared`. */
  #receivers: (() => void)[] = []
  /** By the id of the connection. */
  #shared = new Map<number, Shared>()
  /** Ids of connections that this edge has no place for. */
  #refused: number[] = []

  private constructor(ctx: Context, channel: HandleChannel, retired_name: string) {
    this.#ctx = ctx
    this.#channel = channel
    this.#retired_name = retired_name
  }

  /**
   * Offers the versions of the hand-over that this edge speaks, the highest first. Resolves with null when no edge of this data
   * folder lives. Throws a StartError when it hands nothing over.
   */
  static async find(ctx: Context, path: string): Promise<Predecessor | null> {
    let reason = ''
    for (let version = HAND_OVER_VERSION; version >= HAND_OVER_VERSION_MIN; version--) {
      const channel = await HandleChannel.connect(path)
      if (channel === null) {
        // An edge that was killed has left it, and nothing could listen there.
        rmSync(path, { force: true })
        return null
      }
      await channel.send({ kind: 'hello', version } satisfies FromSuccessor)
      const received = await channel.receive()
      if (received !== null && isKind(received.message, 'welcome')) {
        const { retired_name } = received.message as unknown as { retired_name: string }
        return new Predecessor(ctx, channel, retired_name)
      }
      if (received !== null && isKind(received.message, 'refused')) {
        reason = (received.message as unknown as { reason: string }).reason
        // The edge takes another offer after it has closed this connection.
        while ((await channel.receive()) !== null) {}
      }
      channel.close()
    }
    throw new StartError(`Another edge runs on this data folder and hands nothing over. ${reason}`.trim())
  }

  /** Receives one batch. Resolves with false when the edge before has ended, or keeps what it has. */
  async receive(heir: Heir): Promise<boolean> {
    const received = await this.#receiveUntil('end', heir)
    return received !== null && received !== 'kept'
  }

  /** Everything received is registered. Resolves when the edge before has let go, and this edge reads. */
  async take(heir: Heir): Promise<void> {
    await this.#channel.send({ kind: 'taken', refused: this.#refused.splice(0) } satisfies FromSuccessor)
    const yours = await this.#receiveUntil('yours', heir)
    // An edge that has ended instead has let go too.
    if (yours === 'kept') throw new Error('The edge before this one continues.')
    const [receivers, shared] = [this.#receivers, this.#shared]
    this.#receivers = []
    this.#shared = new Map()
    for (const receive of receivers) receive()
    const receiving_ms = monotonicMs()
    for (const { resume } of shared.values()) resume()
    this.#report(yours, { receiving_ms, count: shared.size })
    await this.#receiveUntil('closed', heir)
  }

  /** How long neither edge read. */
  #report(begin: PauseBegin | null, { receiving_ms, count }: { receiving_ms: number; count: number }): void {
    const since = (begin_ms: number | null | undefined, end_ms: number): number | null =>
      begin_ms == null ? null : Math.round((end_ms - begin_ms) * 10) / 10
    const datagrams_pause_ms = since(begin?.datagrams_ms, receiving_ms)
    const connections_pause_ms = since(begin?.connections_ms, monotonicMs())
    this.#ctx.log.info({ connections: count, connections_pause_ms, datagrams_pause_ms }, 'this edge reads from now on')
  }

  /** Resolves with the message that was waited for, or with `kept` instead; null: the other edge has ended. */
  async #receiveUntil<K extends 'end' | 'yours' | 'closed'>(
    kind: K,
    heir: Heir,
  ): Promise<Extract<FromEdge, { kind: K }> | 'kept' | null> {
    for (let received = await this.#channel.receive(); received !== null; received = await this.#channel.receive()) {
      const message = received.message as FromEdge
      if (message.kind === kind) return message as Extract<FromEdge, { kind: K }>
      if (message.kind === 'kept') return 'kept'
      if (message.kind === 'prepare') {
        await this.#channel.send({ kind: 'prepared', refused: this.#refused.splice(0) } satisfies FromSuccessor)
      } else if (received.handle !== null) await this.#adopt(message, received.handle, heir)
      else this.#change(message, heir)
    }
    return null
  }

  async #adopt(message: FromEdge, handle: SocketHandle, heir: Heir): Promise<void> {
    const { udp, listener } = heir
    if (message.kind === 'listener') this.inheritance.addListener(message, handle)
    else if (message.kind === 'tcp_port') this.inheritance.addPort(message.number, handle)
    else if (message.kind === 'udp_port') {
      const socket = await openDatagramSocket(handle, { ...UDP, type: message.type, is_connected: false })
      if (message.local == null) udp.adoptPort(message.number, socket)
      else udp.adoptAddress(message.number, message.local, socket)
      this.#receivers.push(() => {
        startReceiving(socket)
        const restore = (): void => socket.setRecvBufferSize(message.buffer_bytes)
        const timer = setTimeout(restore, HAND_OVER_BUFFER_MS).unref()
        socket.once('close', () => clearTimeout(timer))
      })
    } else if (message.kind === 'session') {
      const upstream = await openDatagramSocket(handle, { ...UDP, type: 'udp4', is_connected: true })
      if (udp.adoptSession(message.number, upstream, message.facts))
        this.#receivers.push(() => startReceiving(upstream))
      else upstream.close()
    } else if (message.kind === 'flow') this.#client = { id: message.id, facts: message.facts, handle }
    else if (message.kind === 'upstream') this.#adoptFlow(handle, heir)
    else if (message.kind === 'idle') {
      const resume = (): void => listener.adopt(openSharingReads(handle), message)
      this.#shared.set(message.id, { resume, drop: () => handle.close() })
    }
  }

  #adoptFlow(upstream: SocketHandle, { flows }: Heir): void {
    if (this.#client === null) {
      upstream.close()
      return
    }
    const { id, facts, handle } = this.#client
    this.#client = null
    const client = openSharingReads(handle)
    const flow = flows.adopt(client, openSharingReads(upstream), facts)
    if (flow === null) {
      this.#refused.push(id)
      return
    }
    this.#shared.set(id, { resume: () => flow.splice.resume(), drop: () => flow.splice.release() })
    // It has lost its place before it was taken over.
    client.once('close', () => {
      if (this.#shared.delete(id)) this.#refused.push(id)
    })
  }

  /** The edge before this one has changed what it sent. */
  #change(message: FromEdge, { udp }: Heir): void {
    if (message.kind === 'session') udp.adoptSession(message.number, null, message.facts)
    else if (message.kind === 'sessions_changed') {
      for (const facts of message.sessions) udp.changeSession(message.number, facts)
    } else if (message.kind === 'sessions_ended') for (const key of message.keys) udp.endSession(message.number, key)
    else if (message.kind === 'datagrams') {
      const { number, datagrams } = message
      this.#receivers.push(() => udp.deliver(number, datagrams))
    } else if (message.kind === 'without') for (const id of message.ids) this.#drop(id)
  }

  #drop(id: number): void {
    const shared = this.#shared.get(id)
    this.#shared.delete(id)
    shared?.drop()
  }

  /** Takes what the edge before hands over while it retires. Resolves when it has ended, and removes its registration. */
  async follow(heir: Heir): Promise<void> {
    const { pool, log } = this.#ctx
    try {
      while (await this.receive(heir)) {
        await heir.players.written()
        await this.take(heir)
      }
      await pool.query('delete from edges where node_id = $1', [this.#retired_name])
    } catch (error) {
      log.warn({ err: error }, 'the edge before this one is no longer followed')
    } finally {
      this.close()
    }
  }

  /** The other edge keeps what it has not let go of. */
  close(): void {
    for (const id of [...this.#shared.keys()]) this.#drop(id)
    this.inheritance.close()
    this.#channel.close()
  }
}
