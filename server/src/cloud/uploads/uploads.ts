// Uploads: prepared -> (files arrive, in any order, again if need be) -> complete. A prepared upload promises paths and
// lengths; it becomes complete when every file is there with its length, all at once, and never changes afterwards.
// The row of the upload is the lock between the two: a file is published only while the row is held and incomplete.
import {
  ApiError,
  MULTIPART_BYTES_MIN,
  PART_BYTES,
  PARTS_MAX,
  type PrepareFile,
  type PresignedRequest,
} from '@musterhost/contract'
import type { Kysely, Transaction } from 'kysely'
import type { Static } from 'typebox'
import { mainUrl } from '../../config/addresses.ts'
import type { Context } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'
import { newId } from '../../ids.ts'
import { newObjectKey } from '../../objects/objects.ts'
import { presignPut } from '../../objects/presign.ts'
import { throwErrors } from '../field-errors.ts'
import { lockGroupOf, requireQuota } from '../quotas.ts'
import { forgetNotes } from '../sweep/removed-objects.ts'
import { diskFull, isDiskFull, requireDisk } from './disk.ts'
import { checkPaths } from './paths.ts'
import type { ReusedFiles } from './stored-contents.ts'

/** Totals must stay below these, bytes. */
const BYTES_LIMITS = { site: 1_000_000_000, build: 8_000_000_000, logo: 5_000_000, banner: 10_000_000 } as const
const PRESIGNED_LIFETIME_MS = 60 * 60_000
const PRESIGNED_PARTS_LIFETIME_MS = 6 * 60 * 60_000
/** PostgreSQL takes 65,535 parameters in a statement, and a file has eight. */
const ROWS_PER_INSERT_MAX = 5_000

type File = Static<typeof PrepareFile>
type Presigned = Static<typeof PresignedRequest>

export type UploadPlan = {
  game_id: string
  kind: keyof typeof BYTES_LIMITS
  files: readonly File[]
  /** Longer files arrive in parts of this length. Null: each file is sent as a whole. */
  part_bytes: number | null
  /** The files whose content the group stores already (stored-contents.ts). */
  reused: ReusedFiles
  /** Where the path of a file stands in the request, for the error that names it. */
  pathOf: (index: number) => string[]
}

/**
 * Throws what is wrong with the files themselves: UPLOAD_INVALID (names, in `metadata.errors`) or UPLOAD_TOO_LARGE.
 * Apart from the database, so that it can be asked before a transaction is opened.
 */
export function checkUpload(plan: Omit<UploadPlan, 'reused'>): { content_length: number } {
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
  if (plan.part_bytes !== null && plan.kind === 'build' && content_length < MULTIPART_BYTES_MIN) {
    const message = `A file of ${content_length} bytes is not uploaded in parts; from ${MULTIPART_BYTES_MIN} on it may be.`
    const path = [...plan.pathOf(0).slice(0, -1), 'content_length']
    throw new ApiError('UPLOAD_INVALID', { errors: [{ path, reason: 'too_low', message }] }, { message })
  }
  return { content_length }
}

/** Throws VALIDATION_ERROR: `part_bytes` is for uploads in parts. */
export function partBytesOf(body: { multipart_upload?: boolean; part_bytes?: number }): number | null {
  const { multipart_upload = false, part_bytes } = body
  if (multipart_upload) return part_bytes ?? PART_BYTES
  if (part_bytes !== undefined) {
    const message = 'Without multipart_upload no file is sent in parts. Set multipart_upload to true.'
    throwErrors([{ path: ['part_bytes'], reason: 'not_allowed', message }])
  }
  return null
}

/** Where the parts of a file begin, and how long they are. */
function partsOf(file: File, part_bytes: number | null): { byte_offset: number; content_length: number }[] {
  const { content_length } = file
  if (part_bytes === null || content_length <= part_bytes) return [{ byte_offset: 0, content_length }]
  const count = Math.ceil(content_length / part_bytes)
  if (count > PARTS_MAX) throw new Error(`A file below the limits has ${count} parts.`)
  return Array.from({ length: count }, (_, index) => {
    const byte_offset = index * part_bytes
    return { byte_offset, content_length: Math.min(part_bytes, content_length - byte_offset) }
  })
}

/**
 * Inserts the upload and presigns its files, in their order, part by part. It holds the game's group until the
 * transaction ends. Throws as checkUpload does, GAME_NOT_FOUND, QUOTA_REACHED, or API_NOT_AVAILABLE when the disk has no
 * room.
 */
