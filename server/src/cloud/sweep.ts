// What the api role tidies, a little at a time: the bytes of what was deleted, and uploads that nobody completed. Each
// step may be broken off anywhere and is made again by the next sweep.
import type { Context } from '../context.ts'
import { deleteUploads, sweepRemovedObjects } from './removed-objects.ts'
import { resealVersions } from './reseal.ts'

const SWEEP_EVERY_MS = 60_000
/** Uploads that one sweep abandons; the rest is for the next. */
const ABANDONED_MAX = 500

export type Sweeper = { stop: () => Promise<void> }

export function startSweeping(ctx: Context): Sweeper {
  let sweeping: Promise<void> | null = null
  const begin = (): void => {
    sweeping ??= sweep(ctx)
      .catch((error: unknown) => ctx.log.error({ err: error }, 'what is no longer needed could not be removed'))
      .finally(() => {
        sweeping = null
      })
  }
  const timer = setInterval(begin, SWEEP_EVERY_MS)
  return {
    async stop() {
      clearInterval(timer)
      await sweeping
    },
  }
}

export async function sweep(ctx: Context): Promise<void> {
  const uploads = await abandonUploads(ctx)
  const objects = await sweepRemovedObjects(ctx)
  const resealed = await resealVersions(ctx)
  if (resealed > 0) ctx.log.info({ versions: resealed }, 'closed secrets with the current key')
  if (uploads + objects > 0) ctx.log.info({ uploads, objects }, 'removed what is no longer needed')
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
