// Which of the edge's ports the lobbies have, over all namespaces and shards. It keeps law L5: a port has at most one live
// lobby. Like room (capacity.ts), a port is taken in the step that decides on a lobby. The journal has the ports of each
// lobby, so that a load finds them. A port is unopened until the edge listens on it, then free, then taken. When the end of
// its lobby is durable, it is quarantined, so that late packets for that lobby do not reach the next one. Between several
// processes the claims in the database decide (port-claims.ts); this pool only chooses ports that are probably free.
import type { Logger } from 'pino'
import { PORT_QUARANTINE_MS } from '../../database/edge-ports.ts'
import type { EdgePort } from '../../journal/changes.ts'
import { SHARD_COUNT } from '../../journal/pages.ts'
import type { ChoosePorts } from '../book/commands.ts'
import type { Book } from '../book/state.ts'

type Transport = EdgePort['transport']
type Holder = { lobby_id: string; edge_ports: readonly EdgePort[] }
type Ended = Holder & { stop_ms: number | null }

/** A port on which edges listen. `nodes`: of edges that players reach directly; null: of the platform's own edge. */
export type OpenedPort = { transport: Transport; port: number; nodes: readonly (string | null)[] }

export type PortPool = {
  /** Free ports, those of the node's edge first, and the longest unused of these. They are not taken yet. */
  choose: ChoosePorts
  /** Throws when another lobby has one of the ports: the command must fail. */
  take: (shard: number, lobby: Holder) => void
  /** The lobby never became durable: its ports are free at once. */
  undo: (shard: number, lobby: Holder) => void
  /** The lobby's end is durable. */
  retire: (shard: number, lobby: Ended) => void
  /** To be called after a load of the shard: it has the ports of its books. */
  replace: (shard: number, books: Iterable<Book>) => void
  /** Sets the ports that lobbies of other processes have. They are not chosen. */
  setElsewhere: (ports: Iterable<{ transport: Transport; port: number }>) => void
  /** Sets the ports on which edges listen now. Returns whether there are more than before. */
  open: (ports: Iterable<OpenedPort>) => boolean
}

export function createPortPool(log: Logger): PortPool {
  const tables: Record<Transport, Table> = { tcp: createTable(), udp: createTable() }
  const all = Object.values(tables)
  const shards = Array.from({ length: SHARD_COUNT }, () => new Map<string, readonly EdgePort[]>())

  function clash({ lobby_id, edge_ports }: Holder): string | null {
    for (const { transport, port } of edge_ports) {
      const other = tables[transport].users.get(port)
      if (other !== undefined && other !== lobby_id) return `L5: ${transport} ${port} is taken by two lobbies`
    }
    return null
  }

  function take(shard: number, lobby: Holder): void {
    const law = clash(lobby)
    if (law !== null) throw new Error(law)
    if (lobby.edge_ports.length === 0) return
    shards[shard]!.set(lobby.lobby_id, lobby.edge_ports)
    for (const { transport, port } of lobby.edge_ports) tables[transport].take(port, lobby.lobby_id)
  }

  function release(shard: number, lobby_id: string, until_ms: number): void {
    for (const { transport, port } of shards[shard]!.get(lobby_id) ?? []) tables[transport].release(port, until_ms)
    shards[shard]!.delete(lobby_id)
  }

  return {
    choose(wanted, now_ms, node_id) {
      if (wanted.length === 0) return []
      for (const table of all) table.endQuarantines(now_ms)
      const numbers = new Map<string, number>()
      const followers = wanted.filter(({ same_number_as }) => same_number_as !== undefined)
      if (followers.length > 0) {
        const both = tables.tcp.freeWith(tables.udp, followers.length, node_id)
        if (both === null) return null
        for (const [index, { name, same_number_as }] of followers.entries()) {
          numbers.set(name, both[index]!).set(same_number_as!, both[index]!)
        }
      }
      const pairs = new Set(numbers.values())
      const chosen: EdgePort[] = []
      for (const [transport, table] of Object.entries(tables) as [Transport, Table][]) {
        const requested = wanted.filter((port) => port.transport === transport)
        const singles = requested.filter(({ name }) => !numbers.has(name))
        // Numbers that are free in both transports are left to the lobbies that need them.
        const other = transport === 'tcp' ? tables.udp : tables.tcp
        const free = table.free(singles.length, node_id, { without: pairs, last: (port) => other.isFree(port) })
        if (free === null) return null
        for (const [index, { name }] of singles.entries()) numbers.set(name, free[index]!)
        for (const { name } of requested) chosen.push({ name, transport, port: numbers.get(name)! })
      }
      return chosen
    },
    take,
    undo: (shard, { lobby_id }) => release(shard, lobby_id, 0),
    retire: (shard, { lobby_id, stop_ms }) => release(shard, lobby_id, (stop_ms ?? 0) + PORT_QUARANTINE_MS),
    replace(shard, books) {
      for (const lobby_id of [...shards[shard]!.keys()]) release(shard, lobby_id, 0)
      for (const book of books) {
        for (const lobby of book.lobbies.values()) {
          if (lobby.stop_ms !== null) {
            for (const { transport, port } of lobby.edge_ports) {
              tables[transport].quarantine(port, lobby.stop_ms + PORT_QUARANTINE_MS)
            }
            continue
          }
          const law = clash(lobby)
          // The earlier lobby keeps the port, and all other lobbies of the shard must still be read.
          if (law === null) take(shard, lobby)
          else log.fatal({ lobby_id: lobby.lobby_id }, law)
        }
      }
    },
    setElsewhere(ports) {
      const elsewhere = { tcp: new Set<number>(), udp: new Set<number>() }
      for (const { transport, port } of ports) elsewhere[transport].add(port)
      tables.tcp.setElsewhere(elsewhere.tcp)
      tables.udp.setElsewhere(elsewhere.udp)
    },
    open(ports) {
      const opened = { tcp: new Map<number, OpenedPort['nodes']>(), udp: new Map<number, OpenedPort['nodes']>() }
      for (const { transport, port, nodes } of ports) opened[transport].set(port, nodes)
      const before = all.reduce((sum, table) => sum + table.open_count(), 0)
      tables.tcp.open(opened.tcp)
      tables.udp.open(opened.udp)
      return all.reduce((sum, table) => sum + table.open_count(), 0) > before
    },
  }
}

