// Follows the nodes that run lobbies: the reports of their runners (runner/report.ts), and what the operator decided about
// them (table nodes). From these follows where new lobbies are placed (shards/capacity.ts), and which lobbies end:
//
// - open: the node gets lobbies, unless its disk or its local ports are nearly used up, or it is a machine of a Docker Swarm
//   that starts none now.
// - away: it has not reported for a few seconds. While another node of its regions is open, it gets none, its lobbies take no
//   new player (runs.ts), and those that are not ready end. Its players keep their seats.
// - lost: it was away for MUSTER_NODE_GRACE_SECONDS. All its lobbies of a shard end in one journal row, `node_lost`.
// - draining: its empty lobbies end, and at the deadline all, `node_drained`. Removed: all end, `node_removed`.
//
// A node needs no fence. When it returns, its runner ends what is no longer wanted, and the tokens of ended lobbies are refused.
import type { RoomLimit } from '../../config/regions.ts'
import type { Context } from '../../context.ts'
import type { Poller, PollerOptions, Watch } from '../../database/poller.ts'
import type { StopReason } from '../../journal/changes.ts'
import { CHANNELS } from '../../wire/channels.ts'
import * as decide from '../book/decide.ts'
import type { Books } from '../shards/books.ts'
import type { NodeRoom, NodeState } from '../shards/capacity.ts'
import { NodeSilence } from './node-silence.ts'

/** Nodes that are read. */
const NODES_MAX = 1_000
/** At the first read, an older report is of a node that is away. By the database's clock. */
const FRESH = '10 seconds'
/** A node with fewer free local ports gets no lobby. More are not taken between two reports: 8 starts of 16 ports. */
const PORTS_MIN = 128

export type NodeRow = RoomLimit & {
  node_id: string
  regions: string[]
  disk_free_bytes: number
  port_count: number
  refusal: 'no_manager' | 'not_available' | null
  /** Null: the node has no row of a runner. */
  report_seq: number | null
  is_fresh: boolean
  is_draining: boolean
  at_match_end: boolean
  is_over: boolean
  is_removed: boolean
}

/** Reads the nodes again and again. Observed is one. */
type ObservedNodes = { follow: (options: PollerOptions) => Poller; read: () => Promise<{ nodes: readonly NodeRow[] }> }

export type NodeWatch = Pick<Watch, 'close'> & {
  /** Nodes whose lobbies take no new players now. */
  shutNodes: () => readonly string[]
}

/** Resolves when the nodes have been read once, or could not be. `onShut`: `shutNodes` has changed. */
export async function watchNodes(
  ctx: Context,
  { books, observed, onShut }: { books: Books; observed: ObservedNodes; onShut: () => void },
): Promise<NodeWatch> {
  const nodes = new Nodes(ctx, books, onShut)
  const watch = observed.follow({
    run: async () => nodes.update((await observed.read()).nodes),
    failure: 'the nodes could not be read; trying again',
  })
  const unsubscribe = ctx.listener.on(CHANNELS.nodes, watch.wake)
  await watch.running()
  return {
    close() {
      unsubscribe()
      return watch.close()
    },
    shutNodes: () => nodes.shut,
  }
}

const LOG_LINES: Record<NodeState | 'gone', string> = {
  open: 'a node is open for lobbies',
  away: 'a node is silent; lobbies start on other nodes, if there are any',
  draining: 'a node is draining',
  disk_full: 'a node has too little free disk; no lobby starts there',
  ports_full: 'a node has too few free ports; no lobby starts there',
  no_manager: 'a node has lost the managers of its swarm; no lobby starts there',
  not_available: 'a node is not available in its swarm; no lobby starts there',
  gone: 'a node is gone',
}

class Nodes {
  /** Nodes whose lobbies take no new players. */
  shut: readonly string[] = []
  readonly #ctx: Context
  readonly #books: Books
  readonly #onShut: () => void
  readonly #silence: NodeSilence
  #states = new Map<string, NodeState>()

  constructor(ctx: Context, books: Books, onShut: () => void) {
    this.#ctx = ctx
    this.#books = books
    this.#onShut = onShut
    this.#silence = new NodeSilence(ctx.config.node_grace_ms)
  }

