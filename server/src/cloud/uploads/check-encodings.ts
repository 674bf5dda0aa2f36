// A file of a site that is named as compressed (`x.wasm.br`, `x.data.gz`) is served with that encoding. When its bytes are not
// compressed so, browsers show nothing but a failed download. The upload is refused instead, and names the file.
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip } from 'node:zlib'
import { ApiError } from '@musterhost/contract'
import { contentTypeOf } from '@musterhost/contract/site'
import type { Context } from '../../context.ts'
import { damageOf } from '../../objects/damage.ts'
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

type NamedFile = { file: PackSource; encoding: keyof typeof METHODS }

/** Throws UPLOAD_INVALID when a file is not compressed as its name says, or ObjectDamaged when one cannot be read. */
export async function checkEncodings(ctx: Context, files: readonly PackSource[]): Promise<void> {
  const named = files.flatMap((file): NamedFile[] => {
    const { content_encoding } = contentTypeOf(file.path, file.content_type)
    return content_encoding === null ? [] : [{ file, encoding: content_encoding }]
  })
  const wrong: NamedFile[] = []
  for (let start = 0; start < named.length; start += FILES_AT_ONCE_MAX) {
    const some = named.slice(start, start + FILES_AT_ONCE_MAX)
    const results = await Promise.all(some.map((one) => isCompressed(ctx, one)))
    wrong.push(...some.filter((_, index) => !results[index]))
  }
  const [first] = wrong
  if (first === undefined) return
  const others = wrong.length === 1 ? '' : `, and ${wrong.length - 1} more`
  const message = `${first.file.path} is not compressed by ${METHODS[first.encoding]}, as its name says${others}. Compress it again, or give it its plain name.`
  const paths = wrong.slice(0, WRONG_NAMED_MAX).map(({ file }) => file.path)
  throw new ApiError('UPLOAD_INVALID', { reason: 'not_compressed', paths, count: wrong.length }, { message })
}

/** The file has become more bytes than are read. */
class Enough extends Error {}

async function isCompressed(ctx: Context, { file, encoding }: NamedFile): Promise<boolean> {
  const { object_key } = file
  const stored = await ctx.objects
    .read(object_key)
    .catch((error: unknown) => Promise.reject(damageOf(object_key, error)))
  const decoder = encoding === 'br' ? createBrotliDecompress() : createGunzip()
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
