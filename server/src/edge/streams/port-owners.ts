// Which lobbies have the edge's tcp and udp ports: what the matchmaker wrote into lobbies, kept in memory. It is read again
// at every notification and every second (edge-ports.ts). It is also read when a connection arrives at a port without an
// owner: the port's address may have been returned to a player a moment ago.
//
// A client may go on sending to the port of a lobby that has ended. Such a port rests until it was silent: the matchmaker
// gives it to no other lobby (edge-ports.ts). Only a client that is heard during the quarantine begins a rest, so clients
// that try many ports make few of them rest.
import { sql } from 'kysely'
import type { Context } from '../../context.ts'
import { PORT_QUARANTINE_MS } from '../../database/edge-ports.ts'
import type { EdgePortNumber } from '../../database/schema.ts'
import { PORT_SILENT_MS, PORTS_READ_PAUSE_MS, PORTS_RESTING_MAX, PORTS_RESTING_SHARE } from '../limits.ts'
import type { Lookups } from '../routes/lookups.ts'
import type { RoutedPort } from '../routes/routes.ts'

export type PortTransport = EdgePortNumber['transport']

/** By transport: the ports of live lobbies, and the ports of lobbies that ended less than PORT_QUARANTINE_MS ago. */
export type Owners = Record<PortTransport, { live: ReadonlyMap<number, RoutedPort>; quarantined: ReadonlySet<number> }>

export type PortOwners = {
  /** Returns the port's lobby, at once when it is in memory. Null: no lobby has the port. Throws the refusals of lookups.ts. */
  find: (transport: PortTransport, port: number, client_key: string) => RoutedPort | null | Promise<RoutedPort | null>
  /** The port's lobby as of the last read. */
  known: (transport: PortTransport, port: number) => RoutedPort | null
  /** Reads the owners as they are now or later. Rejects while the database is down. */
  read: () => Promise<Owners>
  /** Ports to which clients of an ended lobby still send. */
  resting: (transport: PortTransport) => ReadonlySet<number>
}

export function createPortOwners(ctx: Context, lookups: Lookups): PortOwners {
  let owners: Owners = { tcp: noPorts(), udp: noPorts() }
  const resting = { tcp: createRestingPorts(ctx), udp: createRestingPorts(ctx) }
  const under_way = new Map<string, Promise<RoutedPort | null>>()
  let reading: Promise<Owners> | null = null
  let next: Promise<Owners> | null = null

  async function readNow(): Promise<Owners> {
    try {
      owners = await readOwners(ctx)
      return owners
    } finally {
      reading = null
    }
  }

  /** One read runs at a time. All calls during a read share the one after it. */
  function read(): Promise<Owners> {
    if (reading === null) {
      reading = readNow()
      return reading
    }
    next ??= reading
      // The callers of that read get its error.
      .catch(() => {})
      .then(() => new Promise((resolve) => setTimeout(resolve, PORTS_READ_PAUSE_MS)))
      .then(() => {
        next = null
        return read()
      })
    return next
  }

  const known = (transport: PortTransport, port: number): RoutedPort | null => owners[transport].live.get(port) ?? null

  /** One look-up for all clients that arrive at a port at the same time: a whole lobby may. */
  function lookUp(transport: PortTransport, port: number, client_key: string): Promise<RoutedPort | null> {
    const key = `${transport} ${port}`
    const lookup =
      under_way.get(key) ??
      lookups
        .run(client_key, async () => {
          await read()
          return known(transport, port)
        })
        .finally(() => under_way.delete(key))
    under_way.set(key, lookup)
    return lookup
  }

  return {
    find(transport, port, client_key) {
      const owner = known(transport, port)
      if (owner !== null) return owner
      resting[transport].heard(port, owners[transport].quarantined.has(port))
      return lookUp(transport, port, client_key)
    },
    known,
    read,
    resting: (transport) => resting[transport].ports(),
  }
}

function createRestingPorts({ config, elapsed }: Context) {
  const { min, max } = config.edge_ports
  // Each edge process of the machine has a part of the ports.
  const own_count = (max - min + 1) / config.process.count
  const resting_max = Math.min(PORTS_RESTING_MAX, Math.floor(own_count * PORTS_RESTING_SHARE))
  /** When each was last heard. */
  const heard = new Map<number, number>()
  return {
    /** A client was heard at a port without a lobby. */
    heard(port: number, is_quarantined: boolean): void {
      if (heard.has(port) || (is_quarantined && heard.size < resting_max)) heard.set(port, elapsed())
    },
    ports(): ReadonlySet<number> {
      const now_ms = elapsed()
      for (const [port, heard_ms] of heard) if (now_ms - heard_ms >= PORT_SILENT_MS) heard.delete(port)
      return new Set(heard.keys())
    },
  }
}

function noPorts() {
  return { live: new Map<number, RoutedPort>(), quarantined: new Set<number>() }
}

async function readOwners(ctx: Context): Promise<Owners> {
  const rows = await ctx.db
    .selectFrom('lobbies')
    .select(['lobby_id', 'region', 'edge_ports', 'stop_ts'])
    .where(sql<boolean>`edge_ports <> '[]'`)
    .where((or) => or('stop_ts', 'is', null).or(or('stop_ts', '>', new Date(ctx.now() - PORT_QUARANTINE_MS))))
    .execute()
  const owners = { tcp: noPorts(), udp: noPorts() }
  for (const { lobby_id, region, edge_ports, stop_ts } of rows) {
    for (const { name, transport, port } of edge_ports) {
      if (stop_ts === null) owners[transport].live.set(port, { lobby_id, region, port_name: name })
      else owners[transport].quarantined.add(port)
    }
  }
  return owners
}