  async update(rows: readonly NodeRow[]): Promise<void> {
    const { capacity } = this.#books
    const reports = rows.flatMap(({ node_id, report_seq, is_fresh }) =>
      report_seq === null ? [] : [{ node_id, report_seq, is_fresh }],
    )
    this.#silence.read(reports, capacity.nodesInUse(), this.#ctx.elapsed())
    const known = rows.filter((row) => row.report_seq !== null && !row.is_removed && !this.#silence.isLost(row.node_id))
    const rooms = known.map((row) => this.#roomOf(row))
    capacity.setNodes(rooms)
    this.#log(rooms)
    const away = this.#replaceable(rooms)
    this.#shutNodes(rows, away)
    await this.#endLobbies(rows, new Set(away))
  }

  #roomOf(row: NodeRow): NodeRoom {
    const { node_id, regions, cpu_cores, memory_mb } = row
    return { node_id, regions, limit: { cpu_cores, memory_mb }, state: this.#stateOf(row) }
  }

  #stateOf({ node_id, is_draining, disk_free_bytes, port_count, refusal }: NodeRow): NodeState {
    if (is_draining) return 'draining'
    if (refusal !== null) return refusal
    if (disk_free_bytes < this.#ctx.config.lobbies.disk_free_bytes_min) return 'disk_full'
    if (port_count < PORTS_MIN) return 'ports_full'
    return this.#silence.isAway(node_id) ? 'away' : 'open'
  }

  /** Logs each change once. A node that is away from the first read on is no warning: its runner may be starting as well. */
  #log(rooms: readonly NodeRoom[]): void {
    const states = new Map(rooms.map(({ node_id, state }) => [node_id, state]))
    for (const node_id of new Set([...states.keys(), ...this.#states.keys()])) {
      const [before, state = 'gone'] = [this.#states.get(node_id), states.get(node_id)]
      if (before === state || (before === undefined && state === 'open')) continue
      const is_warning = state !== 'open' && state !== 'draining' && !(before === undefined && state === 'away')
      this.#ctx.log[is_warning ? 'warn' : 'info']({ node_id, state, before }, LOG_LINES[state])
    }
    this.#states = states
  }

  /** Nodes that are away while other nodes could take the players of each of their regions. */
  #replaceable(rooms: readonly NodeRoom[]): string[] {
    const { capacity } = this.#books
    return rooms
      .filter(({ state, regions }) => state === 'away' && regions.every((region) => capacity.hasOpenNode(region)))
      .map(({ node_id }) => node_id)
  }

  #shutNodes(rows: readonly NodeRow[], away: readonly string[]): void {
    const draining = rows.filter(({ is_draining, at_match_end }) => is_draining && at_match_end)
    const shut = [...new Set([...draining.map(({ node_id }) => node_id), ...away])].sort()
    const has_changed = shut.join('\n') !== this.shut.join('\n')
    this.shut = shut
    if (has_changed) this.#onShut()
  }

  /** `away`: their lobbies that are not ready yet end at once, so that finds choose again. */
  async #endLobbies(rows: readonly NodeRow[], away: ReadonlySet<string>): Promise<void> {
    for (const node_id of this.#books.capacity.nodesInUse()) {
      const row = rows.find((one) => one.node_id === node_id)
      if (row?.is_removed) await this.#end(node_id, { reason: 'node_removed', which: 'all' })
      else if (this.#silence.isLost(node_id)) await this.#end(node_id, { reason: 'node_lost', which: 'all' })
      else if (row?.is_draining)
        await this.#end(node_id, { reason: 'node_drained', which: row.is_over ? 'all' : 'empty' })
      else if (away.has(node_id)) await this.#end(node_id, { reason: 'node_lost', which: 'starting' })
    }
  }

  async #end(node_id: string, ends: { reason: StopReason; which: 'all' | 'empty' | 'starting' }): Promise<void> {
    const books = this.#books
    const having = books.namespaceIds().filter((namespace_id) =>
      books
        .book(namespace_id)
        ?.lobbies.values()
        .some((lobby) => lobby.node_id === node_id),
    )
    const counts = await books.commitTogether(having, (book, { now_ms }) =>
      decide.stopNode(book, node_id, ends, now_ms),
    )
    const lobby_count = counts.reduce((sum, count) => sum + count, 0)
    if (lobby_count > 0)
      this.#ctx.log.warn({ node_id, lobby_count, reason: ends.reason }, 'lobbies of a node have ended')
  }
}

export const NODES_SQL = `
  select coalesce(runner_id, node_id) as node_id, regions, disk_free_bytes, cpu_cores, memory_mb, port_count, report_seq,
    refusal,
    coalesce(ts > now() - interval '${FRESH}', false) as is_fresh,
    drain_ts is not null as is_draining, coalesce(drain_at_match_end, false) as at_match_end,
    coalesce(drain_deadline_ts <= now(), false) as is_over, removed_ts is not null as is_removed
  from runners full join nodes on node_id = runner_id
  order by 1 limit ${NODES_MAX}`
