// Sends compressed files of a site decompressed, to clients that do not accept their encoding. The decompressor reads the file
// as fast as the client reads the response, so memory is bounded whatever the file becomes. Its length is not known before its
// end, so the response is chunked and takes no ranges. A few such responses run at once. When all slots are taken, the client
// that holds most loses one (addresses/client-share.ts).
import { pipeline } from 'node:stream/promises'
import { ApiError } from '@musterhost/contract'
import { ClientShare, type SharedShare } from '../../addresses/client-share.ts'
import type { Context } from '../../context.ts'
import { reportDamage } from '../../database/damaged-objects.ts'
import { ObjectDamaged, type Recorded } from '../../objects/damage.ts'
import { createUnpackStream, type Encoding } from '../../objects/pack.ts'
import type { Exchange } from '../http/exchange.ts'
import { beginChunked, breakResponse, drained, endChunked, endResponse, writeChunk } from '../http/response.ts'
import { UNPACKED_BYTES_MAX, UNPACKED_POOL } from '../limits.ts'

const RETRY_AFTER_S = 1
const ENCODINGS = { br: 'brotli', gzip: 'gzip' } as const satisfies Record<Encoding, string>

type Unpacking = {
  to: Exchange
  file: Recorded
  encoding: Encoding
  /** The bytes of the file. Reading them throws ObjectDamaged. */
  blocks: AsyncGenerator<Buffer>
  status: number
  headers: readonly string[]
}

/**
 * Rejects before the first byte with API_RATE_LIMIT or API_NOT_AVAILABLE when too many files are sent so, with
 * CDN_NOT_ACCEPTABLE when the file is not compressed as its name says, and with ObjectDamaged.
 */
type SendUnpacked = (unpacking: Unpacking) => Promise<void>

/** The client has gone. */
class Gone extends Error {}
class TooLong extends Error {}

export function createSendUnpacked(
  ctx: Context,
  shared: SharedShare | null,
  pool = UNPACKED_POOL,
  bytes_max = UNPACKED_BYTES_MAX,
): SendUnpacked {
  const share = new ClientShare(pool, shared)

  async function send(unpacking: Unpacking, signal: AbortSignal): Promise<void> {
    const { to, file, encoding, blocks, status, headers } = unpacking
    let read_error: unknown = null
    async function* stored(): AsyncGenerator<Buffer> {
      try {
        yield* blocks
      } catch (error) {
        read_error = error
        throw error
      }
    }
    let length = 0
    try {
      await pipeline(stored, createUnpackStream(encoding), async (output: AsyncIterable<Buffer>) => {
        for await (const chunk of output) {
          if (to.connection.socket.writableNeedDrain) await drained(to)
          if (to.is_over) throw new Gone()
          signal.throwIfAborted()
          length += chunk.length
          if (length > bytes_max) throw new TooLong(`The file becomes longer than ${bytes_max} bytes.`)
          if (!to.is_response_begun) beginChunked(to, status, headers)
          writeChunk(to, chunk)
        }
        if (to.is_over) throw new Gone()
        if (!to.is_response_begun) beginChunked(to, status, headers)
        endChunked(to)
      })
    } catch (error) {
      if (to.is_over || error instanceof Gone) return
      if (!to.is_response_begun) throw read_error ?? (signal.aborted ? full() : notCompressed(encoding))
      if (read_error instanceof ObjectDamaged) void reportDamage(ctx, read_error)
      else if (!signal.aborted)
        ctx.log.warn({ err: error, object_key: file.object_key }, 'a compressed file cannot be sent decompressed')
      breakResponse(to)
    }
  }

  return async (unpacking) => {
    const { to, status, headers } = unpacking
    if (to.method === 'HEAD') {
      beginChunked(to, status, headers)
      endResponse(to)
      return
    }
    const displaced = new AbortController()
    const slot = share.enter(to.client_key, () => {
      displaced.abort()
      // A client that does not read would keep its decompressor.
      if (to.is_response_begun) breakResponse(to)
    })
    if (slot === 'client_full') {
      const message = 'Too many files are being decompressed for this client. Accept `br` or `gzip` in Accept-Encoding.'
      throw new ApiError('API_RATE_LIMIT', {}, { message, retry_after_s: RETRY_AFTER_S })
    }
    if (slot === 'full') throw full()
    try {
      await send(unpacking, displaced.signal)
    } finally {
      slot.leave()
    }
  }
}

function full(): ApiError {
  const message = 'Too many files are being decompressed. Accept `br` or `gzip` in Accept-Encoding.'
  return new ApiError('API_NOT_AVAILABLE', {}, { message, retry_after_s: RETRY_AFTER_S })
}

/** Only a site of an earlier version of the platform has such a file: uploads are checked. */
function notCompressed(encoding: Encoding): ApiError {
  const message = `The file is not compressed by ${ENCODINGS[encoding]}, as its name says. Upload the site again.`
  return new ApiError('CDN_NOT_ACCEPTABLE', {}, { message })
}
