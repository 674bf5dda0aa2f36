// The regions of the platform with what the running lobbies use, and the processes that the tables know of.
import type { listAdminProcesses, listAdminRegions, ResponseOf } from '@musterhost/contract'
import { instanceName } from '../../config/processes.ts'
import type { Region, RoomLimit } from '../../config/regions.ts'
import type { Context } from '../../context.ts'
import { nodeKey, readProcessName } from '../../database/process-name.ts'
import { idOfName } from '../../ids.ts'
import { SHARD_COUNT } from '../../journal/pages.ts'
import { isFreshSql } from '../nodes/freshness.ts'
import { timestamp } from '../times.ts'

/** Runners, edges and kinds of connections that are read. */
const ROWS_MAX = 1_000
/** Cores are fractions; sums are rounded to a ten-thousandth. */
const CORE_PARTS = 10_000

type Regions = ResponseOf<typeof listAdminRegions>['regions']
type Processes = ResponseOf<typeof listAdminProcesses>['processes']
type Process = Processes[number]
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

/** Each role of each node once: what the role reports, and since when its process runs. */
export async function listAllProcesses(ctx: Context): Promise<{ processes: Processes }> {
  const [{ database, processes: connected }, matchmakers, runners, edges] = await Promise.all([
    readConnected(ctx),
    readMatchmakers(ctx),
    readRunners(ctx),
    readEdges(ctx),
  ])
  const reports = [...matchmakers, ...runners.map(runnerProcess), ...edges]
  const node_ids = new Map(
    [ctx.config.node_id, ...reports.flatMap(({ node_id = [] }) => node_id)].map((id) => [nodeKey(id), id]),
  )
  const merged = new Set<Process>()
  const running = connected.map(({ role, number, node_key, ...process }): Process => {
    const node_id = node_ids.get(node_key ?? '')
    const named = node_id === undefined ? { name: role } : { name: nameOf(role, number, node_id), node_id }
    const report = reports.find((one) => one.name === named.name && one.state === 'running')
    if (report === undefined) return { role, ...named, ...process }
    merged.add(report)
    return {
      ...process,
      ...report,
      ...named,
      ...(process.start_ts === undefined ? {} : { start_ts: process.start_ts }),
    }
  })
  const rest = reports.filter((report) => !merged.has(report))
  const alive = new Set([...running, ...rest].filter(({ state }) => state === 'running').map(({ name }) => name))
  // After a restart, the report of the process before is there for a while.
  const processes = [...running, ...rest.filter((one) => one.state === 'running' || !alive.has(one.name))]
  const missing = ['matchmaker', 'runner', 'edge'].filter((role) => !processes.some((one) => one.role === role))
  return {
    processes: [
      database,
      ...processes.toSorted((one, other) => one.role.localeCompare(other.role) || one.name.localeCompare(other.name)),
      ...missing.map((role) => ({ name: role, role, state: 'away' as const, text: `No ${role} reports.` })),
    ],
  }
}

/** Example: `matchmaker of fra-1`, and `matchmaker-2 of fra-1` for the second one of the node. */
function nameOf(role: string, number: number, node_id: string): string {
  return `${instanceName(role, number)} of ${node_id}`
}

function runnerProcess({ runner_id, regions, ts, is_fresh }: Runner): Process {
  return {
    name: `runner of ${runner_id}`,
    role: 'runner',
    state: is_fresh ? 'running' : 'away',
    text: is_fresh ? `It runs lobbies of ${regions.join(', ')}.` : 'Its reports are missing.',
    ...{ node_id: runner_id, regions, seen_ts: timestamp(ts) },
  }
}

async function readRunners({ pool }: Context): Promise<Runner[]> {
  const { rows } = await pool.query<Runner>(
    `select runner_id, regions, disk_free_bytes, cpu_cores, memory_mb, ts, ${isFreshSql('ts')} as is_fresh
      from runners order by runner_id limit ${ROWS_MAX}`,
  )
  return rows
}

type Connected = Omit<Process, 'name' | 'node_id'> & { number: number; node_key: string | undefined }

/** Each process names itself where it connects. A role without PostgreSQL's rights sees only its own connections. */
async function readConnected({ pool }: Context): Promise<{ database: Process; processes: Connected[] }> {
  const { rows } = await pool.query<{ name: string; connection_count: number; version: string }>(
    `select application_name as name, count(*)::integer as connection_count, current_setting('server_version') as version
      from pg_stat_activity where datname = current_database() and application_name like 'muster %'
      group by application_name order by application_name limit ${ROWS_MAX}`,
  )
  const [first] = rows
  const connections = (count: number): string => (count === 1 ? '1 connection' : `${count} connections`)
  const processes = rows.flatMap(({ name, connection_count }): Connected[] => {
    const known = readProcessName(name)
    const process = {
      state: 'running' as const,
      text: `It has ${connections(connection_count)} to the database.`,
      connection_count,
    }
    if (known === null) return [{ ...process, role: name.replace('muster ', ''), number: 0, node_key: undefined }]
    const { roles, number, start_ms, node_key } = known
    return roles.map((role) => ({ ...process, role, number, node_key, start_ts: timestamp(new Date(start_ms)) }))
  })
  const database = {
    name: 'database',
    role: 'database',
    state: 'running' as const,
    text: `PostgreSQL ${first?.version ?? ''} has ${connections(rows.reduce((sum, row) => sum + row.connection_count, 0))} of the platform.`,
  }
  return { database, processes }
}

async function readMatchmakers({ pool }: Context): Promise<Processes> {
  const { rows } = await pool.query<{
    node_id: string
    process: number
    start_ts: Date
    seen_ts: Date
    is_fresh: boolean
    shard_count: number
  }>(
    `select node_id, process, start_ts, seen_ts, ${isFreshSql('seen_ts')} as is_fresh, (
        select count(*)::integer from shard_leases where shard_leases.writer = matchmakers.writer
      ) as shard_count
      from matchmakers order by node_id, process, start_ts limit ${ROWS_MAX}`,
  )
  return rows.map(({ node_id, process, start_ts, seen_ts, is_fresh, shard_count }) => ({
    name: nameOf('matchmaker', process, node_id),
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
    process: number
    start_ts: Date
    silent_ts: Date | null
    connection_count: number
  }>(
    `select node_id, process, start_ts, silent_ts, (
        select coalesce(sum(connection_count), 0)::integer from lobby_connections
        where lobby_connections.edge_id = edges.edge_id
      ) as connection_count
      from edges order by node_id, process, start_ts limit ${ROWS_MAX}`,
  )
  return rows.map(({ node_id, process, start_ts, silent_ts, connection_count }) => ({
    name: nameOf('edge', process, node_id),
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
