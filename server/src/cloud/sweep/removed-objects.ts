// Objects that are no longer needed. The rows that name them are deleted in the transaction that leaves a note here. The
// bytes are deleted when the note is due, so that readers can finish. A note without bytes is harmless, so a sweep that was
// killed is repeated. An object that is written before it has a row of its own gets a note first: after a crash no object is
// left unknown.
import type { Kysely, Transaction } from 'kysely'
import type { Context } from '../../context.ts'
import { unlessHeld } from '../../database/objects-lock.ts'
import type { Schema } from '../../database/schema.ts'

/** Rows of one insert or delete. */
const KEYS_AT_ONCE_MAX = 1_000
/** Objects that one sweep deletes; the rest is for the next. */
const SWEEP_OBJECTS_MAX = 20_000
/** An object that is written before its row gets one within this time, or is removed. */
const AHEAD_MS_MAX = 24 * 60 * 60_000

/** Longer than the lifetime of a presigned address, and of the longest transfer that began at its end. */
const DIRECT_PUT_MS_MAX = 12 * 60 * 60_000

/** `upload_id`: they were parts of this upload, which is complete. */
export async function noteRemoved(
  ctx: Context,
  db: Kysely<Schema>,
  object_keys: readonly string[],
  upload_id: string | null = null,
): Promise<void> {
  const { removed_objects_ms } = ctx.config.retention
  // A client may still send bytes to a presigned address of the store itself.
  const after_ms = ctx.objects.direct === null ? removed_objects_ms : Math.max(removed_objects_ms, DIRECT_PUT_MS_MAX)
  const due_ts = new Date(ctx.now() + after_ms)
  for (let start = 0; start < object_keys.length; start += KEYS_AT_ONCE_MAX) {
    const rows = object_keys
      .slice(start, start + KEYS_AT_ONCE_MAX)
      .map((object_key) => ({ object_key, due_ts, upload_id }))
    await db
      .insertInto('removed_objects')
      .values(rows)
      .onConflict((conflict) => conflict.column('object_key').doUpdateSet({ due_ts, upload_id }))
      .execute()
  }
}

/** Before objects are written whose rows come later. forgetNotes() belongs into the transaction that makes the rows. */
export async function noteAhead(ctx: Context, object_keys: readonly string[]): Promise<void> {
  const due_ts = new Date(ctx.now() + AHEAD_MS_MAX)
  for (let start = 0; start < object_keys.length; start += KEYS_AT_ONCE_MAX) {
    const some = object_keys.slice(start, start + KEYS_AT_ONCE_MAX)
    const rows = some.map((object_key) => ({ object_key, due_ts, upload_id: null }))
    await ctx.db.insertInto('removed_objects').values(rows).execute()
  }
}

export async function forgetNotes(db: Kysely<Schema>, object_keys: readonly string[]): Promise<void> {
  for (let start = 0; start < object_keys.length; start += KEYS_AT_ONCE_MAX) {
    const some = object_keys.slice(start, start + KEYS_AT_ONCE_MAX)
    await db.deleteFrom('removed_objects').where('object_key', 'in', some).execute()
  }
}

/** Deletes the objects that are due, but none while a backup copies objects. Returns how many. */
export async function sweepRemovedObjects(ctx: Context): Promise<number> {
  let count = 0
  while (count < SWEEP_OBJECTS_MAX) {
    const swept = await unlessHeld(ctx.db, (trx) => sweepSome(ctx, trx))
    count += swept ?? 0
    if (swept === null || swept < KEYS_AT_ONCE_MAX) break
  }
  return count
}

async function sweepSome(ctx: Context, trx: Transaction<Schema>): Promise<number> {
  const rows = await trx
    .selectFrom('removed_objects')
    .select('object_key')
    .where('due_ts', '<=', new Date(ctx.now()))
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('upload_files').whereRef('upload_files.object_key', '=', 'removed_objects.object_key'))),
    )
    .orderBy('due_ts')
    .limit(KEYS_AT_ONCE_MAX)
    .execute()
  const keys = rows.map((row) => row.object_key)
  for (const key of keys) await ctx.objects.delete(key)
  if (keys.length > 0) await trx.deleteFrom('removed_objects').where('object_key', 'in', keys).execute()
  return keys.length
}

/**
 * Deletes uploads with their files. The caller holds the uploads' rows for update, so that no file is being published,
 * and has deleted what they were for.
 */
export async function deleteUploads(
  ctx: Context,
  trx: Transaction<Schema>,
  upload_ids: readonly string[],
): Promise<void> {
  if (upload_ids.length === 0) return
  const files = await trx
    .deleteFrom('upload_files')
    .where('upload_id', 'in', upload_ids)
    .returning('object_key')
    .execute()
  await trx.deleteFrom('uploads').where('upload_id', 'in', upload_ids).execute()
  await noteRemoved(
    ctx,
    trx,
    files.map((file) => file.object_key),
  )
}
