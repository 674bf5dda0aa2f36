// In a store whose files are copied when an upload completes (`copies_when_complete`), each part is copied to a key that nobody
// else knows. So no presigned address, and no write that the service carries out late, reaches a completed file. The rows get
// the new keys in the transaction that completes the upload.
import { sql, type Transaction } from 'kysely'
import type { Context } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'
import { newObjectKey, ObjectNotFound, type StoredObject } from '../../objects/objects.ts'
import { forgetNotes, noteAhead, noteRemoved } from '../sweep/removed-objects.ts'

/** Objects that one upload copies at the same time. */
const COPIES_AT_ONCE_MAX = 16

/** `new_keys`: by the key of the row. `stored`: by the new key; null for a part that has not arrived. */
export type TakenFiles = { new_keys: ReadonlyMap<string, string>; stored: ReadonlyMap<string, StoredObject | null> }

/** Copies are swept after a day unless keepTaken() makes them the files. */
export async function takeArrived(ctx: Context, object_keys: readonly string[]): Promise<TakenFiles> {
  const new_keys = new Map(object_keys.map((object_key) => [object_key, newObjectKey()]))
  await noteAhead(ctx, [...new_keys.values()])
  const stored = new Map<string, StoredObject | null>()
  for (let start = 0; start < object_keys.length; start += COPIES_AT_ONCE_MAX) {
    const some = object_keys.slice(start, start + COPIES_AT_ONCE_MAX)
    await Promise.all(
      some.map(async (object_key) => {
        const new_key = new_keys.get(object_key)!
        stored.set(new_key, await takeOne(ctx, object_key, new_key))
      }),
    )
  }
  return { new_keys, stored }
}

/** What a client sent to the store itself is newer than what came through the api. */
async function takeOne(ctx: Context, object_key: string, new_key: string): Promise<StoredObject | null> {
  const direct = (await ctx.objects.direct?.take(object_key, new_key)) ?? null
  if (direct !== null) return direct
  try {
    return await ctx.objects.copy(object_key, new_key)
  } catch (error) {
    if (error instanceof ObjectNotFound) return null
    throw error
  }
}

/** Makes the copies the files, in the transaction that completes the upload. */
export async function keepTaken(
  ctx: Context,
  trx: Transaction<Schema>,
  upload_id: string,
  { new_keys }: TakenFiles,
): Promise<void> {
  if (new_keys.size === 0) return
  const [old_list, new_list] = [[...new_keys.keys()], [...new_keys.values()]]
  await sql`
    update upload_files set object_key = taken.new_key
    from unnest(${old_list}::text[], ${new_list}::text[]) as taken (old_key, new_key)
    where upload_id = ${upload_id} and upload_files.object_key = taken.old_key
  `.execute(trx)
  await forgetNotes(trx, new_list)
  await noteRemoved(ctx, trx, old_list, upload_id)
}

/** Removes copies that no upload keeps. */
export async function dropTaken(ctx: Context, { new_keys }: TakenFiles): Promise<void> {
  await noteRemoved(ctx, ctx.db, [...new_keys.values()])
}

/** The length of what has arrived for this key, by the api or directly; null: nothing. */
export async function arrivedLength(ctx: Context, object_key: string): Promise<number | null> {
  const direct = (await ctx.objects.direct?.arrivedLength(object_key)) ?? null
  return direct ?? (await ctx.objects.stat(object_key))?.content_length ?? null
}
