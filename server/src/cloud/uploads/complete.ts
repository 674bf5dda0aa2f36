// Completes an upload: every file is present with its announced length, parts are joined, hashes are recorded, and from then
// on nothing changes. A long file of a site is read once more for the hashes of its blocks, by which the edge verifies parts
// of the file. Its long texts are compressed (pack-texts.ts). A build is checked first (check-build.ts): what could not
// be unpacked never becomes complete. In a bucket, all of this is done with copies under new keys (take-arrived.ts).
import { ApiError } from '@musterhost/contract'
import { type Kysely, sql } from 'kysely'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'
import { digestSound, ObjectDamaged, type Recorded } from '../../objects/damage.ts'
import { hasBlockHashes } from '../../objects/digest.ts'
import type { StoredObject } from '../../objects/objects.ts'
import type { Encoding } from '../../objects/pack.ts'
import type { Caller } from '../../tokens/caller.ts'
import { requireGame } from '../access.ts'
import { noteRemoved } from '../sweep/removed-objects.ts'
import type { CheckedBuild, checkBuild } from './check-build.ts'
import { checkEncodings } from './check-encodings.ts'
import { diskFull, isDiskFull } from './disk.ts'
import { joinParts, replaceParts, type StoredPart, type WholeFile } from './join-parts.ts'
import { insertPacked, type PackedFile, type PackSource, type TextPacker } from './pack-texts.ts'
import { arrivedLength, dropTaken, keepTaken, type TakenFiles, takeArrived } from './take-arrived.ts'

/** Files whose size is read from the store at once. */
const STATS_AT_ONCE_MAX = 16
/** How many of the files that are missing an error names. */
const MISSING_NAMED_MAX = 32

/** The hashes of what arrived, by object key. */
type Hashes = ReadonlyMap<string, string>
/** The hashes of the blocks of long files, by object key. */
type BlockHashes = ReadonlyMap<string, Buffer>

/**
 * Idempotent. Throws UPLOAD_NOT_FOUND (an upload of another game is not found either),
 * UPLOAD_INCOMPLETE with the first files that are missing, UPLOAD_INVALID (check-encodings.ts), ARCHIVE_INVALID, or API_NOT_AVAILABLE when there is no room to
 * join parts or to compress texts.
 */
export async function completeUpload(
  ctx: ChangeContext,
  packer: TextPacker,
  caller: Caller,
  upload_id: string,
): Promise<void> {
  const upload = await ctx.db
    .selectFrom('uploads')
    .leftJoin('builds', 'builds.upload_id', 'uploads.upload_id')
    .select(['uploads.game_id', 'uploads.kind', 'uploads.complete_ts', 'builds.kind as build_kind'])
    .where('uploads.upload_id', '=', upload_id)
    // Pictures are completed by operations of their own.
    .where('uploads.kind', 'in', ['build', 'site'])
    .executeTakeFirstOrThrow(() => new ApiError('UPLOAD_NOT_FOUND'))
  await requireGame(ctx, caller, upload.game_id, 'UPLOAD_NOT_FOUND')
  if (upload.complete_ts !== null) return

  const awaited = await awaitedParts(ctx.db, upload_id)
  const taken = ctx.objects.copies_when_complete ? await takeAll(ctx, awaited) : null
  const joined: WholeFile[] = []
  const packed: PackedFile[] = []
  let is_kept = false
  try {
    const parts = taken === null ? awaited : renamed(awaited, taken)
    const before = requireAll(parts, taken === null ? await arrivedObjects(ctx, parts) : taken.stored)
    for (const file of filesOf(parts)) if (file.length > 1) joined.push(await join(ctx, file, before))
    requireExpected(parts, before, joined)
    const whole_files = wholeFiles(parts, before, joined)
    const build = upload.build_kind === null ? null : await checkFirst(ctx, upload.build_kind, whole_files)
    const whole = upload.kind === 'site' ? whole_files : []
    const encodings = await checkEncodings(ctx, whole).catch((error: unknown) => Promise.reject(orSendAgain(error)))
    const block_hashes = await hashBlocks(ctx, whole)
    const plain = whole.filter(({ object_key }) => !encodings.has(object_key))
    await packer.pack(ctx, plain, packed).catch((error: unknown) => Promise.reject(orSendAgain(error)))
    const is_read = ({ expected_sha256, object_key }: StoredPart): boolean =>
      upload.build_kind !== null ||
      expected_sha256 !== null ||
      block_hashes.has(object_key) ||
      encodings.has(object_key)
    const looked_at = [...parts.filter(is_read), ...joined.flatMap((file) => file.parts)]
    const target = { upload_id, game_id: upload.game_id, kind: upload.kind }
    const seen = { looked_at, before, block_hashes, encodings, build, taken }
    is_kept = await finish(ctx, target, parts, seen, { joined, packed })
  } finally {
    if (!is_kept) {
      if (taken !== null) await dropTaken(ctx, taken)
      const object_keys = [...joined, ...packed].map((file) => file.object_key)
      await noteRemoved(ctx, ctx.db, object_keys)
    }
  }
}

