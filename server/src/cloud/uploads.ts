// Uploads: prepared -> (files arrive, in any order, again if need be) -> complete. A prepared upload promises paths and
// lengths; it becomes complete when every file is there with its length, all at once, and never changes afterwards.
// The row of the upload is the lock between the two: a file is published only while the row is held and incomplete.
import { ApiError, type PrepareFile, type PresignedRequest } from '@muster/contract'
import type { Kysely, Transaction } from 'kysely'
import type { Static } from 'typebox'
import { mainUrl } from '../config.ts'
import type { Context } from '../context.ts'
import type { Schema } from '../database/schema.ts'
import { newId } from '../ids.ts'
import { newObjectKey } from '../objects/objects.ts'
import { presignPut } from '../objects/presign.ts'
import { checkPaths } from './upload-paths.ts'

/** Totals must stay below these, bytes. */
const SITE_BYTES_LIMIT = 1_000_000_000
const BUILD_BYTES_LIMIT = 8_000_000_000

const BYTES_LIMITS = { site: SITE_BYTES_LIMIT, build: BUILD_BYTES_LIMIT } as const
const PRESIGNED_LIFETIME_MS = 60 * 60_000
/** PostgreSQL takes 65,535 parameters in a statement, and a file has seven. */
const ROWS_PER_INSERT_MAX = 5_000

type File = Static<typeof PrepareFile>
type Presigned = Static<typeof PresignedRequest>

export type UploadPlan = {
  game_id: string
  kind: 'build' | 'site'
  files: readonly File[]
  /** Where the path of a file stands in the request, for the error that names it. */
  pathOf: (index: number) => string[]
}

/**
 * Throws what is wrong with the files themselves: UPLOAD_INVALID (names, in `metadata.errors`) or UPLOAD_TOO_LARGE.
 * Apart from the database, so that it can be asked before a transaction is opened.
 */
export function checkUpload(plan: UploadPlan): { content_length: number } {
  const errors = checkPaths(
    plan.files.map((file) => file.path),
    plan.pathOf,
  )
  if (errors.length > 0) {
    throw new ApiError('UPLOAD_INVALID', { errors }, { message: errors.map((error) => error.message).join(' ') })
  }
  const content_length = plan.files.reduce((sum, file) => sum + file.content_length, 0)
  const limit = BYTES_LIMITS[plan.kind]
  if (content_length >= limit) {
    const message = `The upload has ${content_length} bytes; a ${plan.kind} must have fewer than ${limit}.`
    throw new ApiError('UPLOAD_TOO_LARGE', { content_length, content_length_max: limit - 1 }, { message })
  }
  return { content_length }
}

/** Inserts the upload and presigns its files, in their order. Throws as checkUpload does. */
export async function prepareUpload(
  ctx: Context,
  trx: Transaction<Schema>,
  plan: UploadPlan,
): Promise<{ upload_id: string; presigned_requests: Presigned[] }> {
  const { content_length } = checkUpload(plan)
  const now = ctx.now()
  const upload_id = newId(now)
  const files = plan.files.map((file) => ({
    upload_id,
    path: file.path,
    byte_offset: 0,
    content_length: file.content_length,
    content_type: file.content_type ?? null,
    object_key: newObjectKey(),
    sha256: null,
  }))
  await trx
    .insertInto('uploads')
    .values({ upload_id, game_id: plan.game_id, kind: plan.kind, content_length, create_ts: new Date(now) })
    .execute()
  for (let start = 0; start < files.length; start += ROWS_PER_INSERT_MAX) {
    await trx
      .insertInto('upload_files')
      .values(files.slice(start, start + ROWS_PER_INSERT_MAX))
      .execute()
  }
  const base_url = mainUrl(ctx.config)
  const expire_ms = now + PRESIGNED_LIFETIME_MS
  return {
    upload_id,
    presigned_requests: files.map(({ path, byte_offset, content_length, content_type, object_key }) => ({
      path,
      url: presignPut(ctx.keys, { base_url, object_key, content_length, content_type, expire_ms }),
      byte_offset,
      content_length,
    })),
  }
}

/**
 * Stores the bytes of one presigned PUT. Throws UPLOAD_NOT_FOUND when no upload waits for this object, UPLOAD_COMPLETE
 * when its upload is complete, and what Objects.put throws.
 */
export async function storeObject(ctx: Context, object: AwaitedObject, body: AsyncIterable<Uint8Array>): Promise<void> {
  await ctx.objects.put(object.object_key, body, object.content_length, {
    within: (publish) =>
      ctx.db.transaction().execute(async (trx) => {
        // Shared with other files of the upload; completing it waits until they have been published, or goes first.
        requireIncomplete(await awaiting(trx, object).forShare('uploads').executeTakeFirst())
        await publish()
      }),
  })
}

/** Throws as storeObject does, before a byte of the body is read. By the time of publish it may be otherwise. */
export async function requireAwaited(ctx: Context, object: AwaitedObject): Promise<void> {
  requireIncomplete(await awaiting(ctx.db, object).executeTakeFirst())
}

type AwaitedObject = { object_key: string; content_length: number }

function awaiting(db: Kysely<Schema>, { object_key, content_length }: AwaitedObject) {
  return db
    .selectFrom('upload_files')
    .innerJoin('uploads', 'uploads.upload_id', 'upload_files.upload_id')
    .select('uploads.complete_ts')
    .where('upload_files.object_key', '=', object_key)
    .where('upload_files.content_length', '=', content_length)
}

function requireIncomplete(upload: { complete_ts: Date | null } | undefined): void {
  if (upload === undefined) throw new ApiError('UPLOAD_NOT_FOUND')
  if (upload.complete_ts !== null) throw new ApiError('UPLOAD_COMPLETE')
}
