// Versions whose lobby servers failed in the last hour, and the version to roll back to: the last one before the current
// deploy whose servers called ready and which does not fail now.
import type { Problem } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { FAILED_SQL } from '../lobbies/rows.ts'
import { CHECK_BEFORE_SQL } from '../namespaces/deploys.ts'
import { timestamp } from '../times.ts'
import type { OverviewScope, ScopeNamespace } from './scope.ts'

const WINDOW_MS = 3_600_000
/** Runs that are read: the newest of the window. */
const RUNS_MAX = 10_000
/** Pairs of a namespace and a version. */
const CRASHES_MAX = 50
/** Deploys before the current one in which a version that worked is sought. */
const DEPLOYS_BACK_MAX = 20

type Crash = {
  namespace_id: string
  version_id: string
  version_display_name: string
  ended_count: number
  failed_count: number
  last_ts: Date
  last_exit_code: number | null
  last_reason: string
}
type Good = { namespace_id: string; version_id: string; version_display_name: string }

export async function crashProblems(ctx: Context, scope: OverviewScope): Promise<Problem[]> {
  const crashes = await readCrashes(ctx, scope)
  if (crashes.length === 0) return []
  const goods = await readGoods(ctx, [...new Set(crashes.map(({ namespace_id }) => namespace_id))])
  const crashing = new Set(crashes.map(({ namespace_id, version_id }) => `${namespace_id} ${version_id}`))
  return crashes.flatMap((crash) => {
    const namespace = scope.namespaces.find(({ namespace_id }) => namespace_id === crash.namespace_id)
    if (namespace === undefined) return []
    const good = goods.find(
      ({ namespace_id, version_id }) =>
        namespace_id === crash.namespace_id && !crashing.has(`${namespace_id} ${version_id}`),
    )
    return [problemOf(scope, namespace, crash, good)]
  })
}

async function readCrashes({ pool, now }: Context, scope: OverviewScope): Promise<Crash[]> {
  const { rows } = await pool.query<Crash>(
    `with r as (
        select lobby_id, exit_ts, exit_code, exit_reason from lobby_runs
        where group_id = any($1) and exit_ts >= $2 order by exit_ts desc limit ${RUNS_MAX}
      ), ended as (
        select l.namespace_id, l.version_id, r.exit_ts, r.exit_code, coalesce(${FAILED_SQL}, false) as failed,
          case when l.stop_reason = 'never_ready' then l.stop_reason else r.exit_reason end as reason
        from r join lobbies l using (lobby_id) where l.namespace_id = any($3)
      )
      select namespace_id, version_id, coalesce(versions.display_name, '') as version_display_name,
        count(*)::integer as ended_count, (count(*) filter (where failed))::integer as failed_count,
        max(exit_ts) filter (where failed) as last_ts,
        (array_agg(exit_code order by exit_ts desc) filter (where failed))[1] as last_exit_code,
        (array_agg(reason order by exit_ts desc) filter (where failed))[1] as last_reason
      from ended left join versions using (version_id)
      group by namespace_id, version_id, versions.display_name having bool_or(failed)
      order by failed_count desc, namespace_id, version_id limit ${CRASHES_MAX}`,
    [scope.group_ids, new Date(now() - WINDOW_MS), scope.namespace_ids],
  )
  return rows
}

/** Earlier versions of these namespaces that worked, the last deployed first. The check before a deploy counts. */
async function readGoods({ pool }: Context, namespace_ids: readonly string[]): Promise<Good[]> {
  const { rows } = await pool.query<Good>(
    `select deploy.namespace_id, deploy.version_id, versions.display_name as version_display_name
      from namespaces cross join lateral (
        select namespace_id, version_id, deploy_ts, deploy_number, lead(deploy_ts) over by_number as end_ts,
          case when lag(version_id) over by_number = version_id then deploy_ts else lag(deploy_ts) over by_number end as former_ts
        from (
          select * from namespace_versions as one where one.namespace_id = namespaces.namespace_id
          order by deploy_number desc limit ${DEPLOYS_BACK_MAX + 1}
        ) as newest window by_number as (order by deploy_number)
      ) as deploy join versions on versions.version_id = deploy.version_id
      where namespaces.namespace_id = any($1) and deploy.version_id <> namespaces.version_id and exists (
        select from lobbies l
        where l.namespace_id = deploy.namespace_id and l.version_id = deploy.version_id
          and l.create_ts >= greatest(deploy.deploy_ts - ${CHECK_BEFORE_SQL}, deploy.former_ts)
          and l.create_ts < deploy.end_ts and l.ready_ts is not null
      )
      order by deploy.deploy_number desc`,
    [namespace_ids],
  )
  return rows
}

function problemOf(scope: OverviewScope, namespace: ScopeNamespace, crash: Crash, good: Good | undefined): Problem {
  const { namespace_id, version_id, ended_count, failed_count, last_ts, last_exit_code, last_reason } = crash
  const { game_id } = namespace
  const is_deployed = version_id === namespace.version_id
  const end = last_reason === 'exit' ? `with exit code ${last_exit_code ?? 'unknown'}` : `with \`${last_reason}\``
  const servers =
    ended_count === 1 ? 'The only server that ended' : `${failed_count} of ${ended_count} servers that ended`
  return {
    kind: 'version_crashing',
    severity: is_deployed && failed_count * 2 >= ended_count ? 'error' : 'warning',
    title: `${crash.version_display_name || 'A version'} crashes in ${namespace.name_id}`,
    text: `${servers} within the last hour failed; the last one ended ${end}.`,
    ...groupOf(scope, game_id),
    ...{ game_id, namespace_id, version_id, count: failed_count, count_max: ended_count },
    ...(last_exit_code === null ? {} : { exit_code: last_exit_code }),
    since_ts: timestamp(last_ts),
    remedy:
      is_deployed && good !== undefined
        ? {
            kind: 'roll_back',
            ...{ game_id, namespace_id },
            version_id: good.version_id,
            version_display_name: good.version_display_name,
          }
        : { kind: 'open_page', page: 'lobbies', game_id, namespace_id },
  }
}

/** Group of a game of the scope, as members of a problem. */
export function groupOf(scope: OverviewScope, game_id: string): { group_id?: string } {
  const game = scope.games.find((one) => one.game_id === game_id)
  return game === undefined ? {} : { group_id: game.group_id }
}
