// What of an upload has arrived, so that its sender can go on where it was interrupted.
import { ApiError, type getUpload, type QueryOf, type ResponseOf, UPLOAD_PARTS_LISTED_MAX } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import type { Caller } from '../../tokens/caller.ts'
import { requireGame } from '../access.ts'
import { timestamp } from '../times.ts'
import { arrivedLength } from './take-arrived.ts'
import { presignFiles } from './uploads.ts'

/** Objects whose length is read at once. */
const STATS_AT_ONCE_MAX = 16

/** Throws UPLOAD_NOT_FOUND. */
export async function uploadOf(
  ctx: Context,
  caller: Caller,
  upload_id: string,
  { offset = 0 }: QueryOf<typeof getUpload>,
): Promise<ResponseOf<typeof getUpload>> {
  const upload = await ctx.db
    .selectFrom('uploads')
    .select(['game_id', 'kind', 'content_length', 'create_ts', 'complete_ts'])
    .where('upload_id', '=', upload_id)
    .where('kind', 'in', ['build', 'site'])
    .executeTakeFirstOrThrow(() => new ApiError('UPLOAD_NOT_FOUND'))
  await requireGame(ctx, caller, upload.game_id, 'UPLOAD_NOT_FOUND')
  const own_files = ctx.db.selectFrom('upload_files').where('upload_id', '=', upload_id).where('is_packed', '=', false)
  const { part_count } = await own_files
    .select((query) => query.fn.countAll<number>().as('part_count'))
    .executeTakeFirstOrThrow()
  const listed = await own_files
    .select(['path', 'byte_offset', 'content_length', 'content_type', 'object_key', 'sha256'])
    .orderBy('path')
    .orderBy('byte_offset')
    .offset(offset)
    .limit(UPLOAD_PARTS_LISTED_MAX)
    .execute()
  const complete = upload.complete_ts !== null
  const have_arrived = complete ? listed.map(() => true) : await haveArrived(ctx, listed)
  const missing = listed.filter((_, index) => !have_arrived[index])
  return {
    upload_id,
    kind: upload.kind as 'build' | 'site',
    content_length: upload.content_length,
    create_ts: timestamp(upload.create_ts),
    complete,
    part_count: Number(part_count),
    parts: listed.map(({ path, byte_offset, content_length, sha256 }, index) => ({
      ...{ path, byte_offset, content_length, is_arrived: have_arrived[index] === true },
      ...(complete && sha256 !== null ? { sha256 } : {}),
    })),
    presigned_requests: await presignFiles(
      ctx,
      missing,
      listed.some(({ byte_offset }) => byte_offset > 0),
    ),
  }
}

/** An object becomes visible with its last byte, so its length says that the part is whole. */
async function haveArrived(
  ctx: Context,
  parts: readonly { object_key: string; content_length: number }[],
): Promise<boolean[]> {
  const have_arrived: boolean[] = []
  for (let start = 0; start < parts.length; start += STATS_AT_ONCE_MAX) {
    const some = parts.slice(start, start + STATS_AT_ONCE_MAX)
    const lengths = await Promise.all(some.map((part) => arrivedLength(ctx, part.object_key)))
    have_arrived.push(...lengths.map((length, index) => length === some[index]!.content_length))
  }
  return have_arrived
}
