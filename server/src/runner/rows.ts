// The runner's SQL. `lobbies` says which lobbies are wanted and is only read here. `lobby_runs` says what runs; the runner
// alone writes it. A lobby has at most one row there. It is written before the process starts, and its primary key decides
// which runner starts the lobby. All frequent statements are prepared, because a player waits for them.
import type { ReadyCheck, VersionConfig } from '@musterhost/contract'
import type { Context } from '../context.ts'
import { type OldRows, removeOld } from '../database/remove-old.ts'
import type { Listening, ProtocolReportRow, RunPort } from '../database/schema.ts'
import type { ConnectionFacts } from '../lobby-logs/connection-warnings.ts'
import { CHANNELS } from '../wire/channels.ts'
import type { Exit, Handle } from './drivers/driver.ts'

/** A lobby that should run and has no run yet, with everything that its start needs. */
export type WantedLobby = {
  lobby_id: string
  namespace_id: string
  namespace_name: string
  /** Null: the version or the game has been deleted. */
  game_id: string | null
  group_id: string | null
  /** Whether its game or its namespace has secrets. */
  has_secrets: boolean
  version_id: string
  version_name: string
  /** Null: the version has been deleted. */
  config: VersionConfig | null
  game_mode: string
  region: string
  max_players_normal: number
  max_players_direct: number
  max_players_party: number
  /** Its limits. */
  cpu_cores: number
  memory_mb: number
  /** Null: any node of the region may run it. */
  node_id: string | null
  lobby_config: string | null
  /** The request that started it; null when no request did. */
  ray_id: string | null
  tags: Record<string, string>
  /** The numbers of the edge that belong to its tcp and udp ports. */
  edge_ports: readonly { name: string; port: number }[]
}

/** A run of this runner without a recorded end, as its row says. */
export type OpenRun = ConnectionFacts & {
  lobby_id: string
  is_wanted: boolean
  is_started: boolean
  is_stalled: boolean
  is_ready: boolean
  /** The runner has seen that the server is ready. */
  is_seen_ready: boolean
  ready_check: ReadyCheck
  ports: Record<string, RunPort>
  build_id: string | null
}

/** The oldest ones of these nodes, in order of creation. */
export async function readWanted(
  ctx: Context,
  lobbies_max: number,
  node_ids: readonly string[],
): Promise<WantedLobby[]> {
  const { rows } = await ctx.pool.query<WantedLobby>({
    name: 'runner-wanted',
    text: `
      select l.lobby_id, l.namespace_id, l.version_id, l.game_mode, l.region, l.max_players_normal,
        l.max_players_direct, l.max_players_party, l.lobby_config, l.tags, l.edge_ports, l.cpu_cores,
        l.memory_mb, l.node_id, l.ray_id, v.config, g.game_id, g.developer_group_id as group_id,
        coalesce(v.display_name, '') as version_name, coalesce(n.name_id, '') as namespace_name,
        exists (
          select from game_secrets s
          where s.game_id = v.game_id and (s.namespace_id is null or s.namespace_id = l.namespace_id)
        ) as has_secrets
      from lobbies l
      left join versions v on v.version_id = l.version_id
      left join games g on g.game_id = v.game_id
      left join namespaces n on n.namespace_id = l.namespace_id
      where l.stop_ts is null and l.region = any($1) and (l.node_id is null or l.node_id = any($3))
        and not exists (select from lobby_runs r where r.lobby_id = l.lobby_id)
      order by l.create_ts
      limit $2`,
    values: [ctx.config.runner_regions, lobbies_max, node_ids],
  })
  return rows
}

