// The room of nodes and regions over all matchmakers. The statement that appends a lobby to the journal adds what the lobby uses,
// and the one that appends its end subtracts that. So the sums are those of the journal. Where a sum would exceed its limit,
// nothing is appended, and the command decides again with what the other matchmakers' lobbies use by then. A takeover makes
// the sums of a shard what its books say.
//
// The row of a place is locked from the statement's change to its commit: lobbies of one node begin and end one row of the journal
// after the other. Seats in running lobbies change none of these rows.
import type { Pool } from 'pg'
import type { RoomLimit } from '../../config/regions.ts'
import type { Book } from '../book/state.ts'

export type RegionUse = { region: string; cpu_cores: number; memory_mb: number }
/** What a lobby uses, and where. `node_id`: null for a lobby without a node. */
export type LobbyUse = RegionUse & { node_id: string | null }

const MICRO = 1_000_000
const KB_PER_MB = 1_024

/** What changes in one place that has a limit. */
export type LimitedPlace = { place: string; limit: RoomLimit }
export type PlacesOf = (use: Pick<LobbyUse, 'region' | 'node_id'>) => LimitedPlace[]

type Sum = { cpu_micro: number; memory_kb: number; lobby_count: number }
type ShardSum = Sum & Pick<LobbyUse, 'region' | 'node_id'>

/** The changes of one journal row, by region and node. */
export class RoomChanges {
  readonly #sums = new Map<string, ShardSum>()

  /** `sign`: 1 where a lobby begins, -1 where it ends. */
  add({ region, node_id, cpu_cores, memory_mb }: LobbyUse, sign: 1 | -1): void {
    const key = `${region}\n${node_id ?? ''}`
    const { cpu_micro, memory_kb, lobby_count } = this.#sums.get(key) ?? NOTHING
    this.#sums.set(key, {
      ...{ region, node_id },
      // Rounded down: a lobby that has room in memory never lacks it here.
      cpu_micro: cpu_micro + sign * Math.floor(cpu_cores * MICRO),
      memory_kb: memory_kb + sign * Math.floor(memory_mb * KB_PER_MB),
      lobby_count: lobby_count + sign,
    })
  }

  /** Without those that cancel out. */
  sums(): ShardSum[] {
    return [...this.#sums.values()].filter((sum) => sum.cpu_micro !== 0 || sum.memory_kb !== 0 || sum.lobby_count !== 0)
  }
}

/** The arrays of roomSql(). */
export function roomColumns(sums: readonly ShardSum[], placesOf: PlacesOf): unknown[] {
  const places = new Map<string, Sum & LimitedPlace>()
  for (const sum of sums) {
    for (const { place, limit } of placesOf(sum)) {
      const before = places.get(place) ?? NOTHING
      places.set(place, { ...added(before, sum), place, limit })
    }
  }
  // In one order for all statements, so that no two of them wait for each other.
  const sorted = [...places.values()].sort((a, b) => (a.place < b.place ? -1 : 1))
  return [
    sums.map(({ region }) => region),
    sums.map(({ node_id }) => node_id ?? ''),
    ...columnsOf(sums),
    sorted.map(({ place }) => place),
    ...columnsOf(sorted),
    sorted.map(({ limit }) => (limit.cpu_cores === null ? null : Math.floor(limit.cpu_cores * MICRO) + 1)),
    sorted.map(({ limit }) => (limit.memory_mb === null ? null : Math.floor(limit.memory_mb * KB_PER_MB) + 1)),
  ]
}

/**
 * Common table expressions `shard_sums` and `place_sums`, which change the rows where `appended` has one. `from`: the number of
 * the first of eleven parameters, which are those of roomColumns(). A place without room is missing in `place_sums`.
 */
