// The tcp and udp ports that the edge keeps open: those of live lobbies, and spare ones for the next lobbies. So an address
// that a find returns accepts connections at once.
//
// Open ports are recorded in edge_ports, and only recorded ports are given to lobbies (matchmaker/shards/port-pool.ts). A port
// is opened, recorded, and stays open until the edge ends, because it may be given out at any moment. The next edge opens all
// recorded ports, those of live lobbies first. A port that rests (port-owners.ts) stays open, and is not recorded meanwhile.
//
// Where a machine has several edge processes, each has the ports of some numbers. So all connections and datagrams of a port, and its
// limits, are in one process, and no other one has a part in them.
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { ProcessNumber } from '../../config/processes.ts'
import type { Context } from '../../context.ts'
import { watchChannel } from '../../database/poller.ts'
import { createTimerWhileNeeded } from '../../flow/timer-while-needed.ts'
import { CHANNELS } from '../../wire/channels.ts'
import type { SocketHandle } from '../handles.ts'
import {
  PORT_PAIRS_SPARE,
  PORTS_COMPLETE_EVERY_MS,
  PORTS_EVERY_MS,
  PORTS_OPENING_MAX,
  PORTS_START_MS_MAX,
} from '../limits.ts'
import type { Owners, PortOwners, PortTransport } from './port-owners.ts'

/**
 * An open port. `close` also ends its connections; `release` leaves them, and only closes the descriptor that the next edge
 * has too. `handle`: null once it is closed.
 */
export type OpenPort = { handle: () => SocketHandle | null; release: () => void; close: () => void }
/** Opens a port; null: another program has it. `followAddresses`: the machine may have other addresses than before. */
export type OpenPorts = Record<PortTransport, (port: number) => Promise<OpenPort | null>> & {
  followAddresses: () => Promise<void>
}
export type EdgePorts = {
  /** Opens no further port. */
  freeze: () => Promise<void>
  /** Opens ports again after `freeze`. */
  thaw: () => void
  open: (transport: PortTransport) => ReadonlyMap<number, OpenPort>
  close: () => Promise<void>
}

const TRANSPORTS = ['tcp', 'udp'] as const

/** Resolves when the first ports are open and recorded, and after PORTS_START_MS_MAX at the latest. */
export async function keepPortsOpen(ctx: Context, owners: PortOwners, openPort: OpenPorts): Promise<EdgePorts> {
  const keeper = new PortKeeper(ctx, owners, openPort)
  const retrying = createTimerWhileNeeded(PORTS_EVERY_MS, () => {
    watch.wake()
    return !keeper.is_complete
  })
  const watch = watchChannel(ctx, {
    channel: CHANNELS.lobby_ports,
    every_ms: PORTS_COMPLETE_EVERY_MS,
    async run() {
      await keeper.pass()
      if (!keeper.is_complete) retrying.need()
    },
    failure: 'check of the raw ports failed; retrying',
    retry_ms: PORTS_EVERY_MS,
  })
  await Promise.race([watch.running(), delay(PORTS_START_MS_MAX, undefined, { ref: false })])
  return {
    async freeze() {
      keeper.freeze(true)
      await watch.running()
    },
    thaw: () => keeper.freeze(false),
    open: (transport) => keeper.open(transport),
    async close() {
      keeper.close()
      retrying.close()
      await watch.close()
      keeper.closePorts()
    },
  }
}

class PortKeeper {
  readonly #ctx: Context
  readonly #owners: PortOwners
  readonly #openPort: OpenPorts
  readonly #candidates: readonly number[]
  /** Spare ports, and spare numbers of both kinds, that this process keeps open. */
  readonly #spare: { ports: number; pairs: number }
  readonly #opened = { tcp: new Map<number, OpenPort>(), udp: new Map<number, OpenPort>() }
  readonly #recorded = { tcp: new Set<number>(), udp: new Set<number>() }
  /** The next candidates. They start at random, so that two platforms on one machine rarely collide. */
  readonly #cursor: Record<PortTransport | 'both', number>
  readonly #isAddressThere: () => Promise<boolean>
  #has_address = false
  #has_recovered = false
  #are_live_open = false
  #is_frozen = false
  #is_closed = false

