// The pictures of games, on a host of their own. An address is the hash of what it shows, so the answer never changes and
// every cache may keep it. The type is what the bytes were found to be when they were completed, nobody may guess another,
// and whoever opens a picture as a page finds it in a sandbox: whatever else its bytes may mean, they do nothing here.
import { ApiError } from '@muster/contract'
import type { Context } from '../../context.ts'
import type { Recorded } from '../../objects/damage.ts'
import { imagePath } from '../../objects/image.ts'
import { answer as answerHead } from '../http/answer.ts'
import type { Exchange } from '../http/exchange.ts'
import { headerOf } from '../http/head.ts'
import type { Refuse } from '../http/refuse.ts'
import { MEDIA_AGE_MS_MAX, MEDIA_MAX } from '../limits.ts'
import type { Lookups } from '../lookups.ts'
import { isKnown, rangeOf } from './representation.ts'
import { NOSNIFF, type Send, then } from './send.ts'

export type Media = {
  /** Answers the exchange. */
  serve: (exchange: Exchange) => void
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
  const known = new Map<string, { file: MediaFile; until_ms: number }>()

  async function ask(sha256: string, source: string): Promise<MediaFile | null> {
    const file = await lookups.run(source, () => readFile(ctx, sha256))
    known.delete(sha256)
    if (file === null) return null
    if (known.size >= MEDIA_MAX) known.delete(known.keys().next().value!)
    known.set(sha256, { file, until_ms: ctx.elapsed() + MEDIA_AGE_MS_MAX })
    return file
  }

  function find(sha256: string, source: string): MediaFile | null | Promise<MediaFile | null> {
    const entry = known.get(sha256)
    if (entry !== undefined && ctx.elapsed() < entry.until_ms) return entry.file
    return ask(sha256, source)
  }

  function answerFile(exchange: Exchange, file: MediaFile): void | Promise<void> {
    const { head, method } = exchange
    const headers = [...HEADERS, 'etag', file.etag]
    if (isKnown(headerOf(head, 'if-none-match'), file.etag)) {
      answerHead(exchange, 304, headers, null)
      return
    }
    headers.push('content-type', file.content_type, 'accept-ranges', 'bytes')
    const range = method === 'GET' ? rangeOf(headerOf(head, 'range'), headerOf(head, 'if-range'), file) : null
    return send.file(exchange, file, range, headers)
  }

  function answer(exchange: Exchange, source: string): void | Promise<void> {
    const { method } = exchange
    if (method !== 'GET' && method !== 'HEAD') throw new ApiError('API_METHOD_NOT_ALLOWED')
    const path = exchange.path.split('?', 1)[0]!
    const sha256 = PATH.exec(path)?.[1]
    if (sha256 === undefined) throw noSuchPicture()
    return then(find(sha256, source), (file) => {
      if (file === null || file.path !== path) throw noSuchPicture()
      return answerFile(exchange, file)
    })
  }

  return {
    serve(exchange) {
      const onError = (error: unknown) => {
        const is_range = error instanceof ApiError && error.code === 'CDN_RANGE_NOT_SATISFIABLE'
        const more = is_range ? ['content-range', `bytes */${String(error.metadata.content_length)}`] : []
        refuse.request(exchange, error, more)
      }
      try {
        answer(exchange, exchange.source)?.catch(onError)
      } catch (error) {
        onError(error)
      }
    },
  }
}

function noSuchPicture(): ApiError {
  return new ApiError('API_NOT_FOUND', {}, { message: 'There is no such picture.' })
}

/** Games may show the same picture; any of them will do. */
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
