// The images of games, on a host of their own, and below /media of the main domain for the hub. The path of an image is its hash, so the response never changes and every
// cache may keep it. The content type was detected from the bytes when the upload was completed, and browsers may not guess
// another one. An image that is opened as a page is sandboxed, so that its bytes can run nothing under this host.
import { ApiError } from '@musterhost/contract'
import { headerOf } from '@musterhost/contract/edge'
import type { Context } from '../../context.ts'
import { BoundedMap } from '../../flow/bounded-map.ts'
import type { Recorded } from '../../objects/damage.ts'
import { imagePath } from '../../objects/image/image.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Refuse } from '../http/refuse.ts'
import { sendResponse } from '../http/response.ts'
import { MEDIA_AGE_MS_MAX, MEDIA_MAX } from '../limits.ts'
import type { Lookups } from '../routes/lookups.ts'
import { headersOfRefusal } from './refusal-headers.ts'
import { isKnown, rangeOf } from './representation.ts'
import { NOSNIFF, type Send, then } from './send.ts'

export type Media = {
  /** Responds to the exchange. `path`: of the image. */
  serve: (exchange: Exchange, path: string) => void
}

type MediaFile = Recorded & { path: string; content_type: string; etag: string }

const PATH = /^\/([0-9a-f]{64})\.[a-z]{3,4}$/
const HEADERS = [
  ...['cache-control', 'public, max-age=31536000, immutable'],
  ...['content-security-policy', "default-src 'none'; frame-ancestors 'none'; sandbox"],
  ...['cross-origin-resource-policy', 'cross-origin'],
  ...NOSNIFF,
]

export function createMedia(ctx: Context, options: { lookups: Lookups; refuse: Refuse; send: Send }): Media {
  const { lookups, refuse, send } = options
  const cache = new BoundedMap<string, { file: MediaFile; until_ms: number }>(MEDIA_MAX)

  async function lookUp(sha256: string, client_key: string): Promise<MediaFile | null> {
    const file = await lookups.run(client_key, () => readFile(ctx, sha256))
    if (file === null) cache.delete(sha256)
    else cache.set(sha256, { file, until_ms: ctx.elapsed() + MEDIA_AGE_MS_MAX })
    return file
  }

  function find(sha256: string, client_key: string): MediaFile | null | Promise<MediaFile | null> {
    const entry = cache.get(sha256)
    if (entry !== undefined && ctx.elapsed() < entry.until_ms) return entry.file
    return lookUp(sha256, client_key)
  }

  function sendFile(exchange: Exchange, file: MediaFile): void | Promise<void> {
    const { head, method } = exchange
    const headers = [...HEADERS, 'etag', file.etag]
    if (isKnown(headerOf(head, 'if-none-match'), file.etag)) {
      sendResponse(exchange, 304, headers, null)
      return
    }
    headers.push('content-type', file.content_type, 'accept-ranges', 'bytes')
    const range = method === 'GET' ? rangeOf(headerOf(head, 'range'), headerOf(head, 'if-range'), file) : null
    return send.file(exchange, file, range, headers)
  }

  function respond(exchange: Exchange, target: string, client_key: string): void | Promise<void> {
    const { method } = exchange
    if (method !== 'GET' && method !== 'HEAD') throw new ApiError('API_METHOD_NOT_ALLOWED')
    const path = target.split('?', 1)[0]!
    const sha256 = PATH.exec(path)?.[1]
    if (sha256 === undefined) throw imageNotFound()
    return then(find(sha256, client_key), (file) => {
      if (file === null || file.path !== path) throw imageNotFound()
      return sendFile(exchange, file)
    })
  }

  return {
    serve(exchange, path) {
      const onError = (error: unknown) => {
        refuse.request(exchange, error, headersOfRefusal(error))
      }
      try {
        respond(exchange, path, exchange.client_key)?.catch(onError)
      } catch (error) {
        onError(error)
      }
    },
  }
}

function imageNotFound(): ApiError {
  return new ApiError('API_NOT_FOUND', {}, { message: 'There is no such picture.' })
}

/** Several games may have the same image; any of them is used. */
async function readFile(ctx: Context, sha256: string): Promise<MediaFile | null> {
  const row = await ctx.db
    .selectFrom('game_images')
    .innerJoin('upload_files', 'upload_files.upload_id', 'game_images.upload_id')
    .select(['game_images.sha256', 'game_images.content_type', 'object_key', 'content_length'])
    .where('game_images.sha256', '=', sha256)
    .executeTakeFirst()
  if (row === undefined) return null
  const { object_key, content_length, content_type } = row
  return { path: imagePath(row), object_key, content_length, sha256, content_type, etag: `"${sha256}"` }
}
