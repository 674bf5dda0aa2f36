// The side of the edge that takes over. It receives everything from the edge before it, and reads nothing of it until that
// edge has let go.
import type { Socket } from 'node:net'
import type { Context } from '../../context.ts'
import { StartError } from '../../start-error.ts'
import type { FlowFacts, Flows } from '../flows.ts'
import { type Handle, openDatagramSocket, startReceiving } from '../handles.ts'
import { openSharingReads } from '../node-internals.ts'
import type { Listener } from '../proxy/listener.ts'
import type { Udp } from '../streams/udp.ts'
import { lookupNothing } from '../streams/udp-socket.ts'
import { HandleChannel } from './channel.ts'
import { type FromEdge, type FromSuccessor, HAND_OVER_VERSION, isKind, type ListenerFacts } from './messages.ts'

const UDP = { lookup: lookupNothing }

export type Heir = { flows: Flows; udp: Udp; listener: Listener; players: { written: () => Promise<void> } }

/** Handles of what the previous edge listened on. Those that nothing takes are closed. */
export class Inheritance {
  readonly #listeners = new Map<string, { port: number; handle: Handle }>()
  readonly #tcp_ports = new Map<number, Handle>()

  addListener({ name, host, port }: ListenerFacts, handle: Handle): void {
    this.#listeners.set(`${name} ${host}`, { port, handle })
  }

  addPort(number: number, handle: Handle): void {
    this.#tcp_ports.set(number, handle)
  }

  /** Null: the previous edge had no such listener, or the setting of its port has changed. */
  takeListener({ name, host, port }: ListenerFacts): Handle | null {
    const key = `${name} ${host}`
    const inherited = this.#listeners.get(key)
    if (inherited === undefined || (port !== 0 && port !== inherited.port)) return null
    this.#listeners.delete(key)
    return inherited.handle
  }

  takePort(number: number): Handle | null {
    const handle = this.#tcp_ports.get(number) ?? null
    this.#tcp_ports.delete(number)
    return handle
  }

  close(): void {
    for (const { handle } of this.#listeners.values()) handle.close()
    for (const handle of this.#tcp_ports.values()) handle.close()
    this.#listeners.clear()
    this.#tcp_ports.clear()
  }
}

export class Predecessor {
  readonly inheritance = new Inheritance()
  readonly #ctx: Context
  readonly #channel: HandleChannel
  /** By which the edge before is registered until it ends. */
  readonly #retired_name: string
  /** The first half of a flow, whose upstream connection follows. */
  #client: { facts: FlowFacts; socket: Socket } | null = null
  /** What continues once the edge before has let go. */
  #resumes: (() => void)[] = []

  private constructor(ctx: Context, channel: HandleChannel, retired_name: string) {
    this.#ctx = ctx
    this.#channel = channel
    this.#retired_name = retired_name
  }

  /** Resolves with null when no edge of this data folder lives. Throws a StartError when it hands nothing over. */
  static async find(ctx: Context, path: string): Promise<Predecessor | null> {
    const channel = await HandleChannel.connect(path)
    if (channel === null) return null
    await channel.send({ kind: 'hello', version: HAND_OVER_VERSION } satisfies FromSuccessor)
    const received = await channel.receive()
    if (received !== null && isKind(received.message, 'welcome')) {
      const { retired_name } = received.message as unknown as { retired_name: string }
      return new Predecessor(ctx, channel, retired_name)
    }
    channel.close()
    const reason =
      received !== null && isKind(received.message, 'refused')
        ? (received.message as unknown as { reason: string }).reason
        : ''
    throw new StartError(`Another edge runs on this data folder and hands nothing over. ${reason}`.trim())
  }

  /** Receives one batch. Resolves with false when the edge before has ended, or keeps what it has. */
  async receive(heir: Heir): Promise<boolean> {
    return (await this.#receiveUntil('end', heir)) === 'end'
  }

  /** Everything received is registered. Resolves when the edge before has let go of it. */
  async take(heir: Heir): Promise<void> {
    await this.#channel.send({ kind: 'taken' } satisfies FromSuccessor)
    // An edge that has ended instead has let go too.
    if ((await this.#receiveUntil('yours', heir)) === 'kept') throw new Error('The edge before this one continues.')
    const resumes = this.#resumes
    this.#resumes = []
    for (const resume of resumes) resume()
  }

  /** Resolves with the kind of the message that was waited for, or that came instead; null: the other edge has ended. */
  async #receiveUntil(kind: 'end' | 'yours', heir: Heir): Promise<'end' | 'yours' | 'kept' | null> {
    for (let received = await this.#channel.receive(); received !== null; received = await this.#channel.receive()) {
      const message = received.message as FromEdge
      if (message.kind === kind || message.kind === 'kept') return message.kind as typeof kind | 'kept'
      if (received.handle !== null) await this.#adopt(message, received.handle, heir)
    }
    return null
  }

  async #adopt(message: FromEdge, handle: Handle, { flows, udp, listener }: Heir): Promise<void> {
    if (message.kind === 'listener') this.inheritance.addListener(message, handle)
    else if (message.kind === 'tcp_port') this.inheritance.addPort(message.number, handle)
    else if (message.kind === 'udp_port') {
      const socket = await openDatagramSocket(handle, { ...UDP, type: message.type, is_connected: false })
      udp.adoptPort(message.number, socket)
      this.#resumes.push(() => startReceiving(socket))
    } else if (message.kind === 'session') {
      const upstream = await openDatagramSocket(handle, { ...UDP, type: 'udp4', is_connected: true })
      if (udp.adoptSession(message.number, upstream, message.facts)) this.#resumes.push(() => startReceiving(upstream))
      else upstream.close()
    } else if (message.kind === 'flow') this.#client = { facts: message.facts, socket: openSharingReads(handle) }
    else if (message.kind === 'upstream' && this.#client !== null) {
      const flow = flows.adopt(this.#client.socket, openSharingReads(handle), this.#client.facts)
      if (flow !== null) this.#resumes.push(() => flow.splice.resume())
      this.#client = null
    } else if (message.kind === 'idle') {
      const resume = listener.adopt(openSharingReads(handle), message)
      if (resume !== null) this.#resumes.push(resume)
    }
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
      this.#channel.close()
    }
  }

  close(): void {
    this.inheritance.close()
    this.#channel.close()
  }
}