export async function prepareUpload(
  ctx: Context,
  trx: Transaction<Schema>,
  plan: UploadPlan,
): Promise<{ upload_id: string; presigned_requests: Presigned[] }> {
  const { content_length } = checkUpload(plan)
  const sent_bytes = plan.files.reduce(
    (sum, file, index) => sum + (plan.reused.has(index) ? 0 : file.content_length),
    0,
  )
  await requireDisk(ctx, sent_bytes)
  const group_id = await lockGroupOf(trx, plan.game_id)
  if (plan.kind === 'build') await requireQuota(ctx, trx, group_id, 'builds')
  if (plan.kind === 'site') await requireQuota(ctx, trx, group_id, 'sites')
  await requireQuota(ctx, trx, group_id, 'bytes', content_length)
  const now = ctx.now()
  const upload_id = newId(now)
  const files = plan.files.flatMap((file, index) => {
    const reused_key = plan.reused.get(index)
    return partsOf(file, reused_key === undefined ? plan.part_bytes : null).map((part) => ({
      upload_id,
      path: file.path,
      ...part,
      content_type: file.content_type ?? null,
      object_key: reused_key ?? newObjectKey(),
      sha256: null,
      expected_sha256: file.sha256 ?? null,
    }))
  })
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
  const reused_keys = new Set(plan.reused.values())
  await forgetNotes(trx, [...reused_keys])
  const sent = files.filter(({ object_key }) => !reused_keys.has(object_key))
  return { upload_id, presigned_requests: await presignFiles(ctx, sent, plan.part_bytes !== null) }
}

type SentFile = {
  path: string
  byte_offset: number
  content_length: number
  content_type: string | null
  object_key: string
}

/** The PUT requests of these files or parts, valid from now on: at the api, or at the store itself. */
export async function presignFiles(ctx: Context, files: readonly SentFile[], in_parts: boolean): Promise<Presigned[]> {
  const base_url = mainUrl(ctx.config)
  const lifetime_ms = in_parts ? PRESIGNED_PARTS_LIFETIME_MS : PRESIGNED_LIFETIME_MS
  const expire_ms = ctx.now() + lifetime_ms
  const { direct } = ctx.objects
  const urlOf = async ({ object_key, content_length, content_type }: SentFile): Promise<string> =>
    direct === null
      ? presignPut(ctx.keys, { base_url, object_key, content_length, content_type, expire_ms })
      : direct.presignPut({ key: object_key, content_length, content_type, lifetime_ms })
  const presigned: Presigned[] = []
  for (const file of files) {
    const { path, byte_offset, content_length } = file
    presigned.push({ path, url: await urlOf(file), byte_offset, content_length })
  }
  return presigned
}

/**
 * Stores the bytes of one presigned PUT. Throws UPLOAD_NOT_FOUND when no upload waits for this object, UPLOAD_COMPLETE
 * when its upload is complete, API_NOT_AVAILABLE when the disk is full, and what Objects.put throws.
 */
export async function storeObject(ctx: Context, object: AwaitedObject, body: AsyncIterable<Uint8Array>): Promise<void> {
  const within = async (publish: () => Promise<unknown>): Promise<void> => {
    if (ctx.objects.copies_when_complete) {
      // Sending to a bucket takes too long for a lock, and this key is not the one of the completed file.
      requireIncomplete(await awaiting(ctx.db, object).executeTakeFirst())
      await publish()
      return
    }
    await ctx.db.transaction().execute(async (trx) => {
      // Shared with other files of the upload; completing it waits until they have been published, or goes first.
      requireIncomplete(await awaiting(trx, object).forShare('uploads').executeTakeFirst())
      await publish()
    })
  }
  try {
    await ctx.objects.put(object.object_key, body, object.content_length, { within })
  } catch (error) {
    throw isDiskFull(error) ? diskFull() : error
  }
}

/**
 * The group whose file this will be. Throws as storeObject does, before a byte of the body is read. By the time of
 * publish it may be otherwise.
 */
export async function requireAwaited(ctx: Context, object: AwaitedObject): Promise<{ group_id: string }> {
  const row = await awaiting(ctx.db, object)
    .innerJoin('games', 'games.game_id', 'uploads.game_id')
    .select('games.developer_group_id as group_id')
    .executeTakeFirst()
  if (row === undefined && (await wasPart(ctx.db, object))) throw new ApiError('UPLOAD_COMPLETE')
  requireIncomplete(row)
  return { group_id: row!.group_id }
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

/** Whether the object was a part of an upload that is complete now, with its parts joined. */
async function wasPart(db: Kysely<Schema>, { object_key }: AwaitedObject): Promise<boolean> {
  const row = await db
    .selectFrom('removed_objects')
    .innerJoin('uploads', 'uploads.upload_id', 'removed_objects.upload_id')
    .select('uploads.upload_id')
    .where('removed_objects.object_key', '=', object_key)
    .executeTakeFirst()
  return row !== undefined
}

function requireIncomplete(upload: { complete_ts: Date | null } | undefined): void {
  if (upload === undefined) throw new ApiError('UPLOAD_NOT_FOUND')
  if (upload.complete_ts !== null) throw new ApiError('UPLOAD_COMPLETE')
}
