// Builds: what a lobby runs. A build is as complete as its upload.
import type { BodyOf, createGameBuild, ErrorDetail, listGameBuilds, ResponseOf } from '@muster/contract'
import type { Caller } from '../caller.ts'
import type { Context } from '../context.ts'
import { newId } from '../ids.ts'
import { requireGame } from './access.ts'
import { notUnique, orNameTaken, refuse } from './field-errors.ts'
import { LIST_MAX } from './lists.ts'
import { timestamp } from './times.ts'
import { checkUpload, prepareUpload, type UploadPlan } from './uploads.ts'

const tagTaken = (image_tag: string): ErrorDetail =>
  notUnique(['image_tag'], `The game has a build ${JSON.stringify(image_tag)} already.`)

/** Throws GAME_NOT_FOUND, NAME_TAKEN, UPLOAD_INVALID or UPLOAD_TOO_LARGE. */
export async function createBuild(
  ctx: Context,
  caller: Caller,
  game_id: string,
  body: BodyOf<typeof createGameBuild>,
): Promise<ResponseOf<typeof createGameBuild>> {
  await requireGame(ctx, caller, game_id)
  const { display_name, image_tag, image_file, kind = 'archive', tags = {} } = body
  const plan: UploadPlan = { game_id, kind: 'build', files: [image_file], pathOf: () => ['image_file', 'path'] }
  checkUpload(plan)
  const twin = await ctx.db
    .selectFrom('builds')
    .select('build_id')
    .where('game_id', '=', game_id)
    .where('image_tag', '=', image_tag)
    .executeTakeFirst()
  if (twin !== undefined) refuse([tagTaken(image_tag)])

  const compression = body.compression ?? (/\.t?gz$/i.test(image_file.path) ? 'gzip' : 'none')
  const now = ctx.now()
  const build_id = newId(now)
  const create_ts = new Date(now)
  return orNameTaken(tagTaken(image_tag), () =>
    ctx.db.transaction().execute(async (trx) => {
      const { upload_id, presigned_requests } = await prepareUpload(ctx, trx, plan)
      await trx
        .insertInto('builds')
        .values({
          build_id,
          game_id,
          upload_id,
          display_name,
          image_tag,
          kind,
          compression,
          create_ts,
          tags: JSON.stringify(tags),
        })
        .execute()
      return { build_id, upload_id, image_presigned_request: presigned_requests[0]! }
    }),
  )
}

/** Throws GAME_NOT_FOUND. */
export async function listBuilds(
  ctx: Context,
  caller: Caller,
  game_id: string,
): Promise<ResponseOf<typeof listGameBuilds>> {
  await requireGame(ctx, caller, game_id)
  const rows = await ctx.db
    .selectFrom('builds')
    .innerJoin('uploads', 'uploads.upload_id', 'builds.upload_id')
    .select(['builds.build_id', 'builds.upload_id', 'builds.display_name', 'builds.create_ts', 'builds.tags'])
    .select(['uploads.content_length', 'uploads.complete_ts'])
    .where('builds.game_id', '=', game_id)
    .orderBy('builds.create_ts', 'desc')
    .orderBy('builds.build_id', 'desc')
    .limit(LIST_MAX)
    .execute()
  return {
    builds: rows.map(({ complete_ts, ...row }) => ({
      ...row,
      create_ts: timestamp(row.create_ts),
      complete: complete_ts !== null,
    })),
  }
}