/** One for each lobby that runs on these nodes. */
export async function readOpenRuns(ctx: Context, node_ids: readonly string[]): Promise<OpenRun[]> {
  const { rows } = await ctx.pool.query<OpenRun>({
    name: 'runner-open',
    text: `
      select r.lobby_id, r.ports, r.build_id, r.start_ts is not null as is_started, r.stall_ts is not null as is_stalled,
        l.ready_ts is not null as is_ready, r.seen_ready_ts is not null as is_seen_ready, r.ready_check,
        l.lobby_id is not null and l.stop_ts is null as is_wanted, l.stop_reason, l.connections_at_stop,
        coalesce(l.seats_expired_while_connected, 0) as seats_expired_while_connected,
        coalesce(t.refused_count, 0)::double precision as refused_count, t.refused_client
      from lobby_runs r
      left join lobbies l on l.lobby_id = r.lobby_id
      left join lobby_traffic t on t.lobby_id = r.lobby_id
      where r.runner_id = any($1) and r.exit_ts is null`,
    values: [node_ids],
  })
  return rows
}

/** `node_id`: where it runs. `build_id`: null for a failed start. */
export type NewRun = {
  node_id: string
  ports: Readonly<Record<string, RunPort>>
  build_id: string | null
  ready_check: ReadyCheck
}

/** Returns false when the lobby has a run already, of this or another runner. */
export async function insertRun(
  ctx: Context,
  lobby: WantedLobby,
  driver: string,
  { node_id, ports, build_id, ready_check }: NewRun,
): Promise<boolean> {
  const { lobby_id, namespace_id, game_id, group_id, region, cpu_cores } = lobby
  const { rowCount } = await ctx.pool.query({
    name: 'runner-insert',
    text: `
      insert into lobby_runs (
        lobby_id, runner_id, driver, handle, ports, create_ts, namespace_id, region, cpu_cores, build_id, game_id, group_id,
        ready_check
      )
      values ($1, $2, $3, '{}', $4, $5, $6, $7, $8, $9, $10, $11, $12)
      on conflict do nothing`,
    values: [
      lobby_id,
      node_id,
      driver,
      JSON.stringify(ports),
      new Date(ctx.now()),
      namespace_id,
      region,
      cpu_cores,
      build_id,
      game_id,
      group_id,
      ready_check && JSON.stringify(ready_check),
    ],
  })
  return rowCount === 1
}

/** Records that the process has started, and notifies the edge and the matchmaker. A second call changes nothing. */
export async function recordStart(ctx: Context, handle: Handle): Promise<void> {
  await ctx.pool.query({
    name: 'runner-start',
    text: `
      with run as (
        update lobby_runs set handle = $2, start_ts = $3
        where lobby_id = $1 and start_ts is null returning lobby_id
      )
      select pg_notify('${CHANNELS.lobby_runs}', lobby_id::text) from run`,
    values: [handle.lobby_id, JSON.stringify(handle), new Date(handle.start_ts)],
  })
}

/** Records that servers do not respond, or respond again. Notifies the edge and the matchmaker of each change. */
export async function recordStalls(ctx: Context, lobby_ids: readonly string[], is_stalled: boolean): Promise<void> {
  await ctx.pool.query({
    name: 'runner-stall',
    text: `
      with run as (
        update lobby_runs set stall_ts = $2
        where lobby_id = any($1) and exit_ts is null and (stall_ts is null) <> ($2::timestamptz is null)
        returning lobby_id
      )
      select pg_notify('${CHANNELS.lobby_runs}', lobby_id::text) from run`,
    values: [lobby_ids, is_stalled ? new Date(ctx.now()) : null],
  })
}

/** Records that the server of a run was seen to be ready, and notifies the matchmaker. A second call changes nothing. */
export async function recordReady(ctx: Context, lobby_id: string): Promise<void> {
  await ctx.pool.query({
    name: 'runner-ready',
    text: `
      with run as (
        update lobby_runs set seen_ready_ts = $2
        where lobby_id = $1 and exit_ts is null and seen_ready_ts is null returning lobby_id
      )
      select pg_notify('${CHANNELS.lobby_runs}', lobby_id::text) from run`,
    values: [lobby_id, new Date(ctx.now())],
  })
}

