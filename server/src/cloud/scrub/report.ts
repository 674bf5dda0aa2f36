// What the operator sees of damage: numbers for Prometheus, and a warning in the health of the api.
import { sql } from 'kysely'
import type { Context } from '../../context.ts'

export function reportScrub(ctx: Context): void {
  const { metrics, health } = ctx
  metrics.gauge('damaged_objects', 'Stored files that are damaged and not used, by state.', ['state'], async (set) => {
    const { suspected, quarantined } = await countMarks(ctx)
    set(suspected, 'suspected')
    set(quarantined, 'quarantined')
  })
  metrics.gauge('stored_check_age_seconds', 'Since the stored file that waits longest was checked.', [], async (set) =>
    set(await oldestCheckSeconds(ctx)),
  )
  health.warns('damaged_objects', async () => {
    const { suspected, quarantined } = await countMarks(ctx)
    const count = suspected + quarantined
    if (count === 0) return null
    return `${count} stored ${count === 1 ? 'file is' : 'files are'} damaged and not used; muster verify names them`
  })
}

async function countMarks(ctx: Context): Promise<{ suspected: number; quarantined: number }> {
  const row = await ctx.db
    .selectFrom('damaged_objects')
    .select([sql<number>`count(*)::int`.as('all'), sql<number>`count(quarantine_ts)::int`.as('quarantined')])
    .executeTakeFirstOrThrow()
  return { suspected: row.all - row.quarantined, quarantined: row.quarantined }
}

/** By the index: those that were never checked first, from when their upload was complete. */
async function oldestCheckSeconds(ctx: Context): Promise<number> {
  const row = await ctx.db
    .selectFrom('upload_files')
    .innerJoin('uploads', 'uploads.upload_id', 'upload_files.upload_id')
    .select(sql<Date>`coalesce(checked_ts, complete_ts)`.as('since'))
    .where('sha256', 'is not', null)
    .where('complete_ts', 'is not', null)
    .orderBy('checked_ts', (order) => order.asc().nullsFirst())
    .limit(1)
    .executeTakeFirst()
  return row === undefined ? 0 : Math.max(0, (ctx.now() - row.since.getTime()) / 1_000)
}
