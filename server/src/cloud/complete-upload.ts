// Completing an upload: every file is there with the length that was promised, its hash is recorded, and from then on
// nothing changes. A build's archive is looked through first: one that could not be unpacked never becomes complete.
import { ApiError } from '@muster/contract'
import { type Kysely, sql } from 'kysely'
import type { Caller } from '../caller.ts'
import type { Context } from '../context.ts'
import type { Schema } from '../database/schema.ts'
import { checkArchive } from '../objects/archive.ts'
import type { StoredObject } from '../objects/objects.ts'
import { maySee } from './access.ts'

/** Files that are looked at on disk at once. */
const STATS_AT_ONCE_MAX = 16
/** How many of the files that are missing an error names. */
const MISSING_NAMED_MAX = 32

type AwaitedFile = { path: string; object_key: string; content_length: number }
type Arrived = { object_key: string; sha256: string }

/**
 * Idempotent. Throws UPLOAD_NOT_FOUND (an upload of another game is not found either), UPLOAD_INCOMPLETE with the
 * first files that are missing, or ARCHIVE_INVALID.
 */
export async function completeUpload(ctx: Context, caller: Caller, upload_id: string): Promise<void> {
  const upload = await ctx.db
    .selectFrom('uploads')
    .select(['game_id', 'kind', 'complete_ts'])
    .where('upload_id', '=', upload_id)
    .executeTakeFirst()
  if (upload === undefined || !maySee(caller, upload.game_id)) throw new ApiError('UPLOAD_NOT_FOUND')
  if (upload.complete_ts !== null) return

  const files = await awaitedFiles(ctx.db, upload_id)
  const checked = upload.kind === 'build' ? await checkArchives(ctx, files) : new Map<string, string>()
  await ctx.db.transaction().execute(async (trx) => {
    // Files that are being published hold this row shared; whoever comes later finds the upload complete.
    const row = await trx
      .selectFrom('uploads')
      .select('complete_ts')
      .where('upload_id', '=', upload_id)
      .forUpdate()
      .executeTakeFirstOrThrow()
    if (row.complete_ts !== null) return
    const arrived = await requireArrived(ctx, files)
    if (arrived.some(({ object_key, sha256 }) => (checked.get(object_key) ?? sha256) !== sha256)) {
      throw new ApiError(
        'UPLOAD_INCOMPLETE',
        {},
        { message: 'A file was replaced while it was looked at; complete again.' },
      )
    }
    await recordHashes(trx, arrived)
    await trx
      .updateTable('uploads')
      .set({ complete_ts: new Date(ctx.now()) })
      .where('upload_id', '=', upload_id)
      .execute()
  })
}

function awaitedFiles(db: Kysely<Schema>, upload_id: string): Promise<AwaitedFile[]> {
  return db
    .selectFrom('upload_files')
    .select(['path', 'object_key', 'content_length'])
    .where('upload_id', '=', upload_id)
    .orderBy('path')
    .orderBy('byte_offset')
    .execute()
}

/** The hash of every file, by object key, that was found acceptable. */
async function checkArchives(ctx: Context, files: readonly AwaitedFile[]): Promise<Map<string, string>> {
  const hashes = new Map<string, string>()
  for (const { object_key, sha256 } of await requireArrived(ctx, files)) {
    const path = ctx.objects.localPath(object_key)
    if (path === null) throw new Error('An archive can only be looked through on a local disk.')
    await checkArchive(path)
    hashes.set(object_key, sha256)
  }
  return hashes
}

/** Throws UPLOAD_INCOMPLETE. */
async function requireArrived(ctx: Context, files: readonly AwaitedFile[]): Promise<Arrived[]> {
  const arrived: Arrived[] = []
  const missing: string[] = []
  for (let start = 0; start < files.length; start += STATS_AT_ONCE_MAX) {
    const some = files.slice(start, start + STATS_AT_ONCE_MAX)
    const objects = await Promise.all(some.map((file) => ctx.objects.stat(file.object_key)))
    for (const [index, file] of some.entries()) {
      const object: StoredObject | null = objects[index] ?? null
      if (object?.content_length === file.content_length)
        arrived.push({ object_key: file.object_key, sha256: object.sha256 })
      else missing.push(file.path)
    }
  }
  if (missing.length === 0) return arrived
  const message = `${missing.length} of ${files.length} file(s) have not arrived.`
  throw new ApiError(
    'UPLOAD_INCOMPLETE',
    { missing: missing.slice(0, MISSING_NAMED_MAX), missing_count: missing.length },
    { message },
  )
}

async function recordHashes(db: Kysely<Schema>, arrived: readonly Arrived[]): Promise<void> {
  const keys = arrived.map((file) => file.object_key)
  const hashes = arrived.map((file) => file.sha256)
  await sql`
    update upload_files set sha256 = arrived.sha256
    from unnest(${keys}::text[], ${hashes}::text[]) as arrived (object_key, sha256)
    where upload_files.object_key = arrived.object_key
  `.execute(db)
}
