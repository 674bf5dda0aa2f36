// Logos and banners: prepared -> (bytes arrive) -> complete, which makes the picture the game's and removes the one before
// it. The bytes decide what it is (objects/image/image.ts), whatever the request and the file's name say. Everybody may see a
// picture; its address is its hash, so what an address shows never changes.
import { buffer } from 'node:stream/consumers'
import { ApiError, type BodyOf, type gameLogoUploadPrepare, type ResponseOf } from '@musterhost/contract'
import type { Transaction } from 'kysely'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import { mediaHost, publicUrl } from '../../config/addresses.ts'
import type { Context } from '../../context.ts'
import type { GameImageKind, Schema } from '../../database/schema.ts'
import { type Digest, digestOf } from '../../objects/digest.ts'
import { type Image, ImageRefused, imagePath, readImage } from '../../objects/image/image.ts'
import { ObjectNotFound } from '../../objects/objects.ts'
import type { Caller } from '../../tokens/caller.ts'
import { requireGame } from '../access.ts'
import { lockGroupOf } from '../quotas.ts'
import { deleteUploads } from '../sweep/removed-objects.ts'
import { dropTaken, keepTaken, type TakenFiles, takeArrived } from '../uploads/take-arrived.ts'
import { prepareUpload } from '../uploads/uploads.ts'

/** Prepared uploads of one kind of image of one game. Preparing one more abandons the oldest. */
const PREPARED_MAX = 8

/** Throws GAME_NOT_FOUND, UPLOAD_INVALID, UPLOAD_TOO_LARGE or QUOTA_REACHED. */
export async function prepareImage(
  ctx: ChangeContext,
  caller: Caller,
  game_id: string,
  kind: GameImageKind,
  { path, mime, content_length }: BodyOf<typeof gameLogoUploadPrepare>,
): Promise<ResponseOf<typeof gameLogoUploadPrepare>> {
  await requireGame(ctx, caller, game_id)
  const files = [{ path, content_length, ...(mime === undefined ? {} : { content_type: mime }) }]
  const pathOf = (): string[] => ['path']
  const { response } = await changes(ctx, { game_id }, async (trx) => {
    await lockGroupOf(trx, game_id)
    await abandonOldest(ctx, trx, game_id, kind)
    const upload = await prepareUpload(ctx, trx, { game_id, kind, files, part_bytes: null, pathOf, reused: new Map() })
    const { upload_id } = upload
    const after = { upload_id, kind, path, content_length }
    return { before: {}, after, response: { upload_id, presigned_request: upload.presigned_requests[0]! } }
  })
  return response
}

async function abandonOldest(
  ctx: Context,
  trx: Transaction<Schema>,
  game_id: string,
  kind: GameImageKind,
): Promise<void> {
  const rows = await trx
    .selectFrom('uploads')
    .select('upload_id')
    .where('game_id', '=', game_id)
    .where('kind', '=', kind)
    .where('complete_ts', 'is', null)
    .orderBy('upload_id', 'desc')
    .offset(PREPARED_MAX - 1)
    .forUpdate()
    .execute()
  await deleteUploads(
    ctx,
    trx,
    rows.map((row) => row.upload_id),
  )
}

/**
 * Idempotent. Throws GAME_NOT_FOUND, UPLOAD_NOT_FOUND (also for an upload of another game, of another kind, or one whose
 * picture has been replaced), UPLOAD_INCOMPLETE, or IMAGE_INVALID with the reason.
 */
export async function completeImage(
  ctx: ChangeContext,
  caller: Caller,
  params: { game_id: string; upload_id: string },
  kind: GameImageKind,
): Promise<void> {
  const { game_id, upload_id } = params
  await requireGame(ctx, caller, game_id)
  const file = await ctx.db
    .selectFrom('uploads')
    .innerJoin('upload_files', 'upload_files.upload_id', 'uploads.upload_id')
    .select(['object_key', 'upload_files.content_length', 'complete_ts'])
    .where('uploads.upload_id', '=', upload_id)
    .where('game_id', '=', game_id)
    .where('kind', '=', kind)
    .executeTakeFirstOrThrow(() => new ApiError('UPLOAD_NOT_FOUND'))
  if (file.complete_ts !== null) return
  const taken = ctx.objects.copies_when_complete ? await takeArrived(ctx, [file.object_key]) : null
  let is_kept = false
  try {
    is_kept = await finish(ctx, params, kind, { file, taken })
  } finally {
    if (taken !== null && !is_kept) await dropTaken(ctx, taken)
  }
}