/** False when somebody else was faster. */
async function finish(
  ctx: ChangeContext,
  { upload_id, game_id, kind }: { upload_id: string; game_id: string; kind: string },
  parts: readonly StoredPart[],
  seen: {
    looked_at: readonly StoredPart[]
    before: Hashes
    block_hashes: BlockHashes
    encodings: ReadonlyMap<string, Encoding>
    build: CheckedBuild | null
    taken: TakenFiles | null
  },
  { joined, packed }: { joined: readonly WholeFile[]; packed: readonly PackedFile[] },
): Promise<boolean> {
  const { is_kept } = await changes(ctx, { game_id }, async (trx) => {
    // Files that are being published lock this row in share mode; a later publication finds the upload complete.
    const row = await trx
      .selectFrom('uploads')
      .select('complete_ts')
      .where('upload_id', '=', upload_id)
      .forUpdate()
      .executeTakeFirstOrThrow(() => new ApiError('UPLOAD_NOT_FOUND'))
    if (row.complete_ts !== null) return { before: {}, after: {}, is_kept: false }
    // Nobody but this request knows the keys of files that it has taken.
    const hashes = new Map(seen.taken === null ? requireAll(parts, await arrivedObjects(ctx, parts)) : seen.before)
    if (seen.looked_at.some(({ object_key }) => hashes.get(object_key) !== seen.before.get(object_key))) {
      const message = 'A file was replaced while it was checked; complete again.'
      throw new ApiError('UPLOAD_INCOMPLETE', {}, { message })
    }
    if (seen.taken !== null) await keepTaken(ctx, trx, upload_id, seen.taken)
    for (const file of joined) {
      await replaceParts(ctx, trx, upload_id, file)
      hashes.set(file.object_key, file.stored.sha256)
    }
    const complete_ts = new Date(ctx.now())
    await recordHashes(trx, hashes, complete_ts)
    for (const [object_key, block_hashes] of seen.block_hashes) {
      await trx.updateTable('upload_files').set({ block_hashes }).where('object_key', '=', object_key).execute()
    }
    for (const [object_key, content_encoding] of seen.encodings) {
      await trx.updateTable('upload_files').set({ content_encoding }).where('object_key', '=', object_key).execute()
    }
    if (seen.build !== null) {
      const { file_list, image } = seen.build
      const build = { file_list, image: image === null ? null : JSON.stringify(image) }
      await trx.updateTable('builds').set(build).where('upload_id', '=', upload_id).execute()
    }
    await insertPacked(trx, upload_id, packed, complete_ts)
    await trx.updateTable('uploads').set({ complete_ts }).where('upload_id', '=', upload_id).execute()
    return { before: {}, after: { upload_id, kind, complete_ts }, is_kept: true }
  })
  return is_kept
}

function awaitedParts(db: Kysely<Schema>, upload_id: string): Promise<StoredPart[]> {
  return db
    .selectFrom('upload_files')
    .select(['path', 'byte_offset', 'object_key', 'content_length', 'content_type', 'expected_sha256'])
    .where('upload_id', '=', upload_id)
    .orderBy('path')
    .orderBy('byte_offset')
    .execute()
}

/** Throws UPLOAD_INCOMPLETE, and takes nothing, while a part is missing. */
async function takeAll(ctx: Context, parts: readonly StoredPart[]): Promise<TakenFiles> {
  const lengths = new Map<string, { content_length: number; sha256: string } | null>()
  await forSome(parts, async ({ object_key }) => {
    const content_length = await arrivedLength(ctx, object_key)
    lengths.set(object_key, content_length === null ? null : { content_length, sha256: '' })
  })
  requireAll(parts, lengths)
  return takeArrived(
    ctx,
    parts.map(({ object_key }) => object_key),
  )
}

/** The parts under the keys of their copies. */
function renamed(parts: readonly StoredPart[], { new_keys }: TakenFiles): StoredPart[] {
  return parts.map((part) => ({ ...part, object_key: new_keys.get(part.object_key)! }))
}

/** A build has one file. */
async function checkFirst(
  ctx: Context,
  kind: Parameters<typeof checkBuild>[1],
  [file]: readonly PackSource[],
): Promise<CheckedBuild> {
  // The readers of archives are needed for uploads only.
  const check = await import('./check-build.ts')
  return check.checkBuild(ctx, kind, file!).catch((error: unknown) => Promise.reject(orSendAgain(error)))
}

function filesOf(parts: readonly StoredPart[]): StoredPart[][] {
  return [...Map.groupBy(parts, (part) => part.path).values()]
}

