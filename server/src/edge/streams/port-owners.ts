// Which lobbies have the edge's tcp and udp ports: what the matchmaker wrote into lobbies, kept in memory. It is read again
// at every notification and every second (edge-ports.ts). It is also read when a connection arrives at a port without an
// owner: the port's address may have been returned to a player a moment ago.
import { sql } from 'kysely'
import type { Context } from '../../context.ts'
import { PORT_QUARANTINE_MS } from '../../database/edge-ports.ts'
import type { EdgePortNumber } from '../../database/schema.ts'
import { PORTS_READ_PAUSE_MS } from '../limits.ts'
import type { Lookups } from '../lookups.ts'
import type { LobbyPort } from '../routes.ts'

export type Transport = EdgePortNumber['transport']

/** By transport: the ports of live lobbies, and the ports of lobbies that ended less than PORT_QUARANTINE_MS ago. */
export type Owners = Record<Transport, { live: ReadonlyMap<number, LobbyPort>; quarantined: ReadonlySet<number> }>

export type PortOwners = {
  /** Returns the port's lobby, at once when it is in memory. Null: no lobby has the port. Throws the refusals of lookups.ts. */
  find: (transport: Transport, port: number, client_key: string) => LobbyPort | null | Promise<LobbyPort | null>
  /** The port's lobby as of the last read. */
  known: (transport: Transport, port: number) => LobbyPort | null
  /** Reads the owners as they are now or later. Rejects while the database is down. */
  read: () => Promise<Owners>
}

export function createPortOwners(ctx: Context, lookups: Lookups): PortOwners {
  let owners: Owners = { tcp: noPorts(), udp: noPorts() }
  const under_way = new Map<string, Promise<LobbyPort | null>>()
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

  const known = (transport: Transport, port: number): LobbyPort | null => owners[transport].live.get(port) ?? null

  /** One look-up for all clients that arrive at a port at the same time: a whole lobby may. */
  function lookUp(transport: Transport, port: number, client_key: string): Promise<LobbyPort | null> {
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
    find: (transport, port, client_key) => known(transport, port) ?? lookUp(transport, port, client_key),
    known,
    read,
  }
}

function noPorts() {
  return { live: new Map<number, LobbyPort>(), quarantined: new Set<number>() }
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
