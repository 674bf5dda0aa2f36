// A site's files over HTTP. A path is a key of the manifest and nothing else: it is decoded once and looked up, so no
// spelling of it leads anywhere but to a file of the site. Nothing of a request but host and path decides what is
// answered. Small files come from memory, large ones are streamed as fast as they are taken.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { ApiError } from '@muster/contract'
import type { Context } from '../context.ts'
import type { Exchange } from './forward.ts'
import { MEMORY_FILE_BYTES_MAX } from './limits.ts'
import { createMemory } from './memory.ts'
import { endAfterBody, type Refuse } from './refuse.ts'
import type { SiteFile, SiteHost, Sites } from './sites.ts'

export type Cdn = {
  /** Answers the exchange. `source` is who asks, see lookups.ts. */
  serve: (exchange: Exchange, host: { game: string; namespace: string }, source: string) => void
}

const WELL_KNOWN_PATH = '.well-known/muster.json'
/** Pages are fetched anew each time, other files are asked about: a deploy is seen at once. */
const CACHE_PAGE = 'no-cache, no-store'
const CACHE_FILE = 'no-cache'
/** `main.8f3a01bc.js`, `index-BqK3x9Zt.css`: such a name is of one content, in whichever version. */
const HASHED_NAME = /[.-][A-Za-z0-9_-]{8,64}\.[a-z0-9.]{1,16}$/

export function createCdn(ctx: Context, options: { sites: Sites; refuse: Refuse; mainUrl: () => string }): Cdn {
  const { sites, refuse, mainUrl } = options
  const memory = createMemory(ctx.objects)

  function answerWellKnown({ req, res }: Exchange, { game_id, namespace_id }: SiteHost): void {
    const body = Buffer.from(JSON.stringify({ matchmaker_url: mainUrl(), game_id, namespace_id }))
    const headers = ['content-type', 'application/json; charset=utf-8', 'cache-control', 'no-store', ...NOSNIFF]
    res.writeHead(200, [...headers, 'content-length', String(body.length)])
    if (req.method !== 'HEAD') res.write(body)
    endAfterBody(req, res)
  }

  async function findFile(host: SiteHost, path: string, source: string): Promise<SiteFile | null> {
    if (host.site === null) return null
    const file = (await sites.manifest(host.site, source)).get(path)
    if (file !== undefined) return file
    const { previous } = host
    if (previous === null || ctx.now() >= previous.until_ts || !HASHED_NAME.test(path)) return null
    return (await sites.manifest(previous.site, source)).get(path) ?? null
  }

  async function answerFile(exchange: Exchange, path: string, file: SiteFile): Promise<void> {
    const { req, res } = exchange
    const headers = ['cache-control', path.endsWith('.html') ? CACHE_PAGE : CACHE_FILE, ...NOSNIFF]
    if (file.etag !== null) headers.push('etag', file.etag)
    if (file.etag !== null && isKnown(req.headers['if-none-match'], file.etag)) {
      res.writeHead(304, headers)
      endAfterBody(req, res)
      return
    }
    headers.push('content-type', file.content_type)
    if (file.content_encoding !== null) headers.push('content-encoding', file.content_encoding)
    if (req.method === 'HEAD') {
      res.writeHead(200, [...headers, 'content-length', String(file.content_length)])
      endAfterBody(req, res)
    } else if (file.content_length <= MEMORY_FILE_BYTES_MAX) {
      const bytes = await memory.read(file.object_key)
      res.writeHead(200, [...headers, 'content-length', String(bytes.length)])
      res.write(bytes)
      endAfterBody(req, res)
    } else {
      await streamFile(ctx, req, res, file, headers)
    }
  }

  async function answer(exchange: Exchange, game: string, namespace: string, source: string): Promise<void> {
    const { req } = exchange
    if (req.method !== 'GET' && req.method !== 'HEAD') throw new ApiError('API_METHOD_NOT_ALLOWED')
    const path = filePath(exchange.path)
    const host = await sites.host(game, namespace, source)
    if (host === null) throw new ApiError('SITE_NOT_FOUND')
    if (path === WELL_KNOWN_PATH) {
      answerWellKnown(exchange, host)
      return
    }
    if (host.site === null) throw new ApiError('SITE_NOT_FOUND', {}, { message: 'No site is deployed here.' })
    const file = await findFile(host, path, source)
    if (file === null) throw new ApiError('API_NOT_FOUND', {}, { message: 'The site has no such file.' })
    await answerFile(exchange, path, file)
  }

  return {
    serve(exchange, { game, namespace }, source) {
      answer(exchange, game, namespace, source).catch((error: unknown) =>
        refuse.request(exchange.req, exchange.res, error),
      )
    },
  }
}

const NOSNIFF = ['x-content-type-options', 'nosniff']

/** The manifest's key for a request's path. Throws API_BAD_REQUEST for what does not decode. */
function filePath(target: string): string {
  const query = target.indexOf('?')
  const encoded = query === -1 ? target : target.slice(0, query)
  let path: string
  try {
    path = decodeURIComponent(encoded.slice(1))
  } catch {
    throw new ApiError('API_BAD_REQUEST', {}, { message: 'The path is not percent-encoded UTF-8.' })
  }
  return path === '' || path.endsWith('/') ? `${path}index.html` : path
}

/** If-None-Match: a list of tags, weak or not, or a star. */
function isKnown(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  return header.split(',').some((item) => {
    const tag = item.trim()
    return tag === '*' || tag === etag || tag === `W/${etag}`
  })
}

async function streamFile(
  ctx: Context,
  req: IncomingMessage,
  res: ServerResponse,
  { object_key, content_length }: SiteFile,
  headers: string[],
): Promise<void> {
  const bytes = await ctx.objects.read(object_key, { start: 0, end: content_length - 1 })
  if (res.destroyed) {
    bytes.destroy()
    return
  }
  let left = content_length
  res.writeHead(200, [...headers, 'content-length', String(content_length)])
  bytes.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (!res.write(chunk)) bytes.pause()
  })
  res.on('drain', () => bytes.resume())
  res.once('close', () => bytes.destroy())
  const onError = (error: Error) => {
    ctx.log.error({ err: error, object_key }, 'a file of a site cannot be read')
    res.destroy()
  }
  bytes.once('error', onError)
  bytes.once('end', () => {
    if (left === 0) endAfterBody(req, res)
    else onError(new Error('The object is shorter than its row says.'))
  })
}