async function join(ctx: Context, parts: readonly StoredPart[], before: Hashes): Promise<WholeFile> {
  try {
    return await joinParts(ctx, parts, before)
  } catch (error) {
    throw isDiskFull(error) ? diskFull() : orSendAgain(error)
  }
}

/** Throws UPLOAD_INCOMPLETE when a file is not the one whose hash was announced. */
function requireExpected(parts: readonly StoredPart[], before: Hashes, joined: readonly WholeFile[]): void {
  const expected = new Map(parts.map(({ path, expected_sha256 }) => [path, expected_sha256]))
  const wrong = wholeFiles(parts, before, joined).filter(({ path, sha256 }) => {
    const announced = expected.get(path) ?? null
    return announced !== null && announced !== sha256
  })
  if (wrong.length === 0) return
  const message = `${wrong.length} file(s) have another SHA-256 than was announced. Send them again, and complete again.`
  const missing = wrong.slice(0, MISSING_NAMED_MAX).map(({ path }) => path)
  throw new ApiError('UPLOAD_INCOMPLETE', { missing, missing_count: wrong.length }, { message })
}

/** Every file of the upload with the hash of what arrived. */
function wholeFiles(parts: readonly StoredPart[], before: Hashes, joined: readonly WholeFile[]): PackSource[] {
  const whole = filesOf(parts).flatMap((file) => (file.length === 1 ? file : []))
  return [
    ...whole.map((part) => ({ ...part, sha256: before.get(part.object_key) ?? null })),
    ...joined.map((file) => ({ ...file, ...file.stored, content_type: file.parts[0]!.content_type })),
  ]
}

/** Hashes the blocks of files of more than one block. Throws UPLOAD_INCOMPLETE for a file that is not what arrived. */
async function hashBlocks(ctx: Context, recorded: readonly Recorded[]): Promise<BlockHashes> {
  const block_hashes = new Map<string, Buffer>()
  for (const file of recorded.filter(({ content_length }) => hasBlockHashes(content_length))) {
    const digest = await digestSound(ctx.objects, file).catch((error: unknown) => Promise.reject(orSendAgain(error)))
    if (digest.block_hashes !== null) block_hashes.set(file.object_key, digest.block_hashes)
  }
  return block_hashes
}

/** Nothing has been promised for an upload that is not complete: its sender still has the bytes. */
function orSendAgain(error: unknown): unknown {
  if (!(error instanceof ObjectDamaged)) return error
  const message =
    'A file is not what arrived: it was replaced, or the disk has damaged it. Send it again, and complete again.'
  return new ApiError('UPLOAD_INCOMPLETE', {}, { message })
}

async function arrivedObjects(ctx: Context, parts: readonly StoredPart[]): Promise<Map<string, StoredObject | null>> {
  const arrived = new Map<string, StoredObject | null>()
  await forSome(parts, async ({ object_key }) => {
    arrived.set(object_key, await ctx.objects.stat(object_key))
  })
  return arrived
}

/** STATS_AT_ONCE_MAX of them at a time. */
async function forSome(parts: readonly StoredPart[], check: (part: StoredPart) => Promise<void>): Promise<void> {
  for (let start = 0; start < parts.length; start += STATS_AT_ONCE_MAX) {
    await Promise.all(parts.slice(start, start + STATS_AT_ONCE_MAX).map(check))
  }
}

/** The hashes of all parts. Throws UPLOAD_INCOMPLETE when one is missing or has another length. */
function requireAll(parts: readonly StoredPart[], objects: ReadonlyMap<string, StoredObject | null>): Hashes {
  const arrived = new Map<string, string>()
  const missing: StoredPart[] = []
  for (const part of parts) {
    const object = objects.get(part.object_key) ?? null
    if (object?.content_length === part.content_length) arrived.set(part.object_key, object.sha256)
    else missing.push(part)
  }
  if (missing.length === 0) return arrived
  const message = `${missing.length} of ${parts.length} file(s) or parts have not arrived.`
  const named = missing.slice(0, MISSING_NAMED_MAX)
  throw new ApiError(
    'UPLOAD_INCOMPLETE',
    {
      missing: named.map(({ path }) => path),
      missing_parts: named.map(({ path, byte_offset }) => ({ path, byte_offset })),
      missing_count: missing.length,
    },
    { message },
  )
}

async function recordHashes(db: Kysely<Schema>, arrived: Hashes, checked_ts: Date): Promise<void> {
  await sql`
    update upload_files set sha256 = arrived.sha256, checked_ts = ${checked_ts}
    from unnest(${[...arrived.keys()]}::text[], ${[...arrived.values()]}::text[]) as arrived (object_key, sha256)
    where upload_files.object_key = arrived.object_key
  `.execute(db)
}
