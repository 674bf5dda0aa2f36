// Chooses the node of a new lobby, and accounts for what the lobbies of each node and region use, over all namespaces and
// shards. The account of this process's shards is its memory. What lobbies of other processes use is read every second
// (watch/other-lobbies.ts), and is exact where a lobby is appended (room-claims.ts). Room is taken in the step that decides
// on a lobby, and released only when the lobby's end is durable. So no failed append can leave a node with more lobbies than
// it can hold. A refusal may be due to a lobby of another shard that is not committed yet; that lasts as long as an append.
//
// A lobby has a node from its creation. While no runner of its region has ever reported, it has none, and any runner of the
// region may take it (decide.assignNode). The cost of a choice depends on the number of nodes, not of lobbies.
import type { Region, RoomLimit } from '../../config/regions.ts'
import { SHARD_COUNT } from '../../journal/pages.ts'
import type { ChosenNode } from '../book/commands.ts'
import type { Book } from '../book/state.ts'
import type { LobbyUse, PlacesOf, RegionUse } from './room-claims.ts'

/** Sums of fractions such as 1/3 are not exact. */
const ROUNDING = 1e-6

/** What a lobby wants. */
/** `open`: the node takes new lobbies. `away`: it does not report, and takes new lobbies only where no node is open. */
export type NodeState = 'open' | 'away' | 'draining' | 'disk_full' | 'ports_full' | 'no_manager' | 'not_available'

/** A node that runs lobbies, as watch/nodes.ts knows it. */
export type NodeRoom = { node_id: string; regions: readonly string[]; limit: RoomLimit; state: NodeState }

export type CapacityRegion = Pick<Region, 'name' | 'capacity' | 'is_stated' | 'placement'>

/** The lobbies of one node, or of one region. */
type Sum = { cpu_cores: number; memory_mb: number; lobby_count: number }

export class Capacity {
  readonly #regions: ReadonlyMap<string, CapacityRegion>
  /** For lobbies without a node, in regions to which muster.toml gives no size. */
  readonly #node_capacity: RoomLimit
  readonly #nodes = new Map<string, NodeRoom>()
  readonly #by_node = new Map<string, Sum>()
  readonly #by_region = new Map<string, Sum>()
  /** Lobbies without a node, by region. */
  readonly #unplaced = new Map<string, Sum>()
  /** What the lobbies of each shard use, by region and node; the last one stands for all shards of other processes. */
  readonly #shards = Array.from({ length: SHARD_COUNT + 1 }, () => new Map<string, LobbyUse & Sum>())

  constructor(regions: readonly CapacityRegion[], node_capacity: RoomLimit) {
    this.#regions = new Map(regions.map((region) => [region.name, region]))
    this.#node_capacity = node_capacity
  }

  /** The nodes that may run lobbies now. A node that is gone for good is not among them. */
  setNodes(nodes: readonly NodeRoom[]): void {
    this.#nodes.clear()
    for (const node of nodes) this.#nodes.set(node.node_id, node)
  }

