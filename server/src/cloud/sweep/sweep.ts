// What the api role tidies, a little at a time: the bytes of what was deleted, uploads that nobody completed, and rows
// whose time is over (retention.ts). Each step may be broken off anywhere and is made again by the next sweep.
import type { Context } from '../../context.ts'
import { type Sweeper, type SweepStep, startSweeper, sweepOnce } from '../../database/sweeper.ts'
import { deleteUploads, sweepRemovedObjects } from './removed-objects.ts'
import { resealAll } from './reseal.ts'
import { retentionSteps } from './retention.ts'

const SWEEP_EVERY_MS = 60_000
/** Uploads that one sweep abandons; the rest is for the next. */
const ABANDONED_MAX = 500

/** A long object is sent to a bucket in parts, within this time. */
const UNFINISHED_MS_MAX = 24 * 60 * 60_000

function sweepSteps(ctx: Context): SweepStep[] {
  return [
    { what: 'uploads', remove: () => abandonUploads(ctx) },
    { what: 'objects', remove: () => sweepRemovedObjects(ctx) },
    { what: 'unfinished objects', remove: () => ctx.objects.removeUnfinished(ctx.now() - UNFINISHED_MS_MAX) },
    ...retentionSteps(ctx),
    { what: 'reseal', remove: () => reseal(ctx) },
  ]
}

/** Removes nothing, but runs as often. */
async function reseal(ctx: Context): Promise<number> {
  const seals = await resealAll(ctx)
  if (seals > 0) ctx.log.info({ seals }, 'closed secrets with the current key')
  return 0
}

export function startSweeping(ctx: Context): Sweeper {
  return startSweeper(ctx, 'api', SWEEP_EVERY_MS, sweepSteps(ctx))
}

export async function sweep(ctx: Context): Promise<void> {
  await sweepOnce(ctx.log, sweepSteps(ctx))
}

/** Removes uploads that were prepared long ago and never completed, with the build or site they were for. */
async function abandonUploads(ctx: Context): Promise<number> {
  const { abandoned_uploads_ms } = ctx.config.retention
  if (abandoned_uploads_ms === null) return 0
  const rows = await ctx.db
    .selectFrom('uploads')
    .select('upload_id')
    .where('complete_ts', 'is', null)
    .where('create_ts', '<', new Date(ctx.now() - abandoned_uploads_ms))
    .orderBy('create_ts')
    .limit(ABANDONED_MAX)
    .execute()
  for (const { upload_id } of rows) await abandon(ctx, upload_id)
  return rows.length
}

async function abandon(ctx: Context, upload_id: string): Promise<void> {
  await ctx.db.transaction().execute(async (trx) => {
    const row = await trx
      .selectFrom('uploads')
      .select('upload_id')
      .where('upload_id', '=', upload_id)
      .where('complete_ts', 'is', null)
      .forUpdate()
      .executeTakeFirst()
    if (row === undefined) return
    await trx.deleteFrom('builds').where('upload_id', '=', upload_id).execute()
    await trx.deleteFrom('sites').where('upload_id', '=', upload_id).execute()
    await deleteUploads(ctx, trx, [upload_id])
  })
}
