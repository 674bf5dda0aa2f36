// Builds: what a lobby runs. A build is as complete as its upload.
import type { BodyOf, createGameBuild, ErrorDetail, listGameBuilds, QueryOf, ResponseOf } from '@musterhost/contract'
import { sql } from 'kysely'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
import { newId } from '../../ids.ts'
import type { Caller } from '../../tokens/caller.ts'
import { requireGame } from '../access.ts'
import { notUnique, orNameTaken, throwErrors } from '../field-errors.ts'
import { cut, isAfter, LIST_MAX } from '../lists.ts'
import { timestamp } from '../times.ts'
import { reuseStored } from './stored-contents.ts'
import { checkUpload, partBytesOf, prepareUpload, type UploadPlan } from './uploads.ts'

type BuildKind = NonNullable<BodyOf<typeof createGameBuild>['kind']>
type Compression = NonNullable<BodyOf<typeof createGameBuild>['compression']>

const tagTaken = (image_tag: string): ErrorDetail =>
  notUnique(['image_tag'], `The game has a build ${JSON.stringify(image_tag)} already.`)

/** Throws GAME_NOT_FOUND, VALIDATION_ERROR, NAME_TAKEN, UPLOAD_INVALID, UPLOAD_TOO_LARGE or QUOTA_REACHED. */
export async function createBuild(
  ctx: ChangeContext,
  caller: Caller,
  game_id: string,
  body: BodyOf<typeof createGameBuild>,
): Promise<ResponseOf<typeof createGameBuild>> {
  await requireGame(ctx, caller, game_id)
  const { display_name, image_tag, image_file, kind = 'archive', tags = {} } = body
  const part_bytes = partBytesOf(body)
  checkCompression(kind, body.compression)
  const pathOf = () => ['image_file', 'path']
  const wanted = { game_id, kind: 'build', files: [image_file], part_bytes, pathOf } as const
  checkUpload(wanted)
  const twin = await ctx.db
    .selectFrom('builds')
    .select('build_id')
    .where('game_id', '=', game_id)
    .where('image_tag', '=', image_tag)
    .executeTakeFirst()
  if (twin !== undefined) throwErrors([tagTaken(image_tag)])

  const plan: UploadPlan = { ...wanted, reused: await reuseStored(ctx, game_id, wanted.files) }
  const compression = body.compression ?? compressionOf(image_file.path)
  const now = ctx.now()
  const build_id = newId(now)
  const create_ts = new Date(now)
  const { response } = await orNameTaken(tagTaken(image_tag), () =>
    changes(ctx, { game_id }, async (trx) => {
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
      const addresses =
        part_bytes !== null
          ? { image_presigned_requests: presigned_requests }
          : presigned_requests[0] && { image_presigned_request: presigned_requests[0] }
      const after = { build_id, display_name, image_tag, kind, upload_id }
      return { before: {}, after, response: { build_id, upload_id, ...addresses } }
    }),
  )
  return response
}

/** The bytes of the file decide; a named compression that can never be right is refused. */
function checkCompression(kind: BuildKind, compression: Compression | undefined): void {
  if (compression === 'lz4')
    throwErrors([notAllowed('lz4 is not supported. Compress the file by gzip, or an image by zstd.')])
  if (compression === 'zstd' && kind === 'archive') {
    throwErrors([notAllowed('An archive is a tar, a tar.gz or a zip; zstd is for images.')])
  }
}

const notAllowed = (message: string): ErrorDetail => ({ path: ['compression'], reason: 'not_allowed', message })

function compressionOf(path: string): Compression {
  if (/\.t?gz$/i.test(path)) return 'gzip'
  return /\.t?zstd?$/i.test(path) ? 'zstd' : 'none'
}

/** `tag`: name=value. The name has no equals sign, the value may have some. */
function hasTag(tag: string) {
  const equals = tag.indexOf('=')
  const wanted = { [tag.slice(0, equals)]: tag.slice(equals + 1) }
  return sql<boolean>`builds.tags @> ${JSON.stringify(wanted)}::jsonb`
}

/** Throws GAME_NOT_FOUND. */
export async function listBuilds(
  ctx: Context,
  caller: Caller,
  game_id: string,
  { tags = [], before_build_id, limit = LIST_MAX }: QueryOf<typeof listGameBuilds>,
): Promise<ResponseOf<typeof listGameBuilds>> {
  await requireGame(ctx, caller, game_id)
  const found = await ctx.db
    .selectFrom('builds')
    .innerJoin('uploads', 'uploads.upload_id', 'builds.upload_id')
    .select(['builds.build_id', 'builds.upload_id', 'builds.display_name', 'builds.create_ts', 'builds.tags'])
    .select(['uploads.content_length', 'uploads.complete_ts'])
    .where('builds.game_id', '=', game_id)
    .where(({ and }) => and(tags.map((tag) => hasTag(tag))))
    .$if(before_build_id !== undefined, (query) => query.where(isAfter('builds', 'build_id', before_build_id!)))
    .orderBy('builds.create_ts', 'desc')
    .orderBy('builds.build_id', 'desc')
    .limit(limit + 1)
    .execute()
  const { rows, is_cut } = cut(found, limit)
  return {
    is_cut,
    builds: rows.map(({ complete_ts, ...row }) => ({
      ...row,
      create_ts: timestamp(row.create_ts),
      complete: complete_ts !== null,
    })),
  }
}