export function roomSql(from: number): string {
  const [region, node_id, cpu, memory, count, place, ...of_place] = Array.from({ length: 11 }, (_, n) => `$${from + n}`)
  const [place_cpu, place_memory, place_count, cpu_max, memory_max] = of_place
  return `
  shard_sums as (
    insert into shard_room as used (shard, region, node_id, cpu_micro, memory_kb, lobby_count)
    select $1::smallint, wanted.* from appended,
      unnest(${region}::text[], ${node_id}::text[], ${cpu}::bigint[], ${memory}::bigint[], ${count}::bigint[]) as wanted
    on conflict (shard, region, node_id) do update set ${SUMS}
  ), place_sums as (
    insert into place_room as used (place, cpu_micro, memory_kb, lobby_count, cpu_micro_max, memory_kb_max)
    select wanted.* from appended,
      unnest(${place}::text[], ${place_cpu}::bigint[], ${place_memory}::bigint[], ${place_count}::bigint[],
        ${cpu_max}::bigint[], ${memory_max}::bigint[]) as wanted
    on conflict (place) do update set ${SUMS}, cpu_micro_max = excluded.cpu_micro_max, memory_kb_max = excluded.memory_kb_max
      where (excluded.cpu_micro <= 0 or excluded.cpu_micro_max is null
          or used.cpu_micro + excluded.cpu_micro <= excluded.cpu_micro_max)
        and (excluded.memory_kb <= 0 or excluded.memory_kb_max is null
          or used.memory_kb + excluded.memory_kb <= excluded.memory_kb_max)
    returning 1
  )`
}

/** What the lobbies of all other shards than `$1` use, by region and node. */
export const USES_OF_OTHERS_SQL = `
  select region, nullif(node_id, '') as node_id, sum(cpu_micro)::float8 / ${MICRO} as cpu_cores,
    sum(memory_kb)::float8 / ${KB_PER_MB} as memory_mb, sum(lobby_count)::integer as lobby_count
  from shard_room where shard <> all((select $1)::smallint[]) group by region, node_id having sum(lobby_count) > 0`

/** After a takeover of the shard, whose row has this `seq`: its sums are those of its live lobbies. */
export async function replaceRoom(
  pool: Pool,
  { shard, seq }: { shard: number; seq: number },
  books: Iterable<Book>,
  placesOf: PlacesOf,
): Promise<void> {
  const { rows } = await pool.query<ShardSum>({
    name: 'shard-room',
    text: `select region, nullif(node_id, '') as node_id, cpu_micro::float8, memory_kb::float8, lobby_count::float8
      from shard_room where shard = $1`,
    values: [shard],
  })
  const now = new RoomChanges()
  for (const { lobbies } of books) {
    for (const lobby of lobbies.values()) if (lobby.stop_ms === null) now.add(lobby, 1)
  }
  const changes = differences(rows, now.sums())
  if (changes.length === 0) return
  // No limit holds here: the lobbies run already.
  const unlimited: PlacesOf = (use) => placesOf(use).map(({ place }) => ({ place, limit: NO_LIMIT }))
  await pool.query({
    name: 'shard-room-replace',
    text: `with appended as (
        select 1 where not exists (select from journal where shard = $1 and seq > $2)
      ), ${roomSql(3)} select 1`,
    values: [shard, seq, ...roomColumns(changes, unlimited)],
  })
}

function differences(before: readonly ShardSum[], now: readonly ShardSum[]): ShardSum[] {
  const sums = new Map<string, ShardSum>()
  for (const [sign, some] of [
    [-1, before],
    [1, now],
  ] as const) {
    for (const sum of some) {
      const key = `${sum.region}\n${sum.node_id ?? ''}`
      sums.set(key, { ...sum, ...added(sums.get(key) ?? NOTHING, sum, sign) })
    }
  }
  return [...sums.values()].filter((sum) => sum.cpu_micro !== 0 || sum.memory_kb !== 0 || sum.lobby_count !== 0)
}

const NOTHING: Sum = { cpu_micro: 0, memory_kb: 0, lobby_count: 0 }
const NO_LIMIT: RoomLimit = { cpu_cores: null, memory_mb: null }
const SUMS = `cpu_micro = used.cpu_micro + excluded.cpu_micro, memory_kb = used.memory_kb + excluded.memory_kb,
      lobby_count = used.lobby_count + excluded.lobby_count`

function added(one: Sum, two: Sum, sign: 1 | -1 = 1): Sum {
  return {
    cpu_micro: one.cpu_micro + sign * two.cpu_micro,
    memory_kb: one.memory_kb + sign * two.memory_kb,
    lobby_count: one.lobby_count + sign * two.lobby_count,
  }
}

function columnsOf(sums: readonly Sum[]): [number[], number[], number[]] {
  return [
    sums.map(({ cpu_micro }) => cpu_micro),
    sums.map(({ memory_kb }) => memory_kb),
    sums.map(({ lobby_count }) => lobby_count),
  ]
}
