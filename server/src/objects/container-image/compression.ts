// Decompresses the file of an image and its layers. The first bytes decide, not a media type or the name of a file.
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { inflated } from '../archive/entry.ts'
import { isTarHeader } from '../archive/tar-blocks.ts'
import { imageRefused } from './refusal.ts'

const TAR_BLOCK_BYTES = 512
const EMPTY_TAR = Buffer.alloc(TAR_BLOCK_BYTES)

export type Compression = 'none' | 'gzip' | 'zstd'

export function compressionOf(head: Buffer, name: string | null): Compression {
  const magic = head.toString('hex', 0, 4)
  if (magic.startsWith('1f8b')) return 'gzip'
  if (magic === '28b52ffd') return 'zstd'
  if (isTarHeader(head) || head.subarray(0, TAR_BLOCK_BYTES).equals(EMPTY_TAR)) return 'none'
  throw imageRefused('compression', name)
}

/** The bytes of the tar. The caller compares their length and hash. */
export function decompressed(bytes: AsyncGenerator<Buffer>, compression: Compression): AsyncIterable<Buffer> {
  if (compression === 'none') return bytes
  return inflated(bytes, compression === 'gzip' ? createGunzip() : createZstdDecompress())
}
