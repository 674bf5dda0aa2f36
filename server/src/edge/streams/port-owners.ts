// Whose the edge's tcp and udp ports are: what the matchmaker wrote into lobbies, all of it in memory. It is read again
// at every wake-up and every second (edge-ports.ts), and when a port is asked for that has no owner yet: an address that
// was answered a moment ago must be known.
import { sql } from 'kysely'
import type { Context } from '../../context.ts'
import type { EdgePortNumber } from '../../database/schema.ts'
import { PORT_REST_MS, PORTS_READ_PAUSE_MS } from '../limits.ts'
import type { Lookups } from '../lookups.ts'
import type { LobbyPort } from '../routes.ts'

export type Transport = EdgePortNumber['transport']

/** By transport: the live lobbies' ports, and those that a lobby has had until a moment ago. */
export type Owners = Record<Transport, { live: ReadonlyMap<number, LobbyPort>; resting: ReadonlySet<number> }>

export type PortOwners = {
  /** At once when it is known. Null: no lobby has it. Throws what a look-up throws. `source` asks; see lookups.ts. */
  find: (transport: Transport, port: number, source: string) => LobbyPort | null | Promise<LobbyPort | null>
  /** As of the last reading. */
  known: (transport: Transport, port: number) => LobbyPort | null
  /** Reads what was true when it was called, or later. Rejects while the database is away. */
  read: () => Promise<Owners>
}

export function createPortOwners(ctx: Context, lookups: Lookups): PortOwners {
  let owners: Owners = { tcp: nothing(), udp: nothing() }
  const asked = new Map<string, Promise<LobbyPort | null>>()
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

  /** One at a time; whoever comes while one is under way shares the one after it. */
  function read(): Promise<Owners> {
    if (reading === null) {
      reading = readNow()
      return reading
    }
    next ??= reading
      // Told to those who wait for that one.
      .catch(() => {})
      .then(() => new Promise((resolve) => setTimeout(resolve, PORTS_READ_PAUSE_MS)))
      .then(() => {
        next = null
        return read()
      })
    return next
  }

  const known = (transport: Transport, port: number): LobbyPort | null => owners[transport].live.get(port) ?? null

  /** Once for all who ask for the port at the same time: a whole lobby may come in one moment. */
  function ask(transport: Transport, port: number, source: string): Promise<LobbyPort | null> {
    const key = `${transport} ${port}`
    const asking =
      asked.get(key) ??
      lookups
        .run(source, async () => {
          await read()
          return known(transport, port)
        })
        .finally(() => asked.delete(key))
    asked.set(key, asking)
    return asking
  }

  return {
    find: (transport, port, source) => known(transport, port) ?? ask(transport, port, source),
    known,
    read,
  }
}

function nothing() {
  return { live: new Map<number, LobbyPort>(), resting: new Set<number>() }
}

async function readOwners(ctx: Context): Promise<Owners> {
  const rows = await ctx.db
    .selectFrom('lobbies')
    .select(['lobby_id', 'region', 'edge_ports', 'stop_ts'])
    .where(sql<boolean>`edge_ports <> '[]'`)
    .where((or) => or('stop_ts', 'is', null).or(or('stop_ts', '>', new Date(ctx.now() - PORT_REST_MS))))
    .execute()
  const owners = { tcp: nothing(), udp: nothing() }
  for (const { lobby_id, region, edge_ports, stop_ts } of rows) {
    for (const { name, transport, port } of edge_ports) {
      if (stop_ts === null) owners[transport].live.set(port, { lobby_id, region, port_name: name })
      else owners[transport].resting.add(port)
    }
  }
  return owners
}
