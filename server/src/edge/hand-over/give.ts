// The side of the edge that is replaced. It waits for a successor at a unix socket in the data folder, hands everything over,
// and retires: it keeps the connections that cannot move (TLS, and requests under way) until they end.
//
// States: serving -> giving -> retiring -> retired; a successor that fails before it has taken anything leads back to serving.
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from '../../context.ts'
import type { Flows } from '../flows.ts'
import { datagramHandleOf, handleOf, startReceiving, stopReceiving } from '../handles.ts'
import type { IdleConnection } from '../http/connections.ts'
import { GIVE_MS_MAX, RETIRING_CHECK_MS } from '../limits.ts'
import type { ConnectionReports } from '../report-connections.ts'
import type { EdgePorts } from '../streams/edge-ports.ts'
import type { Udp } from '../streams/udp.ts'
import type { UdpPort, UdpSession } from '../streams/udp-sessions.ts'
import { HandleChannel } from './channel.ts'
import { type FromEdge, HAND_OVER_VERSION, isKind, type ListenerFacts } from './messages.ts'

export type Belongings = {
  listeners: readonly (ListenerFacts & { server: Server })[]
  raw_ports: EdgePorts
  udp: Udp
  flows: Flows
  idle: () => IdleConnection[]
  reports: ConnectionReports
  /** Accepts no further connection, and begins no further request. */
  stopAccepting: () => void
  /** Connections and UDP sessions that are still open. */
  openCount: () => number
}

/** What was held for the successor: it continues there, or here. */
type Held = { release: () => void; resume: () => void }

export class HandOverOffer {
  /** Resolves when a successor has taken over. */
  readonly handed_over: Promise<void>
  /** Resolves when also what stayed here has ended. */
  readonly retired: Promise<void>
  readonly #ctx: Context
  readonly #belongings: Belongings
  readonly #handed_over = Promise.withResolvers<void>()
  readonly #retired = Promise.withResolvers<void>()
  readonly #server: Server
  #is_giving = false
  #is_closed = false

  /** `path`: of the socket. Nothing may listen there. */
  constructor(ctx: Context, path: string, belongings: Belongings) {
    this.#ctx = ctx
    this.#belongings = belongings
    this.handed_over = this.#handed_over.promise
    this.retired = this.#retired.promise
    this.#server = createServer({ pauseOnConnect: true }, (successor) => this.#onSuccessor(successor))
    this.#server.on('error', (error) => ctx.log.warn({ err: error }, 'the edge can hand nothing over to a successor'))
    this.#server.listen(path)
  }

  close(): void {
    this.#is_closed = true
    this.#server.close()
  }

