// Reads at which ports the edges listen, for the port pool, and at which addresses players reach them, for responses. The edges
// write both tables and send a notification. The tables are also read every EDGES_EVERY_MS: an edge that is lost sends none.
import type { Config } from '../../config/config.ts'
import type { PublicEdge } from '../../config/lobby-addresses.ts'
import { type PingAddress, pingAddress } from '../../config/ping-addresses.ts'
import type { Context } from '../../context.ts'
import { type Watch, watchChannel } from '../../database/poller.ts'
import type { EdgePort } from '../../journal/changes.ts'
import { CHANNELS } from '../../wire/channels.ts'
import type { Books } from '../shards/books.ts'
import type { OpenedPort } from '../shards/port-pool.ts'

const EDGES_EVERY_MS = 5_000
/** Edges of nodes that are read. */
const EDGES_MAX = 1_000
/** Addresses at which a client measures its latency to one region. */
const PING_ADDRESSES_MAX = 8

/** What the edges were at one moment. */
export type Edges = {
  /** By node: edges that players reach at a host of their own, and that report. */
  by_node: ReadonlyMap<string, PublicEdge>
  /** By transport and number: the nodes in `by_node` whose edges listen; null: the platform's own edge. */
  nodes_by_port: ReadonlyMap<string, readonly (string | null)[]>
  /** By region: where clients measure their latency to the edges that stand there. */
  pings: ReadonlyMap<string, readonly PingAddress[]>
}

export type PortWatch = Pick<Watch, 'close'> & {
  /** The same object until something changes. */
  edges: () => Edges
}

type PortRow = { node_id: string; transport: EdgePort['transport']; port: number }
type EdgeRow = { node_id: string; public_host: string; http_port: number; https_port: number | null }
/** `public_edge`: null: at the addresses of the platform. */
type PlacedRow = { regions: readonly string[]; ping_port: number | null; public_edge: PublicEdge | null }
type EdgeRows = { public_edges: EdgeRow[]; ports: PortRow[]; placed: PlacedRow[] }

/** Resolves when the ports have been read once, or could not be. */
export async function watchPorts(ctx: Context, books: Books): Promise<PortWatch> {
  let edges: Edges = { by_node: new Map(), nodes_by_port: new Map(), pings: new Map() }
  let read = ''
  const watch = watchChannel(ctx, {
    channel: CHANNELS.edge_ports,
    every_ms: EDGES_EVERY_MS,
    async run() {
      const rows = await readEdges(ctx)
      const text = JSON.stringify(rows)
      if (text === read) return
      edges = edgesOf(ctx.config, rows)
      books.openPorts(openedPorts(rows.ports, edges))
      read = text
    },
    failure: 'the ports of the edges could not be read; trying again',
  })
  await watch.running()
  return { close: watch.close, edges: () => edges }
}

async function readEdges({ pool }: Context): Promise<EdgeRows> {
  const { rows } = await pool.query<EdgeRows>({
    name: 'edge-ports',
    text: `select (select coalesce(json_agg(edge), '[]') from (${EDGES_SQL}) as edge) as public_edges,
      (select coalesce(json_agg(opened), '[]') from (${PORTS_SQL}) as opened) as ports,
      (select coalesce(json_agg(placed), '[]') from (${PLACED_SQL}) as placed) as placed`,
  })
  return rows[0]!
}

/**
 * Edges that players reach at a host of their own. A node of which an edge process does not report is not named to players: that process
 * has a part of the node's ports.
 */
const NAMED_SQL = `public_host is not null and not exists (
  select from edges as silent where silent.node_id = edges.node_id and silent.silent_ts is not null
)`

/** The newest of each node. */
const EDGES_SQL = `
  select distinct on (node_id) node_id, public_host, http_port, https_port from edges
  where ${NAMED_SQL} order by node_id, start_ts desc limit ${EDGES_MAX}`

/** Without edges of a version before, which do not say where they stand. Those of the platform come first. */
const PLACED_SQL = `
  select distinct regions, ping_port, case when public_host is not null
    then json_build_object('public_host', public_host, 'http_port', http_port, 'https_port', https_port)::jsonb end as public_edge
  from edges where regions is not null and silent_ts is null order by public_edge nulls first, ping_port limit ${EDGES_MAX}`

/** Without those of nodes whose edge players cannot reach: of these only the platform's own count. */
const PORTS_SQL = `
  select node_id, transport, port from edge_ports
  where node_id not in (select node_id from node_links)
    or node_id in (select node_id from edges where ${NAMED_SQL})
  order by port, node_id`

function edgesOf(config: Config, { public_edges, ports, placed }: EdgeRows): Edges {
  const by_node = new Map(public_edges.map(({ node_id, ...edge }) => [node_id, edge]))
  const nodes_by_port = new Map<string, (string | null)[]>()
  for (const { node_id, transport, port } of ports) {
    const key = portKey(transport, port)
    const nodes = nodes_by_port.get(key) ?? []
    nodes_by_port.set(key, nodes)
    nodes.push(by_node.has(node_id) ? node_id : null)
  }
  return { by_node, nodes_by_port, pings: pingsOf(config, placed) }
}

function pingsOf(config: Config, placed: readonly PlacedRow[]): Edges['pings'] {
  const pings = new Map<string, PingAddress[]>()
  for (const { regions, ping_port, public_edge } of placed) {
    for (const region of regions) {
      const known = pings.get(region) ?? []
      const address = pingAddress(config, region, public_edge, ping_port)
      if (known.length < PING_ADDRESSES_MAX && known.every(({ url }) => url !== address.url)) known.push(address)
      pings.set(region, known)
    }
  }
  return pings
}

function openedPorts(ports: readonly PortRow[], { nodes_by_port }: Edges): OpenedPort[] {
  return ports.map(({ transport, port }) => ({ transport, port, nodes: nodes_by_port.get(portKey(transport, port))! }))
}

/** The edge that players of a lobby are sent to: that of its own node, or one that has the port. Null: the platform's own. */
export function edgeOf(
  { by_node, nodes_by_port }: Edges,
  node_id: string | null,
  port: Pick<EdgePort, 'transport' | 'port'> | null,
): PublicEdge | null {
  const own = node_id === null ? null : (by_node.get(node_id) ?? null)
  if (port === null) return own
  const nodes = nodes_by_port.get(portKey(port.transport, port.port)) ?? []
  if (own !== null && nodes.includes(node_id)) return own
  const [other = null] = nodes.includes(null) ? [] : nodes
  return other === null ? null : (by_node.get(other) ?? null)
}

function portKey(transport: EdgePort['transport'], port: number): string {
  return `${transport} ${port}`
}
