// The regions of the platform with what the running lobbies use, and the processes that the tables know of.
import type { listAdminProcesses, listAdminRegions, ResponseOf } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { idOfName } from '../../ids.ts'
import { SHARD_COUNT } from '../../journal/pages.ts'
import type { Region, RoomLimit } from '../../regions.ts'
import { timestamp } from '../times.ts'

/** A matchmaker renews its lease, and a runner its report, every few seconds. By the database's clock. */
const FRESH = '20 seconds'
/** Runners, edges and kinds of connections that are read. */
const ROWS_MAX = 1_000
/** Cores are fractions; sums are rounded to a ten-thousandth. */
const CORE_PARTS = 10_000

type Regions = ResponseOf<typeof listAdminRegions>['regions']
type Processes = ResponseOf<typeof listAdminProcesses>['processes']
type Use = {
  region: string
  tier: string
  lobby_count: number
  player_count: number
  cpu_cores: number
  memory_mb: number
}
type Runner = RoomLimit & { runner_id: string; regions: string[]; disk_free_bytes: number; ts: Date; is_fresh: boolean }

export async function listAllRegions(ctx: Context): Promise<{ regions: Regions }> {
  const { rows: uses } = await ctx.pool.query<Use>(
    `select region, tier, count(*)::integer as lobby_count, sum(player_count)::integer as player_count,
        sum(cpu_cores)::float8 as cpu_cores, sum(memory_mb)::float8 as memory_mb
      from lobbies where stop_ts is null group by region, tier order by region, tier`,
  )
  const runners = await readRunners(ctx)
  const regions = ctx.config.regions.map((region) => {
    const { name, display_name, default_tier, tiers } = region
    const of_region = runners.filter((runner) => runner.is_fresh && runner.regions.includes(name))
    const capacity = capacityOf(ctx, region, of_region)
    const here = uses.filter(({ region }) => region === name)
    const sum = (member: 'lobby_count' | 'player_count' | 'cpu_cores' | 'memory_mb'): number =>
      here.reduce((total, use) => total + use[member], 0)
    return {
      region_id: idOfName(name),
      region_name_id: name,
      region_display_name: display_name,
      default_tier,
      tiers: tiers.map((tier) => ({ ...tier })),
      cpu_cores: Math.round(sum('cpu_cores') * CORE_PARTS) / CORE_PARTS,
      ...(capacity.cpu_cores === null ? {} : { cpu_cores_max: capacity.cpu_cores }),
      memory_mb: sum('memory_mb'),
      ...(capacity.memory_mb === null ? {} : { memory_mb_max: capacity.memory_mb }),
      lobby_count: sum('lobby_count'),
      player_count: sum('player_count'),
      use_by_tier: here.map(({ tier, lobby_count }) => ({ tier_name_id: tier, lobby_count })),
      runners: of_region.map(({ runner_id, disk_free_bytes, ts }) => ({
        runner_id,
        disk_free_bytes,
        seen_ts: timestamp(ts),
      })),
    }
  })
  return { regions }
}

/** What muster.toml gives to the region, or what its runners have; before the first one reports, what this node has. */
function capacityOf({ config }: Context, { capacity, is_stated }: Region, runners: readonly RoomLimit[]): RoomLimit {
  const of_nodes = runners.length === 0 ? [config.node_capacity] : runners
  const sum = (member: keyof RoomLimit): number | null => {
    if (is_stated[member]) return capacity[member]
    return of_nodes.reduce<number | null>((total, node) => {
      const own = node[member]
      return total === null || own === null ? null : total + own
    }, 0)
  }
  return { cpu_cores: sum('cpu_cores'), memory_mb: sum('memory_mb') }
}

export async function listAllProcesses(ctx: Context): Promise<{ processes: Processes }> {
  const [connected, matchmakers, runners, edges] = await Promise.all([
    readConnected(ctx),
    readMatchmakers(ctx),
    readRunners(ctx),
    readEdges(ctx),
  ])
  const processes: Processes = [
    ...connected,
    ...matchmakers,
    ...runners.map(({ runner_id, regions, ts, is_fresh }) => ({
      name: runner_id,
      role: 'runner',
      state: is_fresh ? ('running' as const) : ('away' as const),
      text: is_fresh ? `It runs lobbies of ${regions.join(', ')}.` : 'Its reports are missing.',
      ...{ node_id: runner_id, regions, seen_ts: timestamp(ts) },
    })),
    ...edges,
  ]
  const running = new Set(processes.filter(({ state }) => state === 'running').map(({ role }) => role))
  const missing = ['matchmaker', 'runner', 'edge'].filter((role) => !running.has(role))
  const away = missing.filter((role) => !processes.some((process) => process.role === role))
  return {
    processes: [
      ...processes,
      ...away.map((role) => ({ name: role, role, state: 'away' as const, text: `No ${role} reports.` })),
    ],
  }
}

