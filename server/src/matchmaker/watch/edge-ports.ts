// Reads at which ports the edges listen, for the port pool, and at which addresses players reach them, for responses. The edges
// write both tables and send a notification. The tables are also read every EDGES_EVERY_MS: an edge that is lost sends none.
import type { PublicEdge } from '../../config/lobby-addresses.ts'
import type { Context } from '../../context.ts'
import { type Watch, watchChannel } from '../../database/poller.ts'
import type { EdgePort } from '../../journal/changes.ts'
import { CHANNELS } from '../../wire/channels.ts'
import type { Books } from '../shards/books.ts'
import type { OpenedPort } from '../shards/port-pool.ts'

const EDGES_EVERY_MS = 5_000
/** Edges of nodes that are read. */
const EDGES_MAX = 1_000

/** What the edges were at one moment. */
export type Edges = {
  /** By node: edges that players reach at a host of their own, and that report. */
  by_node: ReadonlyMap<string, PublicEdge>
  /** By transport and number: the nodes in `by_node` whose edges listen; null: the platform's own edge. */
  nodes_by_port: ReadonlyMap<string, readonly (string | null)[]>
}

export type PortWatch = Pick<Watch, 'close'> & {
  /** The same object until something changes. */
  edges: () => Edges
}

type PortRow = { node_id: string; transport: EdgePort['transport']; port: number }
type EdgeRow = { node_id: string; public_host: string; http_port: number; https_port: number | null }

/** Resolves when the ports have been read once, or could not be. */
export async function watchPorts(ctx: Context, books: Books): Promise<PortWatch> {
  let edges: Edges = { by_node: new Map(), nodes_by_port: new Map() }
  let read = ''
  const watch = watchChannel(ctx, {
    channel: CHANNELS.edge_ports,
    every_ms: EDGES_EVERY_MS,
    async run() {
      const { public_edges, ports } = await readEdges(ctx)
      const text = JSON.stringify([public_edges, ports])
      if (text === read) return
      edges = edgesOf(public_edges, ports)
      books.openPorts(openedPorts(ports, edges))
      read = text
    },
    failure: 'the ports of the edges could not be read; trying again',
  })
  await watch.running()
  return { close: watch.close, edges: () => edges }
}

async function readEdges({ pool }: Context): Promise<{ public_edges: EdgeRow[]; ports: PortRow[] }> {
  const { rows } = await pool.query<{ public_edges: EdgeRow[]; ports: PortRow[] }>({
    name: 'edge-ports',
    text: `select (select coalesce(json_agg(edge), '[]') from (${EDGES_SQL}) as edge) as public_edges,
      (select coalesce(json_agg(opened), '[]') from (${PORTS_SQL}) as opened) as ports`,
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

/** Without those of nodes whose edge players cannot reach: of these only the platform's own count. */
const PORTS_SQL = `
  select node_id, transport, port from edge_ports
  where node_id not in (select node_id from node_links)
    or node_id in (select node_id from edges where ${NAMED_SQL})
  order by port, node_id`

function edgesOf(public_edges: readonly EdgeRow[], ports: readonly PortRow[]): Edges {
  const by_node = new Map(public_edges.map(({ node_id, ...edge }) => [node_id, edge]))
  const nodes_by_port = new Map<string, (string | null)[]>()
  for (const { node_id, transport, port } of ports) {
    const key = portKey(transport, port)
    const nodes = nodes_by_port.get(key) ?? []
    nodes_by_port.set(key, nodes)
    nodes.push(by_node.has(node_id) ? node_id : null)
  }
  return { by_node, nodes_by_port }
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