/** False when another request was faster. */
async function finish(
  ctx: ChangeContext,
  { game_id, upload_id }: { game_id: string; upload_id: string },
  kind: GameImageKind,
  { file, taken }: { file: { object_key: string; content_length: number }; taken: TakenFiles | null },
): Promise<boolean> {
  const object_key = taken?.new_keys.get(file.object_key) ?? file.object_key
  const copy = taken === null ? file : taken.stored.get(object_key)
  if (copy?.content_length !== file.content_length) throw notArrived()
  const { image, digest } = await inspect(ctx, object_key)
  const { sha256, block_hashes } = digest
  const { is_kept } = await changes(ctx, { game_id }, async (trx) => {
    await lockGroupOf(trx, game_id)
    // A file that is being published locks this row in share mode; a later publication finds the upload complete.
    const upload = await trx
      .selectFrom('uploads')
      .select('complete_ts')
      .where('upload_id', '=', upload_id)
      .forUpdate()
      .executeTakeFirstOrThrow(() => new ApiError('UPLOAD_NOT_FOUND'))
    if (upload.complete_ts !== null) return { before: {}, after: {}, is_kept: false }
    if (taken === null && (await ctx.objects.stat(object_key))?.sha256 !== sha256) {
      throw new ApiError(
        'UPLOAD_INCOMPLETE',
        {},
        { message: 'The file was replaced while it was checked; complete again.' },
      )
    }
    if (taken !== null) await keepTaken(ctx, trx, upload_id, taken)
    const complete_ts = new Date(ctx.now())
    const hashes = { sha256, block_hashes, checked_ts: complete_ts }
    await trx.updateTable('upload_files').set(hashes).where('upload_id', '=', upload_id).execute()
    await trx.updateTable('uploads').set({ complete_ts }).where('upload_id', '=', upload_id).execute()
    const replaced = await replaceImage(ctx, trx, { game_id, kind, upload_id, sha256, ...image })
    return { before: { [kind]: replaced }, after: { [kind]: upload_id }, is_kept: true }
  })
  return is_kept
}

/** What has arrived, and the hashes of just these bytes. Throws UPLOAD_INCOMPLETE or IMAGE_INVALID. */
async function inspect(ctx: Context, object_key: string): Promise<{ image: Image; digest: Digest }> {
  try {
    const bytes = await buffer(await ctx.objects.read(object_key))
    return { image: readImage(bytes), digest: digestOf(bytes) }
  } catch (error) {
    if (error instanceof ObjectNotFound) {
      throw notArrived()
    }
    if (!(error instanceof ImageRefused)) throw error
    throw new ApiError('IMAGE_INVALID', { reason: error.reason }, { message: error.message })
  }
}

function notArrived(): ApiError {
  return new ApiError('UPLOAD_INCOMPLETE', {}, { message: 'The file has not arrived.' })
}

type NewImage = Image & { game_id: string; kind: GameImageKind; upload_id: string; sha256: string }

/** Returns the upload of the picture before; null when there was none. */
async function replaceImage(ctx: Context, trx: Transaction<Schema>, image: NewImage): Promise<string | null> {
  const { game_id, kind } = image
  const before = await trx
    .deleteFrom('game_images')
    .where('game_id', '=', game_id)
    .where('kind', '=', kind)
    .returning('upload_id')
    .execute()
  await trx.insertInto('game_images').values(image).execute()
  await deleteUploads(
    ctx,
    trx,
    before.map((row) => row.upload_id),
  )
  return before[0]?.upload_id ?? null
}

export type ImageUrls = { logo_url?: string; banner_url?: string }

/** By game; a game without pictures is absent. */
export async function imageUrls(ctx: Context, game_ids: readonly string[]): Promise<Map<string, ImageUrls>> {
  if (game_ids.length === 0) return new Map()
  const rows = await ctx.db
    .selectFrom('game_images')
    .select(['game_id', 'kind', 'sha256', 'content_type'])
    .where('game_id', 'in', game_ids)
    .execute()
  const urls = new Map<string, ImageUrls>()
  const origin = publicUrl(ctx.config, mediaHost(ctx.config.domains))
  for (const { game_id, kind, ...image } of rows) {
    urls.set(game_id, { ...urls.get(game_id), [`${kind}_url`]: origin + imagePath(image) })
  }
  return urls
}