  #onSuccessor(successor: Socket): void {
    const { log } = this.#ctx
    successor.on('error', () => {})
    if (this.#is_giving || this.#is_closed) {
      successor.destroy()
      return
    }
    this.#is_giving = true
    this.#serve(HandleChannel.over(successor)).catch((error: unknown) => {
      log.error({ err: error }, 'the hand-over to the next edge failed')
    })
  }

  async #serve(channel: HandleChannel): Promise<void> {
    const { log } = this.#ctx
    try {
      const held = await this.#give(channel)
      this.close()
      this.#belongings.stopAccepting()
      await channel.send({ kind: 'yours' } satisfies FromEdge)
      for (const one of held) one.release()
      this.#handed_over.resolve()
      log.info({ handed_over: held.length }, 'the next edge has taken over')
    } catch (error) {
      await channel.send({ kind: 'kept' } satisfies FromEdge).catch(() => {})
      channel.close()
      this.#is_giving = false
      if (this.#is_closed) throw error
      log.warn({ err: error }, 'a successor has not taken over; this edge continues')
      return
    }
    await this.#retire(channel)
    channel.close()
    this.#retired.resolve()
  }

  /** Sends everything. Resolves when the successor has taken it; otherwise everything continues here. */
  async #give(channel: HandleChannel): Promise<Held[]> {
    const { raw_ports, reports } = this.#belongings
    const hello = await expect(channel, 'hello')
    if (hello.version !== HAND_OVER_VERSION) {
      await channel.send({ kind: 'refused', reason: 'It is of another version.' } satisfies FromEdge)
      throw new Error('The successor is of another version.')
    }
    const held: Held[] = []
    try {
      const retired_name = await reports.retire()
      held.push({ release: () => {}, resume: () => void reports.stay() })
      await raw_ports.freeze()
      held.push({ release: () => {}, resume: () => raw_ports.thaw() })
      await channel.send({ kind: 'welcome', retired_name } satisfies FromEdge)
      await this.#giveListeners(channel)
      const udp_ports = [...this.#belongings.udp.ports.values()]
      const given = new Set<UdpSession>()
      for (const udp_port of udp_ports) await this.#givePort(channel, udp_port, given)
      await this.#giveConnections(channel, held)
      await expect(channel, 'taken')
      // Last, and nothing slow follows: their buffers fill from here on.
      for (const udp_port of udp_ports) held.push(await this.#holdPort(channel, udp_port, given))
      return held
    } catch (error) {
      for (const one of held.toReversed()) one.resume()
      throw error
    }
  }

  async #giveListeners(channel: HandleChannel): Promise<void> {
    const { listeners, raw_ports } = this.#belongings
    for (const { name, host, port, server } of listeners) {
      await channel.send({ kind: 'listener', name, host, port } satisfies FromEdge, handleOf(server))
    }
    for (const [number, port] of raw_ports.open('tcp')) {
      await channel.send({ kind: 'tcp_port', number } satisfies FromEdge, port.handle())
    }
  }

  /**
   * Sends a UDP port with its sessions. Both edges may read datagrams of one socket, so this one forwards them until the
   * successor is ready: the system's buffer is too small for a longer pause.
   */
  async #givePort(channel: HandleChannel, udp_port: UdpPort, given: Set<UdpSession>): Promise<void> {
    const { number, socket } = udp_port
    const type = socket.address().family === 'IPv6' ? 'udp6' : 'udp4'
    await channel.send({ kind: 'udp_port', number, type } satisfies FromEdge, datagramHandleOf(socket))
    await this.#giveSessions(channel, udp_port, given)
  }

  /** Sends the sessions that are not in `given` yet. */
  async #giveSessions(channel: HandleChannel, udp_port: UdpPort, given: Set<UdpSession>): Promise<void> {
    for (const session of udp_port.sessions.values()) {
      const facts = given.has(session) ? null : this.#belongings.udp.factsOf(session)
      const handle = session.upstream.socket && datagramHandleOf(session.upstream.socket)
      if (facts === null || handle === null) continue
      given.add(session)
      await channel.send({ kind: 'session', number: udp_port.number, facts } satisfies FromEdge, handle)
    }
  }

  /** Stops receiving datagrams, and sends the sessions that have begun since their port was sent. */
  async #holdPort(channel: HandleChannel, udp_port: UdpPort, given: Set<UdpSession>): Promise<Held> {
    const { udp } = this.#belongings
    const sockets = [
      udp_port.socket,
      ...[...udp_port.sessions.values()].flatMap(({ upstream }) => upstream.socket ?? []),
    ]
    for (const one of sockets) stopReceiving(one)
    const held: Held = {
      release: () => udp.release(udp_port),
      resume: () => {
        for (const one of sockets) startReceiving(one)
      },
    }
    try {
      await this.#giveSessions(channel, udp_port, given)
      return held
    } catch (error) {
      held.resume()
      throw error
    }
  }

  /** Sends the connections that can be held now, and the end of the batch. */
  async #giveConnections(channel: HandleChannel, held: Held[]): Promise<void> {
    const flows = [...this.#belongings.flows.open]
    const are_held = await Promise.all(flows.map(({ splice }) => splice.hold()))
    const ready = flows.filter((_, index) => are_held[index])
    const idle = this.#belongings.idle().filter((connection) => connection.hold())
    held.push(...ready.map(({ splice }) => splice), ...idle)
    for (const { splice, facts } of ready) {
      const [client, upstream] = [handleOf(splice.client), handleOf(splice.upstream)]
      // A connection that was closed meanwhile has ended for both.
      if (client === null || upstream === null) continue
      const sent = channel.send({ kind: 'flow', facts } satisfies FromEdge, client)
      await Promise.all([sent, channel.send({ kind: 'upstream' } satisfies FromEdge, upstream)])
    }
    for (const { socket, peer, lobby_id } of idle) {
      const handle = handleOf(socket)
      if (handle !== null) await channel.send({ kind: 'idle', peer, lobby_id } satisfies FromEdge, handle)
    }
    await channel.send({ kind: 'end' } satisfies FromEdge)
  }

  /** Hands over what becomes ready, until nothing is left or the configured time is over. */
  async #retire(channel: HandleChannel): Promise<void> {
    const { log, config, elapsed } = this.#ctx
    const { flows, idle, openCount } = this.#belongings
    const end_ms = elapsed() + config.edge_retire_ms
    while (openCount() > 0 && elapsed() < end_ms) {
      await delay(RETIRING_CHECK_MS)
      const has_more = [...flows.open].some(({ splice }) => splice.is_movable) || idle().length > 0
      if (!has_more || channel.is_closed) continue
      const held: Held[] = []
      try {
        await this.#giveConnections(channel, held)
        await expect(channel, 'taken')
        for (const one of held) one.release()
        await channel.send({ kind: 'yours' } satisfies FromEdge)
      } catch (error) {
        for (const one of held) one.resume()
        await channel.send({ kind: 'kept' } satisfies FromEdge).catch(() => {})
        channel.close()
        log.warn({ err: error }, 'the next edge takes no more connections; this edge keeps the rest')
      }
    }
    log.info({ left: openCount() }, 'this edge has retired')
  }
}

type Expected = { hello: { version: number }; taken: object }

async function expect<K extends keyof Expected>(channel: HandleChannel, kind: K): Promise<Expected[K]> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), GIVE_MS_MAX)
  try {
    const received = await Promise.race([channel.receive(), once(late.signal, 'abort').then(() => null)])
    if (received !== null && isKind(received.message, kind)) return received.message as unknown as Expected[K]
    throw new Error(`The successor has not sent "${kind}".`)
  } finally {
    clearTimeout(timer)
  }
}