/** The edge of the lobby's own node, the platform's own edge, any other edge. */
const RANKS = 3

function rankOf(nodes: OpenedPort['nodes'], node_id: string | null): number {
  if (node_id !== null && nodes.includes(node_id)) return 0
  return nodes.includes(null) ? 1 : 2
}

function firstOf(groups: readonly (readonly number[])[], count: number): number[] | null {
  const numbers = groups.flat().slice(0, count)
  return numbers.length === count ? numbers : null
}

type Table = ReturnType<typeof createTable>

type FreePorts = { isFree: (port: number) => boolean; nodesOf: (port: number) => OpenedPort['nodes'] }

/** The numbers of one transport. */
function createTable() {
  let opened: ReadonlyMap<number, OpenedPort['nodes']> = new Map()
  let elsewhere: ReadonlySet<number> = new Set()
  /** The port that is chosen first comes first. */
  const unused = new Set<number>()
  const users = new Map<number, string>()
  /** The end of the quarantine, by port; in nearly ascending order. */
  const quarantined = new Map<number, number>()

  function release(port: number, until_ms: number): void {
    users.delete(port)
    if (until_ms > 0) quarantine(port, until_ms)
    else if (opened.has(port) && !quarantined.has(port)) unused.add(port)
  }

  function quarantine(port: number, until_ms: number): void {
    if (users.has(port)) return
    const until = Math.max(until_ms, quarantined.get(port) ?? 0)
    quarantined.delete(port)
    quarantined.set(port, until)
    unused.delete(port)
  }

  return {
    users,
    release,
    quarantine,
    open_count: () => opened.size,
    setElsewhere(ports: ReadonlySet<number>): void {
      elsewhere = ports
    },
    take(port: number, lobby_id: string): void {
      users.set(port, lobby_id)
      unused.delete(port)
      quarantined.delete(port)
    },
    endQuarantines(now_ms: number): void {
      for (const [port, until_ms] of quarantined) {
        if (until_ms > now_ms) continue
        quarantined.delete(port)
        if (opened.has(port)) unused.add(port)
      }
    },
    isFree: (port: number): boolean => unused.has(port) && !elsewhere.has(port),
    nodesOf: (port: number): OpenedPort['nodes'] => opened.get(port) ?? [],
    /**
     * Returns numbers of the edge of `node_id` first, then of the platform's own, then of others. In each group, numbers for
     * which `last` holds come last. Null: there are fewer.
     */
    free(
      count: number,
      node_id: string | null,
      { without, last }: { without: ReadonlySet<number>; last: (port: number) => boolean },
    ): number[] | null {
      const groups: number[][] = Array.from({ length: 2 * RANKS }, () => [])
      for (const port of unused) {
        if (groups[0]!.length === count) break
        if (elsewhere.has(port) || without.has(port)) continue
        groups[2 * rankOf(opened.get(port) ?? [], node_id) + (last(port) ? 1 : 0)]!.push(port)
      }
      return firstOf(groups, count)
    },
    /** Numbers that are free here and in the table `other`, at the same edge. Null: there are fewer. */
    freeWith(other: FreePorts, count: number, node_id: string | null): number[] | null {
      const groups: number[][] = Array.from({ length: RANKS }, () => [])
      for (const port of unused) {
        if (groups[0]!.length === count) break
        if (elsewhere.has(port) || !other.isFree(port)) continue
        const of_other = other.nodesOf(port)
        const nodes = (opened.get(port) ?? []).filter((node) => of_other.includes(node))
        if (nodes.length > 0) groups[rankOf(nodes, node_id)]!.push(port)
      }
      return firstOf(groups, count)
    },
    open(ports: ReadonlyMap<number, OpenedPort['nodes']>): void {
      for (const port of opened.keys()) if (!ports.has(port)) unused.delete(port)
      for (const port of ports.keys()) {
        if (!opened.has(port) && !users.has(port) && !quarantined.has(port)) unused.add(port)
      }
      opened = ports
    },
  }
}
