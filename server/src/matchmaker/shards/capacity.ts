// What the lobbies of each region use, over all namespaces and shards. One process writes all shards (fence.ts), so its
// memory is the only account. Room is taken in the step that decides on a lobby, and released only when the lobby's end is
// durable. So no failed append can leave a region with more lobbies than it can hold. A refusal may be due to a lobby of
// another shard that is not committed yet; that lasts as long as an append. A region whose disk is nearly full (disks.ts)
// has no room either.

import { SHARD_COUNT } from '../../journal/pages.ts'
import type { Region, RoomLimit } from '../../regions.ts'
import type { Book } from '../book/state.ts'

/** Sums of fractions such as 1/3 are not exact. */
const ROUNDING = 1e-6

/** What one lobby uses of its region, or all lobbies together. */
export type RegionUse = { region: string; cpu_cores: number; memory_mb: number }

export type Capacity = {
  hasRoom: (wanted: RegionUse) => boolean
  /** Regions that open no lobby because their disk is nearly full. */
  closeRegions: (regions: ReadonlySet<string>) => void
  isClosed: (region: string) => boolean
  /** What the lobbies of a region use, and their limit; null: no limit. */
  account: (region: string) => { used: RegionUse; limit: RoomLimit }
  take: (shard: number, lobby: RegionUse) => void
  release: (shard: number, lobby: RegionUse) => void
  /** To be called after a load of the shard: its use is the sum over its books. */
  replace: (shard: number, books: Iterable<Book>) => void
}

/** `node_capacity`: of regions to which muster.toml gives no size. */
export function createCapacity(
  regions: readonly Pick<Region, 'name' | 'capacity' | 'is_stated'>[],
  node_capacity: RoomLimit,
): Capacity {
  const limits = new Map(
    regions.map(({ name, capacity, is_stated }): [string, RoomLimit] => [
      name,
      {
        cpu_cores: is_stated.cpu_cores ? capacity.cpu_cores : node_capacity.cpu_cores,
        memory_mb: is_stated.memory_mb ? capacity.memory_mb : node_capacity.memory_mb,
      },
    ]),
  )
  let closed: ReadonlySet<string> = new Set()
  const shards = Array.from({ length: SHARD_COUNT }, () => new Map<string, RegionUse>())

  function add(shard: number, { region, cpu_cores, memory_mb }: RegionUse, sign: 1 | -1): void {
    const uses = shards[shard]!
    const use = uses.get(region) ?? { region, cpu_cores: 0, memory_mb: 0 }
    use.cpu_cores += sign * cpu_cores
    use.memory_mb += sign * memory_mb
    uses.set(region, use)
  }

  function used(region: string): RegionUse {
    const sum = { region, cpu_cores: 0, memory_mb: 0 }
    for (const uses of shards) {
      const use = uses.get(region)
      sum.cpu_cores += use?.cpu_cores ?? 0
      sum.memory_mb += use?.memory_mb ?? 0
    }
    return sum
  }

  return {
    hasRoom(wanted) {
      if (closed.has(wanted.region)) return false
      const limit = limits.get(wanted.region)
      if (limit === undefined || (limit.cpu_cores === null && limit.memory_mb === null)) return true
      const { cpu_cores, memory_mb } = used(wanted.region)
      return fits(cpu_cores + wanted.cpu_cores, limit.cpu_cores) && fits(memory_mb + wanted.memory_mb, limit.memory_mb)
    },
    account: (region) => ({ used: used(region), limit: limits.get(region) ?? NO_LIMIT }),
    closeRegions(regions) {
      closed = regions
    },
    isClosed: (region) => closed.has(region),
    take: (shard, lobby) => add(shard, lobby, 1),
    release: (shard, lobby) => add(shard, lobby, -1),
    replace(shard, books) {
      shards[shard]!.clear()
      for (const book of books) {
        for (const lobby of book.lobbies.values()) if (lobby.stop_ms === null) add(shard, lobby, 1)
      }
    },
  }
}

const NO_LIMIT = { cpu_cores: null, memory_mb: null }

export function fits(used: number, limit: number | null): boolean {
  return limit === null || used <= limit + ROUNDING
}
