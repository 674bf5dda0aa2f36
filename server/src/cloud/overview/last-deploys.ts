// The last deploys over the namespaces of an overview, each with whether a server of it called ready or failed.
import type { OverviewDeploy } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { FAILED_SQL } from '../lobbies/rows.ts'
import { CHECK_BEFORE_SQL } from '../namespaces/deploys.ts'
import { timestamp } from '../times.ts'
import type { OverviewScope } from './scope.ts'

/** Lobbies of a deploy that are read for a failed one: the first. */
const LOBBIES_MAX = 1_000

type Row = {
  deploy_id: string
  namespace_id: string
  version_id: string
  version_display_name: string
  deploy_ts: Date
  caller_kind: string
  caller_name: string | null
  message: string | null
  first_ready_ts: Date | null
  rolled_back_ts: Date | null
  has_failed: boolean
}

/**
 * Newest first. Those with which a namespace began are not deploys of somebody, and are left out. A lobby that checked the
 * version before its deploy counts, as it does in the history of the namespace.
 */
export async function readLastDeploys(
  ctx: Context,
  scope: OverviewScope,
  count_max: number,
): Promise<OverviewDeploy[]> {
  const { rows } = await ctx.pool.query<Row>(
    `with newest as (
        select deploy.*, (
            select min(later.deploy_ts) from namespace_versions as later
            where later.namespace_id = deploy.namespace_id and later.deploy_number > deploy.deploy_number
          ) as end_ts, (
            select case when former.version_id = deploy.version_id then deploy.deploy_ts else former.deploy_ts end
            from namespace_versions as former
            where former.namespace_id = deploy.namespace_id and former.deploy_number < deploy.deploy_number
            order by former.deploy_number desc limit 1
          ) as former_ts
        from unnest($1::uuid[]) as owner (id) cross join lateral (
          select * from namespace_versions where namespace_id = owner.id order by deploy_number desc limit $2
        ) as deploy
        where exists (
          select from namespace_versions as earlier
          where earlier.namespace_id = deploy.namespace_id and earlier.deploy_number < deploy.deploy_number
        )
        order by deploy_ts desc, deploy_number desc limit $2
      )
      select newest.deploy_id, newest.namespace_id, newest.version_id, newest.deploy_ts, newest.caller_kind, newest.message,
        (
          select case when next.is_rollback then next.deploy_ts end from namespace_versions as next
          where next.namespace_id = newest.namespace_id and next.deploy_number > newest.deploy_number
          order by next.deploy_number limit 1
        ) as rolled_back_ts,
        coalesce(newest.caller_name, users.display_name) as caller_name, versions.display_name as version_display_name,
        (
          select greatest(ready_ts, newest.deploy_ts) from lobbies l
          where l.namespace_id = newest.namespace_id and l.version_id = newest.version_id and l.ready_ts is not null
            and l.create_ts >= greatest(newest.deploy_ts - ${CHECK_BEFORE_SQL}, newest.former_ts) and l.create_ts < coalesce(newest.end_ts, 'infinity')
          order by l.create_ts limit 1
        ) as first_ready_ts,
        exists (
          select from (
            select * from lobbies
            where namespace_id = newest.namespace_id and version_id = newest.version_id
              and create_ts >= newest.deploy_ts and create_ts < coalesce(newest.end_ts, 'infinity')
            order by create_ts limit ${LOBBIES_MAX}
          ) as l left join lobby_runs r using (lobby_id) where ${FAILED_SQL}
        ) as has_failed
      from newest join versions using (version_id) left join users on users.user_id = newest.caller_user_id
      order by newest.deploy_ts desc, newest.deploy_number desc`,
    [scope.namespace_ids, count_max],
  )
  const games = new Map(scope.namespaces.map(({ namespace_id, game_id }) => [namespace_id, game_id]))
  return rows.map((row) => {
    const {
      caller_kind: kind,
      caller_name: name,
      deploy_ts,
      message,
      first_ready_ts,
      has_failed,
      rolled_back_ts,
      ...ids
    } = row
    return {
      ...ids,
      game_id: games.get(row.namespace_id)!,
      deploy_ts: timestamp(deploy_ts),
      deployed_by: name === null ? { kind } : { kind, name },
      ...(message === null ? {} : { message }),
      ...(first_ready_ts === null ? {} : { first_ready_ts: timestamp(first_ready_ts) }),
      ...(rolled_back_ts === null ? {} : { rolled_back_ts: timestamp(rolled_back_ts) }),
      outcome: first_ready_ts !== null ? 'ready' : has_failed ? 'failed' : 'unknown',
    }
  })
}
