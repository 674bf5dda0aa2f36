import { sql } from 'kysely'
import type { Platform } from '../support/platform.ts'
import { until } from '../support/until.ts'

/** What the audit log says was changed, and not what was refused. */
const CHANGES = sql`where outcome in ('done', 'begun')`
/** Columns that are collected for seconds after their request, and written with those of others. Other columns are compared. */
export const COLLECTED: Readonly<Record<string, string>> = { tokens: 'use_ts', identities: 'seen_ts' }

/**
 * Every row of every table but refusals in the audit log, the lease, which is renewed all the time, rays, which every request may leave, the last runs of jobs, and analytics,
 * which are folded a while after. What was committed is in the tables first.
 */
export async function dump({ ctx }: Platform): Promise<string> {
  await until('the tables to be what the journal says', async () => {
    const { rows } = await sql<{ behind: number }>`
      select count(*)::int as behind from
        (select shard, max(seq) as seq from journal group by shard) as written join shards using (shard)
      where projected_seq < seq`.execute(ctx.db)
    return rows[0]?.behind === 0
  })
  const tables = await sql<{ name: string }>`
    select table_name as name from information_schema.tables
    where table_schema = 'public' and table_name not like 'analytics_%'
      and table_name not in ('journal_readers', 'matchmakers', 'shard_leases', 'port_claims', 'shard_room', 'place_room', 'explanations', 'ray_spans', 'job_runs', 'find_durations', 'platform_find_durations', 'match_waits', 'rollout_finds', 'node_use', 'notice_reader', 'notice_states', 'schedule_runs') order by 1`.execute(
    ctx.db,
  )
  const parts = tables.rows.map(({ name }) => {
    const collected = COLLECTED[name]
    const row = collected === undefined ? sql`to_jsonb(t)` : sql`to_jsonb(t) - ${sql.lit(collected)}`
    return sql`select ${name} as name, coalesce(json_agg(r order by r), '[]')::text as content
      from (select (${row})::text as r from ${sql.table(name)} as t ${name === 'audit_events' ? CHANGES : sql``}) as rows`
  })
  const { rows } = await sql`${sql.join(parts, sql` union all `)}`.execute(ctx.db)
  return rows.map((row) => JSON.stringify(row)).join('\n')
}
