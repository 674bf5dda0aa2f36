// Files that arrived in parts become one object each, so that nobody after this knows of parts. The parts are copied: a
// build is read by offset, unpacked and hashed as one, and a crash in the middle leaves the parts as they were.
import { Readable } from 'node:stream'
import type { Transaction } from 'kysely'
import type { Context } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'
import { soundBytes } from '../../objects/damage.ts'
import { newObjectKey, type StoredObject } from '../../objects/objects.ts'
import { forgetNotes, noteAhead, noteRemoved } from '../sweep/removed-objects.ts'
import { requireDisk } from './disk.ts'

export type StoredPart = {
  path: string
  byte_offset: number
  content_length: number
  content_type: string | null
  object_key: string
  /** As its sender announced it, of the whole file. */
  expected_sha256: string | null
}

/** A file with the object that holds all of it. `parts` are in order; of a whole file there is one. */
export type WholeFile = { path: string; object_key: string; stored: StoredObject; parts: readonly StoredPart[] }

/**
 * Joins the parts of one file. `arrived` has the hash of each part: rejects with ObjectDamaged when a part is not what
 * arrived. What is written is swept unless replaceParts() keeps it.
 */
export async function joinParts(
  ctx: Context,
  parts: readonly StoredPart[],
  arrived: ReadonlyMap<string, string>,
): Promise<WholeFile> {
  const { path } = parts[0]!
  let content_length = 0
  for (const part of parts) {
    if (part.byte_offset !== content_length) throw new Error(`${path} has a gap at byte ${content_length}.`)
    content_length += part.content_length
  }
  await requireDisk(ctx, content_length)
  const object_key = newObjectKey()
  await noteAhead(ctx, [object_key])
  try {
    const stored = await ctx.objects.put(object_key, Readable.from(bytesOf(ctx, parts, arrived)), content_length)
    return { path, object_key, stored, parts }
  } catch (error) {
    await forgetNotes(ctx.db, [object_key])
    throw error
  }
}

/** Makes the one object the file: the rows of its parts become one row. */
export async function replaceParts(
  ctx: Context,
  trx: Transaction<Schema>,
  upload_id: string,
  { path, object_key, stored, parts }: WholeFile,
): Promise<void> {
  const { content_length } = stored
  await trx
    .deleteFrom('upload_files')
    .where('upload_id', '=', upload_id)
    .where('path', '=', path)
    .where('byte_offset', '>', 0)
    .execute()
  await trx
    .updateTable('upload_files')
    .set({ object_key, content_length })
    .where('upload_id', '=', upload_id)
    .where('path', '=', path)
    .execute()
  await forgetNotes(trx, [object_key])
  await noteRemoved(
    ctx,
    trx,
    parts.map((part) => part.object_key),
    upload_id,
  )
}

async function* bytesOf(
  ctx: Context,
  parts: readonly StoredPart[],
  arrived: ReadonlyMap<string, string>,
): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield* soundBytes(ctx.objects, { ...part, sha256: arrived.get(part.object_key) ?? null })
}
