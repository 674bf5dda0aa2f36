// What happened with the two versions of a roll-out while it was under way.
import type { Rollout } from '@musterhost/contract'
import type { Static } from 'typebox'
import type { Context } from '../../context.ts'
import { FAILED_SQL } from '../lobbies/rows.ts'

export type RolloutFigures = Static<typeof Rollout>['figures']
export type FiguredRollout = {
  rollout_id: string
  namespace_id: string
  version_id: string
  deployed_version_id: string
  begin_ts: Date
  end_ts: Date | null
}

/** Lobbies of a roll-out that are read: the first. */
const LOBBIES_MAX = 100_000

export async function readFigures({ pool }: Context, rollout: FiguredRollout): Promise<RolloutFigures> {
  const { rollout_id, namespace_id, version_id, deployed_version_id, begin_ts, end_ts } = rollout
  const { rows } = await pool.query<RolloutFigures['rollout']>(
    `with of_rollout as (
        select lobby_id, version_id, stop_reason, ready_ts from lobbies
        where namespace_id = $2 and create_ts >= $4 and ($5::timestamptz is null or create_ts < $5)
        order by create_ts limit ${LOBBIES_MAX}
      ), started as (
        select l.version_id, count(*)::integer as lobby_count,
          (count(*) filter (where coalesce(${FAILED_SQL}, false)))::integer as failed_lobby_count
        from of_rollout l left join lobby_runs r using (lobby_id) group by l.version_id
      )
      select one.version_id, coalesce(lobby_count, 0) as lobby_count, coalesce(failed_lobby_count, 0) as failed_lobby_count,
        coalesce(find_count, 0)::integer as find_count, coalesce(refused_count, 0)::integer as refused_find_count
      from unnest($3::uuid[]) as one (version_id)
        left join started on started.version_id = one.version_id
        left join rollout_finds on rollout_finds.rollout_id = $1 and rollout_finds.version_id = one.version_id`,
    [rollout_id, namespace_id, [version_id, deployed_version_id], begin_ts, end_ts],
  )
  const of = (id: string) => rows.find((row) => row.version_id === id)!
  return { rollout: of(version_id), deployed: of(deployed_version_id) }
}