  /** Nodes that have lobbies. */
  nodesInUse(): string[] {
    return [...this.#by_node.keys()]
  }

  /** Whether a node of the region takes new lobbies, other than those that are away. */
  hasOpenNode(region: string): boolean {
    return this.nodesOf(region).some(({ state }) => state === 'open')
  }

  isAway(node_id: string): boolean {
    return this.#nodes.get(node_id)?.state === 'away'
  }

  isDraining(node_id: string): boolean {
    return this.#nodes.get(node_id)?.state === 'draining'
  }

  nodesOf(region: string): NodeRoom[] {
    return [...this.#nodes.values()].filter(({ regions }) => regions.includes(region))
  }

  /**
   * The node for a new lobby; null: the region has no room. `reserved`: a node where the lobby has room already, which is
   * returned while that node takes lobbies.
   */
  choose(wanted: RegionUse, reserved: string | null = null): ChosenNode | null {
    const nodes = this.nodesOf(wanted.region)
    if (reserved !== null && this.#keepsRoom(reserved, wanted.region)) return { node_id: reserved }
    if (!this.#regionFits(wanted)) return null
    if (nodes.length === 0) return this.#unplacedFits(wanted) ? { node_id: null } : null
    const roomy = nodes.filter((node) => this.#nodeFits(node, wanted))
    const open = roomy.filter(({ state }) => state === 'open')
    const candidates = open.length > 0 ? open : roomy.filter(({ state }) => state === 'away')
    const placement = this.#regions.get(wanted.region)?.placement ?? 'spread'
    let best: NodeRoom | null = null
    for (const node of candidates) if (best === null || this.#isBetter(node, best, placement)) best = node
    return best && { node_id: best.node_id }
  }

  /** The places whose limits hold for such a lobby. */
  readonly placesOf: PlacesOf = ({ region, node_id }) => [
    { place: `region ${region}`, limit: this.#regions.get(region)?.capacity ?? NO_LIMIT },
    node_id === null
      ? { place: `unplaced ${region}`, limit: this.#unplacedLimit(region) }
      : { place: `node ${node_id}`, limit: this.#nodes.get(node_id)?.limit ?? NO_LIMIT },
  ]

  /** What the lobbies of a node use. */
  usedBy(node_id: string): Readonly<Sum> {
    return this.#by_node.get(node_id) ?? NOTHING
  }

  /** What the lobbies of a region use, and the limit that muster.toml or, without nodes, the settings give it. */
  account(region: string): { used: Readonly<Sum>; limit: RoomLimit } {
    const stated = this.#regions.get(region)
    const used = this.#by_region.get(region) ?? NOTHING
    return {
      used,
      limit: this.nodesOf(region).length > 0 ? (stated?.capacity ?? NO_LIMIT) : this.#unplacedLimit(region),
    }
  }

  take(shard: number, lobby: LobbyUse): void {
    this.#add(shard, lobby, 1, 1)
  }

  release(shard: number, lobby: LobbyUse): void {
    this.#add(shard, lobby, -1, 1)
  }

  /** To be called after a load of the shard: its use is the sum over its books. */
  replace(shard: number, books: Iterable<Book>): void {
    for (const use of [...this.#shards[shard]!.values()]) this.#add(shard, use, -1, use.lobby_count)
    for (const book of books) {
      for (const lobby of book.lobbies.values()) if (lobby.stop_ms === null) this.take(shard, lobby)
    }
  }

  /** Sets what the lobbies of other processes use. */
  replaceOthers(uses: Iterable<LobbyUse & { lobby_count: number }>): void {
    for (const use of [...this.#shards[OTHERS]!.values()]) this.#add(OTHERS, use, -1, use.lobby_count)
    for (const use of uses) this.#add(OTHERS, use, 1, use.lobby_count)
  }

  #add(shard: number, use: LobbyUse, sign: 1 | -1, lobby_count: number): void {
    const { region, node_id, cpu_cores, memory_mb } = use
    const change = { cpu_cores: sign * cpu_cores, memory_mb: sign * memory_mb, lobby_count: sign * lobby_count }
    const key = `${region}\n${node_id ?? ''}`
    const before = this.#shards[shard]!.get(key) ?? { region, node_id, ...NOTHING }
    const after = { ...before, ...sum(before, change) }
    if (after.lobby_count === 0) this.#shards[shard]!.delete(key)
    else this.#shards[shard]!.set(key, after)
    addTo(this.#by_region, region, change)
    if (node_id === null) addTo(this.#unplaced, region, change)
    else addTo(this.#by_node, node_id, change)
  }

  /** The size that muster.toml gives to the region holds for all nodes together. */
  #regionFits(wanted: RegionUse): boolean {
    const limit = this.#regions.get(wanted.region)?.capacity ?? NO_LIMIT
    return hasRoom(this.#by_region.get(wanted.region) ?? NOTHING, wanted, limit)
  }

  #nodeFits({ node_id, limit }: NodeRoom, wanted: RegionUse): boolean {
    return hasRoom(this.usedBy(node_id), wanted, limit)
  }

  /** Lobbies of other processes may have taken the room that is reserved here. */
  #keepsRoom(node_id: string, region: string): boolean {
    const node = this.#nodes.get(node_id)
    if (node?.state !== 'open') return false
    const more = { region, cpu_cores: 0, memory_mb: 0 }
    return this.#nodeFits(node, more) && this.#regionFits(more)
  }

  #unplacedFits(wanted: RegionUse): boolean {
    return hasRoom(this.#unplaced.get(wanted.region) ?? NOTHING, wanted, this.#unplacedLimit(wanted.region))
  }

  #unplacedLimit(region: string): RoomLimit {
    const stated = this.#regions.get(region)
    if (stated === undefined) return NO_LIMIT
    const limitOf = (member: keyof RoomLimit) =>
      stated.is_stated[member] ? stated.capacity[member] : this.#node_capacity[member]
    return { cpu_cores: limitOf('cpu_cores'), memory_mb: limitOf('memory_mb') }
  }

  /** Compares the used shares of the nodes, then their lobbies, then their names. */
  #isBetter(node: NodeRoom, other: NodeRoom, placement: Region['placement']): boolean {
    const one = this.usedBy(node.node_id)
    const two = this.usedBy(other.node_id)
    const by_share = shareOf(one, node.limit) - shareOf(two, other.limit)
    const by_use = Math.abs(by_share) > ROUNDING ? by_share : one.lobby_count - two.lobby_count
    if (by_use !== 0) return placement === 'spread' ? by_use < 0 : by_use > 0
    return node.node_id < other.node_id
  }
}

/** Stands for the shards of other processes. */
const OTHERS = SHARD_COUNT

const NOTHING: Sum = { cpu_cores: 0, memory_mb: 0, lobby_count: 0 }
const NO_LIMIT: RoomLimit = { cpu_cores: null, memory_mb: null }

export function fits(used: number, limit: number | null): boolean {
  return limit === null || used <= limit + ROUNDING
}

export function hasRoom(used: RoomUse, wanted: RoomUse, limit: RoomLimit): boolean {
  return (
    fits(used.cpu_cores + wanted.cpu_cores, limit.cpu_cores) && fits(used.memory_mb + wanted.memory_mb, limit.memory_mb)
  )
}

type RoomUse = { cpu_cores: number; memory_mb: number }

/** The larger of the shares of cores and memory; 0 without a limit. */
function shareOf(used: RoomUse, { cpu_cores, memory_mb }: RoomLimit): number {
  return Math.max(
    cpu_cores === null ? 0 : used.cpu_cores / cpu_cores,
    memory_mb === null ? 0 : used.memory_mb / memory_mb,
  )
}

/** Without lobbies the sums are exactly 0: rounding does not pile up. */
function sum(one: Sum, two: Sum): Sum {
  const lobby_count = one.lobby_count + two.lobby_count
  if (lobby_count === 0) return NOTHING
  return { cpu_cores: one.cpu_cores + two.cpu_cores, memory_mb: one.memory_mb + two.memory_mb, lobby_count }
}

function addTo(sums: Map<string, Sum>, key: string, change: Sum): void {
  const after = sum(sums.get(key) ?? NOTHING, change)
  if (after.lobby_count === 0) sums.delete(key)
  else sums.set(key, after)
}
