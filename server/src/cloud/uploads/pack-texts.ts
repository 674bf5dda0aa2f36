// The long text files of a site, compressed while its upload is completed, so that the first visitor gets them compressed.
// Each compressed form is an object and a row of upload_files (`is_packed`): backups, checks and deletion treat it as every
// other file. An object is noted in removed_objects before it is written and forgotten in the transaction that makes
// its row: after a crash it is swept, and the upload is completed again.
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { ApiError } from '@musterhost/contract'
import { contentTypeOf, isCompressible } from '@musterhost/contract/site'
import type { Transaction } from 'kysely'
import type { Context } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'
import { Semaphore } from '../../flow/semaphore.ts'
import { type Recorded, soundBytes } from '../../objects/damage.ts'
import { createDigest, type Digest } from '../../objects/digest.ts'
import { newObjectKey } from '../../objects/objects.ts'
import { createPackStream, type Encoding, PACKED_ENDINGS, PACKED_IN_MEMORY_BYTES_MAX } from '../../objects/pack.ts'
import { forgetNotes, noteAhead } from '../sweep/removed-objects.ts'
import { requireDisk } from './disk.ts'

/** A longer file is sent as it was uploaded: its compressed form is held in memory until its length is known. */
const PACKED_FILE_BYTES_MAX = 64 * 1024 * 1024
/** Bytes of the files of one upload that are compressed, before compression: the developer waits for it. */
const PACKED_UPLOAD_BYTES_MAX = 256 * 1024 * 1024
/** A compressed form that is not at least this much smaller is not kept. */
const SAVING_MIN = 0.25
/** Uploads that wait until the files of another one are compressed: one at a time in a process, for games run here too. */
const WAITING_MAX = 16
const RETRY_AFTER_S = 10

/** A whole file of the upload. */
export type PackSource = Recorded & { path: string; content_type: string | null }

export type PackedFile = { path: string; object_key: string; digest: Digest }

export class TextPacker {
  readonly #turns = new Semaphore({ at_once_max: 1, waiting_max: WAITING_MAX })

  /**
   * Stores the compressed forms that the site does not have itself, and adds each to `packed` as soon as it is stored: the
   * caller keeps them all with insertPacked(), or notes them as removed. Throws ObjectDamaged for a file that is not what
   * arrived, and API_NOT_AVAILABLE when too many uploads wait or the disk is nearly full.
   */
  async pack(ctx: Context, files: readonly PackSource[], packed: PackedFile[]): Promise<void> {
    const wanted = chooseFiles(files)
    if (wanted.length === 0) return
    if ((await this.#turns.acquire()) !== 'acquired') {
      throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: RETRY_AFTER_S })
    }
    try {
      for (const { source, encoding } of wanted) {
        const file = await packOne(ctx, source, encoding)
        if (file !== null) packed.push(file)
      }
    } finally {
      this.#turns.release()
    }
  }
}

/** The shortest files first, so that one large file does not use up what the upload may have. */
function chooseFiles(files: readonly PackSource[]): { source: PackSource; encoding: Encoding }[] {
  const paths = new Set(files.map(({ path }) => path))
  let left_bytes = PACKED_UPLOAD_BYTES_MAX
  return files
    .filter(isWorthPacking)
    .sort((a, b) => a.content_length - b.content_length)
    .flatMap((source) => {
      left_bytes -= source.content_length
      if (left_bytes < 0) return []
      const encodings = (['br', 'gzip'] as const).filter(
        (encoding) => !paths.has(`${source.path}${PACKED_ENDINGS[encoding]}`),
      )
      return encodings.map((encoding) => ({ source, encoding }))
    })
}

function isWorthPacking({ path, content_type: uploaded, content_length }: PackSource): boolean {
  if (content_length <= PACKED_IN_MEMORY_BYTES_MAX || content_length > PACKED_FILE_BYTES_MAX) return false
  const { content_type, content_encoding } = contentTypeOf(path, uploaded)
  return content_encoding === null && isCompressible(content_type)
}

/** Null: it would not save enough. */
async function packOne(ctx: Context, source: PackSource, encoding: Encoding): Promise<PackedFile | null> {
  const bytes_max = Math.floor(source.content_length * (1 - SAVING_MIN))
  const chunks = await compress(ctx, source, encoding, bytes_max)
  if (chunks === null) return null
  const builder = createDigest()
  for (const chunk of chunks) builder.update(chunk)
  const digest = builder.end()
  await requireDisk(ctx, digest.content_length)
  const object_key = newObjectKey()
  await noteAhead(ctx, [object_key])
  try {
    await ctx.objects.put(object_key, Readable.from(chunks), digest.content_length)
  } catch (error) {
    await forgetNotes(ctx.db, [object_key])
    throw error
  }
  return { path: `${source.path}${PACKED_ENDINGS[encoding]}`, object_key, digest }
}

class TooLong extends Error {}

/** Null: the result would be longer than `bytes_max`. */
async function compress(
  ctx: Context,
  source: Recorded,
  encoding: Encoding,
  bytes_max: number,
): Promise<Buffer[] | null> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    await pipeline(
      soundBytes(ctx.objects, source),
      createPackStream(encoding),
      async (packed: AsyncIterable<Buffer>) => {
        for await (const chunk of packed) {
          length += chunk.length
          if (length > bytes_max) throw new TooLong()
          chunks.push(chunk)
        }
      },
    )
  } catch (error) {
    if (error instanceof TooLong) return null
    throw error
  }
  return chunks
}

/** Makes them files of the upload, in the transaction that completes it. */
export async function insertPacked(
  trx: Transaction<Schema>,
  upload_id: string,
  packed: readonly PackedFile[],
  checked_ts: Date,
): Promise<void> {
  for (const { path, object_key, digest } of packed) {
    const row = { upload_id, path, byte_offset: 0, content_type: null, object_key, checked_ts, is_packed: true }
    await trx
      .insertInto('upload_files')
      .values({ ...row, ...digest })
      .execute()
    await forgetNotes(trx, [object_key])
  }
}
