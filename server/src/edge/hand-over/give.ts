// The side of the edge that is replaced. It waits for a successor at a unix socket in the data folder, hands everything over,
// and retires: it keeps the connections that cannot move (TLS, what runs over links of nodes, and requests under way) until they end.
//
// States: serving -> giving -> letting go -> retiring -> retired. It serves as before while it gives. A successor that fails
// before it receives `yours` leads back to serving.
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from '../../context.ts'
import { HAND_OVER_VERSION, HAND_OVER_VERSION_MIN } from '../../wire/compatibility.ts'
import { handleOf } from '../handles.ts'
import type { IdleConnection } from '../http/connections.ts'
import { GIVE_MS_MAX, RETIRING_CHECK_MS } from '../limits.ts'
import type { Flows } from '../presence/flows.ts'
import type { ConnectionReports } from '../presence/report-connections.ts'
import type { EdgePorts } from '../streams/edge-ports.ts'
import type { Udp } from '../streams/udp.ts'
import { HandleChannel } from './channel.ts'
import { GivenConnections, type HeldTraffic } from './given-connections.ts'
import { GivenDatagrams } from './given-datagrams.ts'
import { type FromEdge, isKind, type ListenerFacts } from './messages.ts'

export type Belongings = {
  listeners: readonly (ListenerFacts & { server: Server })[]
  raw_ports: EdgePorts
  udp: Udp
  flows: Flows
  idle: () => IdleConnection[]
  reports: ConnectionReports
  /** Accepts no further connection, and begins no further request. */
  stopAccepting: () => void
  /** Connections and UDP sessions that are still open, without links of nodes. */
  openCount: () => number
  /** Closes the links of nodes. */
  end: () => Promise<void>
}

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
  /** Id of the next connection that is sent to the successor. */
  #next_id = 0

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
    const held: HeldTraffic[] = []
    try {
      await this.#give(channel, held)
    } catch (error) {
      for (const one of held.toReversed()) one.resume()
      await channel.send({ kind: 'kept' } satisfies FromEdge).catch(() => {})
      channel.close()
      this.#is_giving = false
      log.warn({ err: error }, 'a successor has not taken over; this edge continues')
      return
    }
    // The successor reads by now. Nothing here leads back.
    for (const one of held) one.release()
    this.close()
    this.#belongings.stopAccepting()
    await channel.send({ kind: 'closed' } satisfies FromEdge).catch(() => {})
    this.#handed_over.resolve()
    log.info({ handed_over: held.length }, 'the next edge has taken over')
    await this.#retire(channel)
    channel.close()
    this.#retired.resolve()
  }

  /**
   * Sends everything. Resolves when the successor has `yours`. Otherwise everything in `held` continues here.
   */
  async #give(channel: HandleChannel, held: HeldTraffic[]): Promise<void> {
    const { raw_ports, reports, udp } = this.#belongings
    const hello = await expect(channel, 'hello')
    if (hello.version > HAND_OVER_VERSION || hello.version < HAND_OVER_VERSION_MIN) {
      const reason = `It speaks the versions ${HAND_OVER_VERSION_MIN} to ${HAND_OVER_VERSION} of the hand-over.`
      await channel.send({ kind: 'refused', reason } satisfies FromEdge)
      throw new Error(`The successor speaks version ${hello.version} of the hand-over.`)
    }
    const retired_name = await reports.retire()
    held.push({ release: () => {}, resume: () => void reports.stay() })
    await raw_ports.freeze()
    held.push({ release: () => {}, resume: () => raw_ports.thaw() })
    await channel.send({ kind: 'welcome', retired_name } satisfies FromEdge)
    await this.#giveListeners(channel)
    const datagrams = new GivenDatagrams(channel, udp, hello.version)
    held.push({ release: () => {}, resume: () => datagrams.keep() })
    await datagrams.send()
    const connections = await this.#giveConnections(channel)
    try {
      await datagrams.update({ has_turns: true })
      await channel.send({ kind: 'prepare' } satisfies FromEdge)
      connections.keep((await expect(channel, 'prepared')).refused)
      const held_connections = await connections.hold()
      held.push(...held_connections.held)
      // Last, because the buffers of the system hold only some hundred datagrams.
      const held_datagrams = await datagrams.hold()
      held.push(held_datagrams.held)
      const pause = { connections_ms: held_connections.begin_ms, datagrams_ms: held_datagrams.begin_ms }
      await channel.send({ kind: 'yours', ...pause } satisfies FromEdge)
    } finally {
      connections.close()
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

  /** Sends the connections that may be held, and the end of the batch. Resolves when the successor has registered them. */
  async #giveConnections(channel: HandleChannel): Promise<GivenConnections> {
    const { flows, idle } = this.#belongings
    const connections = new GivenConnections(channel, this.#next_id, { flows, idle })
    try {
      await connections.send()
      await channel.send({ kind: 'end' } satisfies FromEdge)
      const { refused } = await expect(channel, 'taken')
      connections.keep(refused)
      return connections
    } catch (error) {
      connections.close()
      throw error
    } finally {
      this.#next_id = connections.next_id
    }
  }

  /** Hands over what becomes ready, until nothing is left or the configured time is over. */
  async #retire(channel: HandleChannel): Promise<void> {
    const { log, config, elapsed } = this.#ctx
    const { flows, idle, openCount, end } = this.#belongings
    const end_ms = elapsed() + config.edge_retire_ms
    while (openCount() > 0 && elapsed() < end_ms) {
      await delay(RETIRING_CHECK_MS)
      const has_more = [...flows.open].some(({ splice }) => splice.is_movable) || idle().length > 0
      if (!has_more || channel.is_closed) continue
      const held: HeldTraffic[] = []
      try {
        const connections = await this.#giveConnections(channel)
        const { held: more, begin_ms } = await connections.hold()
        held.push(...more)
        await channel.send({ kind: 'yours', connections_ms: begin_ms, datagrams_ms: null } satisfies FromEdge)
        for (const one of held) one.release()
        await channel.send({ kind: 'closed' } satisfies FromEdge)
      } catch (error) {
        for (const one of held) one.resume()
        await channel.send({ kind: 'kept' } satisfies FromEdge).catch(() => {})
        channel.close()
        log.warn({ err: error }, 'the next edge takes no more connections; this edge keeps the rest')
      }
    }
    log.info({ left: openCount() }, 'this edge has retired')
    await end()
  }
}

type Expected = { hello: { version: number }; taken: { refused: number[] }; prepared: { refused: number[] } }

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
