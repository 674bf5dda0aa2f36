// The tcp and udp ports that the edge keeps open: those of live lobbies, and some spare ones for the next, so that an
// address that find answers accepts at once. What is open is recorded in edge_ports, and only what is recorded is given
// to lobbies (matchmaker/shards/port-pool.ts). A port is closed (not ours, or another program has it), opened, recorded; it
// stays open until the edge ends, for it may be given out at any moment. The next edge opens all that is recorded, the
// ports of live lobbies first.
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from '../../context.ts'
import { watchChannel } from '../../database/poller.ts'
import { PORTS_EVERY_MS, PORTS_OPENING_MAX, PORTS_START_MS_MAX } from '../limits.ts'
import type { Owners, PortOwners, Transport } from './port-owners.ts'

/** Closes it, and what goes through it. */
export type OpenPort = { close: () => void }
/** Null: another program has it. */
export type OpenPorts = Record<Transport, (port: number) => Promise<OpenPort | null>>
export type EdgePorts = { close: () => Promise<void> }

const TRANSPORTS = ['tcp', 'udp'] as const

/** Resolves when the first ports are open and recorded, or the database does not answer. */
export async function keepPortsOpen(ctx: Context, owners: PortOwners, openPort: OpenPorts): Promise<EdgePorts> {
  const candidates = candidatesOf(ctx)
  const opened = { tcp: new Map<number, OpenPort>(), udp: new Map<number, OpenPort>() }
  const recorded = { tcp: new Set<number>(), udp: new Set<number>() }
  // Somewhere in the range, so that two platforms on one machine seldom meet.
  const cursor = { tcp: randomInt(candidates.length || 1), udp: randomInt(candidates.length || 1) }
  const isAddressThere = createAddressCheck(ctx)
  let has_address = false
  let has_recovered = false
  let is_closed = false

  async function openAll(transport: Transport, ports: Iterable<number>): Promise<void> {
    if (!has_address) return
    const left = [...ports].filter((port) => !opened[transport].has(port)).values()
    const openSome = async (): Promise<void> => {
      for (const port of left) {
        const open = await openPort[transport](port)
        if (open === null) continue
        if (is_closed) open.close()
        else opened[transport].set(port, open)
      }
    }
    await Promise.all(Array.from({ length: PORTS_OPENING_MAX }, openSome))
  }

  /** What the edge before this one had open: the matchmaker may have given it out while there was none. */
  async function recover(owned: Owners): Promise<void> {
    const rows = await ctx.db.selectFrom('edge_ports').select(['transport', 'port']).execute()
    for (const transport of TRANSPORTS) {
      await openAll(transport, owned[transport].live.keys())
      const before = rows.filter((row) => row.transport === transport).map((row) => row.port)
      for (const port of before) recorded[transport].add(port)
      await openAll(transport, before)
    }
    has_recovered = true
  }

  /** Spare ones until there are enough, or all have been tried. */
  async function openSpare(transport: Transport, owned: Owners[Transport]): Promise<void> {
    const isSpare = (port: number): boolean => !owned.live.has(port) && !owned.resting.has(port)
    const missing = (): number => ctx.config.edge_ports.spare - [...opened[transport].keys()].filter(isSpare).length
    for (let tried = 0; tried < candidates.length && has_address && !is_closed; ) {
      const count = missing()
      if (count <= 0) return
      const some: number[] = []
      while (some.length < count && tried < candidates.length) {
        const port = candidates[cursor[transport]]!
        cursor[transport] = (cursor[transport] + 1) % candidates.length
        tried++
        if (!opened[transport].has(port)) some.push(port)
      }
      await openAll(transport, some)
    }
  }

  /** Makes the table say what is open. */
  async function record(owned: Owners): Promise<void> {
    const rows = TRANSPORTS.flatMap((transport) =>
      [...opened[transport].keys()]
        .filter((port) => !recorded[transport].has(port))
        .map((port) => ({ transport, port })),
    )
    const lost = TRANSPORTS.flatMap((transport) =>
      [...recorded[transport]].filter((port) => !opened[transport].has(port)).map((port) => ({ transport, port })),
    )
    for (const { transport, port } of lost) {
      const lobby_id = owned[transport].live.get(port)?.lobby_id
      if (lobby_id) ctx.log.warn({ transport, port, lobby_id }, 'another program has the port of a lobby; trying again')
      await ctx.db.deleteFrom('edge_ports').where('transport', '=', transport).where('port', '=', port).execute()
      recorded[transport].delete(port)
    }
    if (rows.length > 0) {
      await ctx.db
        .insertInto('edge_ports')
        .values(rows)
        .onConflict((conflict) => conflict.doNothing())
        .execute()
      for (const { transport, port } of rows) recorded[transport].add(port)
    }
    if (rows.length + lost.length > 0) await ctx.listener.notify('edge_ports')
  }

  async function pass(): Promise<void> {
    const owned = await owners.read()
    has_address ||= await isAddressThere()
    if (!has_recovered) await recover(owned)
    for (const transport of TRANSPORTS) {
      await openAll(transport, owned[transport].live.keys())
      await openSpare(transport, owned[transport])
    }
    await record(owned)
  }

  const watch = watchChannel(ctx, {
    channel: 'lobbies',
    every_ms: PORTS_EVERY_MS,
    look: pass,
    failure: "the edge's ports could not be looked after; trying again",
  })
  await Promise.race([watch.looking(), delay(PORTS_START_MS_MAX, undefined, { ref: false })])
  return {
    async close() {
      is_closed = true
      await watch.close()
      for (const transport of TRANSPORTS) for (const open of opened[transport].values()) open.close()
    },
  }
}

/** Whether the machine has the address that the ports listen at. macOS has one loopback address until it is given more. */
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

/** The range, less what lobbies in network mode host may have. */
function candidatesOf({ config }: Context): number[] {
  const { min, max } = config.edge_ports
  const numbers = Array.from({ length: max - min + 1 }, (_, index) => min + index)
  return numbers.filter((port) => !config.host_port_ranges.some((range) => range.min <= port && port <= range.max))
}