/** Records where the server of a run listens. Without a notification: only the explanation of a failed start reads it. */
export async function recordListening(ctx: Context, lobby_id: string, listening: Listening): Promise<void> {
  await ctx.pool.query({
    name: 'runner-listening',
    text: 'update lobby_runs set listening = $2 where lobby_id = $1 and exit_ts is null',
    values: [lobby_id, JSON.stringify(listening)],
  })
}

/** Records what the server of a run reported in the protocol of another platform. Without a notification: pages read it. */
export async function recordProtocolReport(ctx: Context, lobby_id: string, report: ProtocolReportRow): Promise<void> {
  await ctx.pool.query({
    name: 'runner-protocol-report',
    text: 'update lobby_runs set protocol_report = $2 where lobby_id = $1 and exit_ts is null',
    values: [lobby_id, JSON.stringify(report)],
  })
}

/**
 * Records the end of a run, and notifies the edge and the matchmaker. Only the first call has an effect, and returns true.
 * The end is never before the start, even if the machine's clock was set back. The last lines of the log are stored for a
 * server that failed.
 */
export async function recordExit(
  ctx: Context,
  lobby_id: string,
  exit: Exit,
  log_tail: readonly string[],
): Promise<boolean> {
  const { exit_code, reason, cpu_ms, ran } = exit
  const { rowCount } = await ctx.pool.query({
    name: 'runner-exit',
    text: `
      with run as (
        update lobby_runs set start_ts = coalesce(start_ts, $7::timestamptz),
          exit_ts = greatest($2::timestamptz, start_ts, $7::timestamptz), exit_code = $3, exit_reason = $4, cpu_ms = $5, log_tail = case
          when $4 <> 'stopped' or exists (
            select from lobbies where lobbies.lobby_id = $1 and lobbies.stop_reason = 'never_ready'
          ) then $6::jsonb end
        where lobby_id = $1 and exit_ts is null returning lobby_id
      )
      select pg_notify('${CHANNELS.lobby_runs}', lobby_id::text) from run`,
    values: [
      lobby_id,
      new Date(ran?.end_ts ?? ctx.now()),
      exit_code,
      reason,
      cpu_ms,
      JSON.stringify(log_tail),
      ran && new Date(ran.start_ts),
    ],
  })
  return rowCount === 1
}

/** Changes the open runs to the nodes that have them, whatever these were named at their start. Returns their lobby ids. */
export async function claimRuns(ctx: Context, handles: readonly Handle[]): Promise<Set<string>> {
  const { rows } = await ctx.pool.query<{ lobby_id: string }>(
    `update lobby_runs set runner_id = given.node_id from unnest($1::uuid[], $2::text[]) as given (lobby_id, node_id)
      where lobby_runs.lobby_id = given.lobby_id and exit_ts is null returning lobby_runs.lobby_id`,
    [handles.map(({ lobby_id }) => lobby_id), handles.map(({ node_id = ctx.config.node_id }) => node_id)],
  )
  return new Set(rows.map(({ lobby_id }) => lobby_id))
}

/** Changes the open runs of a former name to this runner. Returns their number. */
export async function adoptRuns(ctx: Context, former: string): Promise<number> {
  const { rowCount } = await ctx.pool.query(
    'update lobby_runs set runner_id = $1 where runner_id = $2 and exit_ts is null',
    [ctx.config.node_id, former],
  )
  return rowCount ?? 0
}

/** The row of a lobby that is still wanted stays: without it the lobby would be started again. */
export const OLD_RUNS: OldRows = {
  table: 'lobby_runs',
  ended: 'exit_ts',
  only: 'not exists (select from lobbies where lobbies.lobby_id = lobby_runs.lobby_id and lobbies.stop_ts is null)',
}

/** Returns how many were removed. */
export async function removeOldRuns(ctx: Context): Promise<number> {
  const { runs_ms } = ctx.config.retention
  return runs_ms === null ? 0 : removeOld(ctx.pool, OLD_RUNS, ctx.now() - runs_ms)
}
