// Compression of text files. The edge compresses a short file in memory, at its first request. The api compresses a long
// one when its upload is completed. The edge decompresses a file for clients that do not accept its encoding.
import { promisify } from 'node:util'
import {
  type BrotliCompress,
  type BrotliDecompress,
  brotliCompress,
  createBrotliCompress,
  createBrotliDecompress,
  createGunzip,
  createGzip,
  type Gunzip,
  type Gzip,
  gzip,
  constants as zlib,
} from 'node:zlib'

export type Encoding = 'br' | 'gzip'

/** The suffix of a file that is another file in this encoding. */
export const PACKED_ENDINGS = { br: '.br', gzip: '.gz' } as const satisfies Record<Encoding, string>

/** Bytes of a file that the edge compresses and caches in memory. Longer files are compressed ahead. */
export const PACKED_IN_MEMORY_BYTES_MAX = 256 * 1024

const packGzip = promisify<Buffer, object, Buffer>(gzip)
const packBrotli = promisify<Buffer, object, Buffer>(brotliCompress)
/** A compromise, not measured: each file is compressed once and sent often, while a visitor or the developer waits. */
const GZIP = { level: 6 }
const BROTLI = { params: { [zlib.BROTLI_PARAM_QUALITY]: 5, [zlib.BROTLI_PARAM_MODE]: zlib.BROTLI_MODE_TEXT } }

export function pack(bytes: Buffer, encoding: Encoding): Promise<Buffer> {
  return encoding === 'br' ? packBrotli(bytes, BROTLI) : packGzip(bytes, GZIP)
}

export function createPackStream(encoding: Encoding): BrotliCompress | Gzip {
  return encoding === 'br' ? createBrotliCompress(BROTLI) : createGzip(GZIP)
}

/** Bytes that a decompressor returns at once. */
const UNPACKED_CHUNK_BYTES = 64 * 1024

export function createUnpackStream(encoding: Encoding): BrotliDecompress | Gunzip {
  const options = { chunkSize: UNPACKED_CHUNK_BYTES }
  return encoding === 'br' ? createBrotliDecompress(options) : createGunzip(options)
}
