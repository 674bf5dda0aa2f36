// Text is compressed once: a short file by the edge, in memory, when the first visitor requests it; a long one by the api,
// when its upload is completed.
import { promisify } from 'node:util'
import {
  type BrotliCompress,
  brotliCompress,
  createBrotliCompress,
  createGzip,
  type Gzip,
  gzip,
  constants as zlib,
} from 'node:zlib'

export type Encoding = 'br' | 'gzip'

/** How the name of a file ends that is another one in this encoding. */
export const PACKED_ENDINGS = { br: '.br', gzip: '.gz' } as const satisfies Record<Encoding, string>

/** Files up to this length are kept and compressed in the memory of the edge; longer ones are compressed ahead. */
export const PACKED_IN_MEMORY_BYTES_MAX = 256 * 1024

const packGzip = promisify<Buffer, object, Buffer>(gzip)
const packBrotli = promisify<Buffer, object, Buffer>(brotliCompress)
/** Compressed once and sent often, while the first visitor or the developer waits: chosen between both, not measured. */
const GZIP = { level: 6 }
const BROTLI = { params: { [zlib.BROTLI_PARAM_QUALITY]: 5, [zlib.BROTLI_PARAM_MODE]: zlib.BROTLI_MODE_TEXT } }

export function pack(bytes: Buffer, encoding: Encoding): Promise<Buffer> {
  return encoding === 'br' ? packBrotli(bytes, BROTLI) : packGzip(bytes, GZIP)
}

export function createPackStream(encoding: Encoding): BrotliCompress | Gzip {
  return encoding === 'br' ? createBrotliCompress(BROTLI) : createGzip(GZIP)
}
