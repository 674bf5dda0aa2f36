// What becomes of objects that a reader has marked as damaged:
//
//   marked -> (a second read is as bad) -> set aside, out of reach of every role -> (the right bytes are there again) -> sound
//   marked -> (a second read is right)  -> sound
//
// The right bytes come back in two ways. Another stored file has the same hash, because the file was uploaded again or is
// part of another site: then it is copied. Or the operator puts the file back into its place, from a backup.
import { Readable } from 'node:stream'
import { sql } from 'kysely'
import type { Context } from '../../context.ts'
import { reportDamage } from '../../database/damaged-objects.ts'
import { digestSound, ObjectDamaged, type Recorded, soundBytes } from '../../objects/damage.ts'
import { hasBlockHashes } from '../../objects/digest.ts'
import { ObjectNotFound } from '../../objects/objects.ts'
import { CHANNELS } from '../../wire/channels.ts'

/** Marks that are read at once, the newest first. */
const MARKS_MAX = 1_000

type Pace = (bytes: number) => Promise<void>
/** The owner of a damaged file, for the log. */
type Origin = { game: string; game_id: string; upload_id: string; kind: string; path: string }
type Marked = Recorded & Origin & { is_quarantined: boolean }

/** `which`: `suspected` between two batches of files, so that a scrub checks each quarantined file only once. */
export async function settleMarks(ctx: Context, which: 'all' | 'suspected', pace: Pace): Promise<void> {
  for (const marked of await readMarks(ctx, which)) {
    if (marked.is_quarantined) await repair(ctx, marked, pace)
    else await confirm(ctx, marked, pace)
  }
}

function readMarks(ctx: Context, which: 'all' | 'suspected'): Promise<Marked[]> {
  return ctx.db
    .selectFrom('damaged_objects as mark')
    .innerJoin('upload_files as file', 'file.object_key', 'mark.object_key')
    .innerJoin('uploads', 'uploads.upload_id', 'file.upload_id')
    .innerJoin('games', 'games.game_id', 'uploads.game_id')
    .select(['mark.object_key', 'file.content_length', 'file.sha256', 'file.path', 'uploads.kind'])
    .select(['uploads.upload_id', 'games.game_id', 'games.name_id as game'])
    .select(sql<boolean>`mark.quarantine_ts is not null`.as('is_quarantined'))
    .$if(which === 'suspected', (marks) => marks.where('mark.quarantine_ts', 'is', null))
    .orderBy('mark.found_ts', 'desc')
    .limit(MARKS_MAX)
    .execute()
}

/** Reads a suspected object a second time: a fault of the memory or of a cable is not one of the stored bytes. */
async function confirm(ctx: Context, marked: Marked, pace: Pace): Promise<void> {
  const damage = await damageOfObject(ctx, marked, pace)
  if (damage === null) return accept(ctx, marked, 'a marked object was read without a fault; it is used again')
  // Without a recorded hash nothing says that the bytes are wrong.
  if (damage.reason !== 'no_hash') await ctx.objects.setAside(marked.object_key)
  await ctx.db
    .updateTable('damaged_objects')
    .set({ quarantine_ts: new Date(ctx.now()), reason: damage.reason })
    .where('object_key', '=', marked.object_key)
    .execute()
  ctx.log.error(
    { ...originOf(marked), reason: damage.reason },
    'a stored file is damaged and was set aside: upload the same file again, or put it back from a backup',
  )
  await repair(ctx, marked, pace)
}

async function repair(ctx: Context, marked: Marked, pace: Pace): Promise<void> {
  if (await isThere(ctx, marked.object_key)) {
    const damage = await damageOfObject(ctx, marked, pace)
    if (damage === null) return accept(ctx, marked, 'a damaged file was put back; it is used again')
    if (damage.reason !== 'no_hash') await ctx.objects.setAside(marked.object_key)
  }
  const twin = await findTwin(ctx, marked)
  if (twin === null) return
  try {
    await ctx.objects.put(marked.object_key, Readable.from(paced(ctx, twin, pace)), twin.content_length)
    await accept(ctx, marked, 'a damaged file was repaired from another one with the same hash; it is used again')
  } catch (error) {
    if (!(error instanceof ObjectDamaged)) throw error
    // The twin is damaged as well; once it is marked, the next run takes another one.
    await reportDamage(ctx, error)
  }
}

/** Null: the object is sound, and its block hashes are recorded. */
async function damageOfObject(ctx: Context, marked: Marked, pace: Pace): Promise<ObjectDamaged | null> {
  try {
    const { block_hashes } = await digestSound(ctx.objects, marked, pace)
    // A reader of a block may have been misled by its recorded hash.
    if (marked.kind !== 'build' && hasBlockHashes(marked.content_length)) {
      const { object_key } = marked
      await ctx.db.updateTable('upload_files').set({ block_hashes }).where('object_key', '=', object_key).execute()
    }
    return null
  } catch (error) {
    if (error instanceof ObjectDamaged) return error
    throw error
  }
}

async function accept(ctx: Context, marked: Marked, message: string): Promise<void> {
  await ctx.db.deleteFrom('damaged_objects').where('object_key', '=', marked.object_key).execute()
  await ctx.listener.notify(CHANNELS.damaged_objects)
  ctx.log.warn(originOf(marked), message)
}

/** Another completed file with the same bytes, of any group: the hash says that they are the same. */
async function findTwin(ctx: Context, { object_key, sha256, content_length }: Marked): Promise<Recorded | null> {
  const row = await ctx.db
    .selectFrom('upload_files as file')
    .innerJoin('uploads', 'uploads.upload_id', 'file.upload_id')
    .leftJoin('damaged_objects as mark', 'mark.object_key', 'file.object_key')
    .select(['file.object_key', 'file.content_length', 'file.sha256'])
    .where('file.sha256', '=', sha256)
    .where('file.content_length', '=', content_length)
    .where('file.object_key', '<>', object_key)
    .where('uploads.complete_ts', 'is not', null)
    .where('mark.object_key', 'is', null)
    .limit(1)
    .executeTakeFirst()
  return row ?? null
}

async function* paced(ctx: Context, twin: Recorded, pace: Pace): AsyncGenerator<Uint8Array> {
  for await (const chunk of soundBytes(ctx.objects, twin)) {
    yield chunk
    await pace(chunk.length)
  }
}

async function isThere(ctx: Context, object_key: string): Promise<boolean> {
  try {
    await (await ctx.objects.open(object_key)).close()
    return true
  } catch (error) {
    if (error instanceof ObjectNotFound) return false
    throw error
  }
}

function originOf({ object_key, game, game_id, upload_id, kind, path }: Marked): Origin & { object_key: string } {
  return { object_key, game, game_id, upload_id, kind, path }
}