async function readRunners({ pool }: Context): Promise<Runner[]> {
  const { rows } = await pool.query<Runner>(
    `select runner_id, regions, disk_free_bytes, cpu_cores, memory_mb, ts, ts > now() - interval '${FRESH}' as is_fresh
      from runners order by runner_id limit ${ROWS_MAX}`,
  )
  return rows
}

/** Each process names its roles where it connects. A role without PostgreSQL's rights sees only its own connections. */
async function readConnected({ pool, config }: Context): Promise<Processes> {
  const { rows } = await pool.query<{ name: string; connection_count: number; start_ts: Date | null; version: string }>(
    `select substr(application_name, 8) as name, count(*)::integer as connection_count, min(backend_start) as start_ts,
        current_setting('server_version') as version
      from pg_stat_activity where datname = current_database() and application_name like 'muster %'
      group by application_name order by application_name limit ${ROWS_MAX}`,
  )
  const [first] = rows
  const connections = (count: number): string => (count === 1 ? '1 connection' : `${count} connections`)
  return [
    {
      name: 'database',
      role: 'database',
      state: 'running',
      text: `PostgreSQL ${first?.version ?? ''} has ${connections(rows.reduce((sum, row) => sum + row.connection_count, 0))} of the platform.`,
    },
    ...rows.map(({ name, connection_count, start_ts }) => ({
      name,
      role: name.split(',')[0]!,
      state: 'running' as const,
      text: `It has ${connections(connection_count)} to the database.`,
      ...(name === config.roles.join() ? { node_id: config.node_id } : {}),
      ...(start_ts === null ? {} : { start_ts: timestamp(start_ts) }),
      connection_count,
    })),
  ]
}

async function readMatchmakers({ pool }: Context): Promise<Processes> {
  const { rows } = await pool.query<{
    node_id: string
    start_ts: Date
    seen_ts: Date
    is_fresh: boolean
    shard_count: number
  }>(
    `select node_id, start_ts, seen_ts, seen_ts > now() - interval '${FRESH}' as is_fresh, (
        select count(*)::integer from shard_leases where shard_leases.writer = matchmakers.writer
      ) as shard_count
      from matchmakers order by node_id, start_ts limit ${ROWS_MAX}`,
  )
  return rows.map(({ node_id, start_ts, seen_ts, is_fresh, shard_count }) => ({
    name: `matchmaker of ${node_id}`,
    role: 'matchmaker',
    state: is_fresh ? 'running' : 'away',
    text: is_fresh
      ? `It has ${shard_count} of ${SHARD_COUNT} shards.`
      : 'Its heartbeat is missing; other matchmakers take its shards.',
    ...{ node_id, start_ts: timestamp(start_ts), seen_ts: timestamp(seen_ts) },
  }))
}

async function readEdges({ pool }: Context): Promise<Processes> {
  const { rows } = await pool.query<{
    node_id: string
    start_ts: Date
    silent_ts: Date | null
    connection_count: number
  }>(
    `select node_id, start_ts, silent_ts, (
        select coalesce(sum(connection_count), 0)::integer from lobby_connections
        where lobby_connections.edge_id = edges.edge_id
      ) as connection_count
      from edges order by node_id, start_ts limit ${ROWS_MAX}`,
  )
  return rows.map(({ node_id, start_ts, silent_ts, connection_count }) => ({
    name: `edge of ${node_id}`,
    role: 'edge',
    state: silent_ts === null ? 'running' : 'away',
    text:
      silent_ts === null
        ? `Players have ${connection_count} open connections to lobbies through it.`
        : 'Its reports are missing.',
    ...{ node_id, start_ts: timestamp(start_ts) },
    ...(silent_ts === null ? {} : { seen_ts: timestamp(silent_ts) }),
  }))
}