  constructor(ctx: Context, owners: PortOwners, openPort: OpenPorts) {
    this.#ctx = ctx
    this.#owners = owners
    this.#openPort = openPort
    this.#candidates = candidatesOf(ctx)
    const { count } = ctx.config.process
    const ports = Math.ceil(ctx.config.edge_ports.spare / count)
    this.#spare = { ports, pairs: Math.min(Math.ceil(PORT_PAIRS_SPARE / count), ports) }
    const first = randomInt(this.#candidates.length || 1)
    this.#cursor = { tcp: first, udp: first, both: first }
    this.#isAddressThere = createAddressCheck(ctx)
  }

  /** The machine has the address, and the ports of all live lobbies are open. */
  get is_complete(): boolean {
    return this.#has_address && this.#are_live_open && !this.#is_frozen
  }

  /** Opens missing ports, and records the open ones. */
  async pass(): Promise<void> {
    if (this.#is_frozen) return
    await this.#openPort.followAddresses()
    const owned = await this.#owners.read()
    this.#has_address ||= await this.#isAddressThere()
    if (!this.#has_recovered) await this.#recover(owned)
    for (const transport of TRANSPORTS) await this.#openAll(transport, this.#ownOf(owned[transport].live.keys()))
    await this.#openSparePairs(owned)
    for (const transport of TRANSPORTS) await this.#openSpare(transport, owned[transport])
    await this.#record(owned)
    this.#are_live_open = TRANSPORTS.every((transport) =>
      this.#ownOf(owned[transport].live.keys()).every((port) => this.#opened[transport].has(port)),
    )
  }

  /** The ports that are those of this process. */
  #ownOf(ports: Iterable<number>): number[] {
    return [...ports].filter((port) => isOwnPort(this.#ctx.config.process, port))
  }

  freeze(is_frozen: boolean): void {
    this.#is_frozen = is_frozen
  }

  open(transport: PortTransport): ReadonlyMap<number, OpenPort> {
    return this.#opened[transport]
  }

  /** Opens no further port. */
  close(): void {
    this.#is_closed = true
  }

  closePorts(): void {
    for (const transport of TRANSPORTS) for (const open of this.#opened[transport].values()) open.close()
  }

  async #openAll(transport: PortTransport, ports: Iterable<number>): Promise<void> {
    if (!this.#has_address) return
    const opened = this.#opened[transport]
    const left = [...ports].filter((port) => !opened.has(port)).values()
    const openSome = async (): Promise<void> => {
      for (const port of left) {
        const open = await this.#openPort[transport](port)
        if (open === null) continue
        if (this.#is_closed) open.close()
        else opened.set(port, open)
      }
    }
    await Promise.all(Array.from({ length: PORTS_OPENING_MAX }, openSome))
  }

  /** Opens the ports of the previous edge: the matchmaker may have given them out while no edge ran. */
  async #recover(owned: Owners): Promise<void> {
    const { db, config } = this.#ctx
    const { node_id } = config
    const rows = await db
      .selectFrom('edge_ports')
      .select(['transport', 'port'])
      .where('node_id', '=', node_id)
      .execute()
    for (const transport of TRANSPORTS) {
      await this.#openAll(transport, this.#ownOf(owned[transport].live.keys()))
      const before = this.#ownOf(rows.filter((row) => row.transport === transport).map((row) => row.port))
      for (const port of before) this.#recorded[transport].add(port)
      await this.#openAll(transport, before)
    }
    this.#has_recovered = true
  }

  /** Opens numbers in both transports until enough are spare in both, or all candidates have been tried. */
  async #openSparePairs(owned: Owners): Promise<void> {
    const resting = { tcp: this.#owners.resting('tcp'), udp: this.#owners.resting('udp') }
    const isSpare = (port: number): boolean =>
      TRANSPORTS.every(
        (transport) =>
          !owned[transport].live.has(port) && !owned[transport].quarantined.has(port) && !resting[transport].has(port),
      )
    const isOpen = (port: number): boolean => TRANSPORTS.every((transport) => this.#opened[transport].has(port))
    const missing = (): number =>
      this.#spare.pairs - [...this.#opened.udp.keys()].filter((port) => isOpen(port) && isSpare(port)).length
    const isCandidate = (port: number): boolean => isSpare(port) && !isOpen(port)
    await this.#openCandidates('both', missing, isCandidate, async (some) => {
      for (const transport of TRANSPORTS) await this.#openAll(transport, some)
    })
  }

  /** Opens spare ports until there are enough, or all candidates have been tried. */
  async #openSpare(transport: PortTransport, owned: Owners[PortTransport]): Promise<void> {
    const opened = this.#opened[transport]
    const resting = this.#owners.resting(transport)
    const isSpare = (port: number): boolean =>
      !owned.live.has(port) && !owned.quarantined.has(port) && !resting.has(port)
    const missing = (): number => this.#spare.ports - [...opened.keys()].filter(isSpare).length
    const isCandidate = (port: number): boolean => !opened.has(port)
    await this.#openCandidates(transport, missing, isCandidate, (some) => this.#openAll(transport, some))
  }

  /** Opens candidates, from the next one on, until none is missing or all have been tried. */
  async #openCandidates(
    kind: PortTransport | 'both',
    missing: () => number,
    isCandidate: (port: number) => boolean,
    open: (ports: number[]) => Promise<void>,
  ): Promise<void> {
    const { length } = this.#candidates
    for (let tried = 0; tried < length && this.#has_address && !this.#is_closed; ) {
      const count = missing()
      if (count <= 0) return
      const some: number[] = []
      while (some.length < count && tried < length) {
        const port = this.#candidates[this.#cursor[kind]]!
        this.#cursor[kind] = (this.#cursor[kind] + 1) % length
        tried++
        if (isCandidate(port)) some.push(port)
      }
      await open(some)
    }
  }

  /** Makes edge_ports match the open ports, without those that rest. */
  async #record(owned: Owners): Promise<void> {
    const { db, log, listener, config } = this.#ctx
    const { node_id } = config
    const usable = { tcp: this.#usable('tcp', owned), udp: this.#usable('udp', owned) }
    const rows = missingFrom(usable, this.#recorded)
    const lost = missingFrom(this.#recorded, usable)
    for (const { transport, port } of lost) {
      const lobby_id = owned[transport].live.get(port)?.lobby_id
      if (lobby_id) log.warn({ transport, port, lobby_id }, 'another program has the port of a lobby; retrying')
      await db
        .deleteFrom('edge_ports')
        .where('node_id', '=', node_id)
        .where('transport', '=', transport)
        .where('port', '=', port)
        .execute()
      this.#recorded[transport].delete(port)
    }
    if (rows.length > 0) {
      await db
        .insertInto('edge_ports')
        .values(rows.map((row) => ({ node_id, ...row })))
        .onConflict((conflict) => conflict.doNothing())
        .execute()
      for (const { transport, port } of rows) this.#recorded[transport].add(port)
    }
    if (rows.length + lost.length > 0) await listener.notify(CHANNELS.edge_ports)
  }

  /** The open ports that lobbies have or may get. */
  #usable(transport: PortTransport, owned: Owners): Set<number> {
    const resting = this.#owners.resting(transport)
    const ports = [...this.#opened[transport].keys()]
    return new Set(ports.filter((port) => owned[transport].live.has(port) || !resting.has(port)))
  }
}

type PortSet = { keys: () => Iterable<number>; has: (port: number) => boolean }

/** Returns the ports of `all` that `some` lacks. */
function missingFrom(all: Record<PortTransport, PortSet>, some: Record<PortTransport, PortSet>) {
  return TRANSPORTS.flatMap((transport) =>
    [...all[transport].keys()].filter((port) => !some[transport].has(port)).map((port) => ({ transport, port })),
  )
}

/** Checks whether the machine has the address of the raw ports. macOS has one loopback address until more are added. */
function createAddressCheck({ config, log }: Context): () => Promise<boolean> {
  const { host } = config.edge_ports
  let is_reported = false
  return async () => {
    if (host === null) return true
    const probe = createServer().listen({ host, port: 0, exclusive: true })
    try {
      await once(probe, 'listening')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRNOTAVAIL') throw error
      if (!is_reported)
        log.warn({ host }, 'raw ports stay closed: this machine lacks the address MUSTER_EDGE_PORTS_HOST')
      is_reported = true
      return false
    }
    probe.close()
    return true
  }
}

/** Returns this process's part of the configured range, without the ports that lobbies in network mode host may use. */
function candidatesOf({ config }: Context): number[] {
  const { min, max } = config.edge_ports
  const numbers = Array.from({ length: max - min + 1 }, (_, index) => min + index)
  return numbers.filter(
    (port) =>
      isOwnPort(config.process, port) &&
      !config.host_port_ranges.some((range) => range.min <= port && port <= range.max),
  )
}

function isOwnPort({ number, count }: ProcessNumber, port: number): boolean {
  return port % count === number
}
