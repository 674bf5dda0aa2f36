// What the management side remembers of what is over, and for how long: a table, the column that says when a row ended,
// and a setting. Nothing here is needed for an answer any more: what is gone is refused like what has ended.
import { sql } from 'kysely'
import { analyticsSteps } from '../../analytics/retention.ts'
import type { Context } from '../../context.ts'
import { type OldRows, removeInBatches, removeOld } from '../../database/remove-old.ts'
import type { SweepStep } from '../../database/sweeper.ts'

type Setting =
  | 'audit_ms'
  | 'results_ms'
  | 'notices_ms'
  | 'tokens_ms'
  | 'sessions_ms'
  | 'login_codes_ms'
  | 'device_links_ms'
  | 'invites_ms'

export const OLD_ROWS: readonly (OldRows & { setting: Setting })[] = [
  { table: 'audit_events', ended: 'create_ts', setting: 'audit_ms' },
  { table: 'rating_results', ended: 'create_ts', setting: 'results_ms' },
  // A notice that waits has no end.
  { table: 'notices', ended: 'end_ts', setting: 'notices_ms' },
  { table: 'tokens', ended: 'expire_ts', setting: 'tokens_ms' },
  // A token that does not expire stays revoked for ever: its row has no such time.
  { table: 'revoked_tokens', ended: 'expire_ts', setting: 'tokens_ms' },
  { table: 'user_sessions', ended: 'expire_ts', setting: 'sessions_ms' },
  { table: 'user_sessions', ended: 'end_ts', setting: 'sessions_ms' },
  { table: 'email_verifications', ended: 'create_ts', setting: 'login_codes_ms' },
  { table: 'device_links', ended: 'complete_ts', setting: 'device_links_ms' },
  { table: 'group_invites', ended: 'expire_ts', setting: 'invites_ms' },
]

/** A row is needed for as long as the quarantine lasts. */
const RELEASED_DOMAINS: OldRows = { table: 'released_domains', ended: 'release_ts' }

export function retentionSteps(ctx: Context): SweepStep[] {
  const rows = OLD_ROWS.map((old) => ({
    what: old.table,
    remove: async () => {
      const kept_ms = ctx.config.retention[old.setting]
      return kept_ms === null ? 0 : removeOld(ctx.pool, old, ctx.now() - kept_ms)
    },
  }))
  const quarantine = {
    what: 'released_domains',
    remove: () => removeOld(ctx.pool, RELEASED_DOMAINS, ctx.now() - ctx.config.domain_quarantine_ms),
  }
  return [...rows, quarantine, ...analyticsSteps(ctx), { what: 'jobs', remove: () => removeFailedJobs(ctx) }]
}

/** Jobs whose last attempt failed stay in the queue, for the operator to inspect. `updated_at` is the database's clock. */
async function removeFailedJobs(ctx: Context): Promise<number> {
  const { jobs_ms } = ctx.config.retention
  if (jobs_ms === null) return 0
  return removeInBatches(async (rows_max) => {
    const { rows } = await sql`
      select id from graphile_worker.complete_jobs(array(
        select id from graphile_worker.jobs
        where attempts >= max_attempts and locked_at is null
          and updated_at < now() - make_interval(secs => ${jobs_ms / 1_000})
        order by id limit ${rows_max}
      ))`.execute(ctx.db)
    return rows.length
  })
}
