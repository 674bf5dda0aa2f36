// A file of a site that is named as compressed (`x.wasm.br`, `x.data.gz`) is served with that encoding. The name of a file of
// Unity (`x.wasm.unityweb`) says nothing, so its first bytes are read. When a file is not compressed as its name or its first
// bytes say, browsers show nothing but a failed download. The upload is refused instead, and names the file.
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { ApiError } from '@musterhost/contract'
import { contentTypeOf, HEAD_BYTES, headEncoding, isEncodedByHead } from '@musterhost/contract/site'
import type { Context } from '../../context.ts'
import { damageOf } from '../../objects/damage.ts'
import { createUnpackStream, type Encoding } from '../../objects/pack.ts'
import type { PackSource } from './pack-texts.ts'

/**
 * Bytes that a file may become before it is believed. Text may begin like a block of brotli that was stored and not compressed,
 * which has at most 16 MiB: it fails after that.
 */
const OUTPUT_BYTES_MAX = 32 * 1024 * 1024
/** Files that are decompressed at once. */
const FILES_AT_ONCE_MAX = 4
/** Files that an error names. */
const WRONG_NAMED_MAX = 32

const METHODS = { br: 'brotli', gzip: 'gzip' } as const

type EncodedFile = { file: PackSource; encoding: Encoding; is_by_head: boolean }

/**
 * Returns the encodings of files whose first bytes say how they are compressed, by object key. Throws UPLOAD_INVALID when a
 * file is not compressed as its name or its first bytes say, or ObjectDamaged when one cannot be read.
 */
export async function checkEncodings(ctx: Context, files: readonly PackSource[]): Promise<Map<string, Encoding>> {
  const encoded = (await forSome(files, (file) => encodedFile(ctx, file))).filter((one) => one !== null)
  const results = await forSome(encoded, (one) => isCompressed(ctx, one))
  const wrong = encoded.filter((_, index) => !results[index])
  const [first] = wrong
  if (first === undefined)
    return new Map(encoded.flatMap((one) => (one.is_by_head ? [[one.file.object_key, one.encoding]] : [])))
  const others = wrong.length === 1 ? '' : `, and ${wrong.length - 1} more`
  const message = first.is_by_head
    ? `${first.file.path} begins as a file compressed by ${METHODS[first.encoding]}, and cannot be decompressed${others}. Build it again.`
    : `${first.file.path} is not compressed by ${METHODS[first.encoding]}, as its name says${others}. Compress it again, or give it its plain name.`
  const paths = wrong.slice(0, WRONG_NAMED_MAX).map(({ file }) => file.path)
  throw new ApiError('UPLOAD_INVALID', { reason: 'not_compressed', paths, count: wrong.length }, { message })
}

/** FILES_AT_ONCE_MAX of them at a time. */
async function forSome<Item, Result>(items: readonly Item[], work: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = []
  for (let start = 0; start < items.length; start += FILES_AT_ONCE_MAX)
    results.push(...(await Promise.all(items.slice(start, start + FILES_AT_ONCE_MAX).map(work))))
  return results
}

/** Null: neither its name nor its first bytes say that it is compressed. */
async function encodedFile(ctx: Context, file: PackSource): Promise<EncodedFile | null> {
  const { content_encoding } = contentTypeOf(file.path, file.content_type)
  if (content_encoding !== null) return { file, encoding: content_encoding, is_by_head: false }
  if (!isEncodedByHead(file.path) || file.content_length === 0) return null
  const { object_key } = file
  const range = { start: 0, end: Math.min(HEAD_BYTES, file.content_length) - 1 }
  try {
    const encoding = headEncoding(await buffer(await ctx.objects.read(object_key, range)))
    return encoding === null ? null : { file, encoding, is_by_head: true }
  } catch (error) {
    throw damageOf(object_key, error)
  }
}

/** The file has become more bytes than are read. */
class Enough extends Error {}

async function isCompressed(ctx: Context, { file, encoding }: EncodedFile): Promise<boolean> {
  const { object_key } = file
  const stored = await ctx.objects
    .read(object_key)
    .catch((error: unknown) => Promise.reject(damageOf(object_key, error)))
  const decoder = createUnpackStream(encoding)
  // The pipeline destroys each stream with the error of the other, so the first of them has failed.
  let failed: unknown = null
  for (const stream of [stored, decoder]) stream.once('error', () => (failed ??= stream))
  let length = 0
  try {
    await pipeline(stored, decoder, async (output: AsyncIterable<Buffer>) => {
      for await (const chunk of output) {
        length += chunk.length
        if (length > OUTPUT_BYTES_MAX) throw new Enough()
      }
    })
    return true
  } catch (error) {
    if (error instanceof Enough) return true
    if (failed === decoder) return false
    throw error
  }
}
