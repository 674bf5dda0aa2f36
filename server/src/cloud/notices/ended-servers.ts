// Versions whose last servers all failed, and servers that never became ready, from the newest runs of the last hour.
import type { Context } from '../../context.ts'
import { FAILED_SQL } from '../lobbies/rows.ts'

/** Failed servers in a row that make a notice. */
export const CRASHES_IN_A_ROW = 3
const WINDOW_MS = 3_600_000
/** Runs that are read: the newest. */
const RUNS_MAX = 5_000
const VERSIONS_MAX = 100

/** The last server of a version that failed. `count`: of the last servers, those that failed in a row, at most CRASHES_IN_A_ROW. */
export type FailedServer = {
  namespace_id: string
  version_id: string
  version: string
  count: number
  lobby_id: string
  node_id: string
  region: string
  exit_code: number | null
  reason: string
  lines: string[] | null
  ray_id: string | null
}

export async function readFailedServers(
  { pool, now }: Context,
  group_ids: readonly string[],
  namespace_ids: readonly string[],
): Promise<FailedServer[]> {
  const { rows } = await pool.query<FailedServer>(
    `with r as (
        select lobby_id, runner_id, exit_ts, exit_code, exit_reason, log_tail from lobby_runs
        where group_id = any($1) and exit_ts >= $2 order by exit_ts desc limit ${RUNS_MAX}
      ), ended as (
        select l.namespace_id, l.version_id, l.lobby_id, l.region, l.ray_id, r.runner_id, r.exit_ts, r.exit_code, r.log_tail, coalesce(${FAILED_SQL}, false) as failed,
          case when l.stop_reason = 'never_ready' then l.stop_reason else r.exit_reason end as reason,
          row_number() over (partition by l.namespace_id, l.version_id order by r.exit_ts desc, run_id) as back
        from (select runner_id, exit_ts, exit_code, exit_reason, log_tail, lobby_id as run_id from r) as r
        join lobbies l on l.lobby_id = run_id where l.namespace_id = any($3)
      ), newest as (
        select *, count(*) filter (where failed) over (partition by namespace_id, version_id)::integer as count
        from ended where back <= ${CRASHES_IN_A_ROW}
      )
      select namespace_id, newest.version_id, coalesce(versions.display_name, 'A version') as version, count, lobby_id,
        runner_id as node_id, region, exit_code, reason, log_tail as lines, ray_id
      from newest left join versions using (version_id)
      where back = 1 and failed order by exit_ts desc limit ${VERSIONS_MAX}`,
    [group_ids, new Date(now() - WINDOW_MS), namespace_ids],
  )
  return rows
}
