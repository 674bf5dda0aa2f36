// What runs now in the namespaces of an overview, from the table of lobbies. Running lobbies have an index by shard.
import type { Context } from '../../context.ts'
import { shardOf } from '../../journal/pages.ts'

export type NowCount = { lobby_count: number; player_count: number; stalled_count: number; stalled_version_id: string }
type Row = NowCount & { namespace_id: string }

/** By namespace; one without running lobbies is missing. */
export async function countNow(ctx: Context, namespace_ids: readonly string[]): Promise<Map<string, NowCount>> {
  const shards = [...new Set(namespace_ids.map(shardOf))]
  const { rows } = await ctx.pool.query<Row>(
    `select namespace_id, count(*)::integer as lobby_count, sum(player_count)::integer as player_count,
        (count(*) filter (where is_stalled))::integer as stalled_count,
        (array_agg(version_id order by create_ts desc) filter (where is_stalled))[1] as stalled_version_id
      from lobbies where shard = any($1) and stop_ts is null and namespace_id = any($2) group by namespace_id`,
    [shards, namespace_ids],
  )
  return new Map(rows.map(({ namespace_id, ...count }) => [namespace_id, count]))
}
