// A site's files over HTTP. A path is a key of the manifest and nothing else: it is decoded once and looked up, so no
// spelling of it leads anywhere but to a file of the site. Nothing of a request but host, path, the encodings it accepts
// and the part it wants decides what is answered. Small files come from memory, large ones are streamed as fast as they
// are taken. Where everything is at hand the answer leaves without a turn of the event loop.
import { ApiError } from '@muster/contract'
import type { Context } from '../../context.ts'
import { newRayId } from '../../ids.ts'
import { answer as answerHead } from '../http/answer.ts'
import type { Exchange } from '../http/exchange.ts'
import { headerOf } from '../http/head.ts'
import type { Refuse } from '../http/refuse.ts'
import { CHALLENGE, createBasicAuth } from './basic-auth.ts'
import type { DamagedObjects } from './damaged.ts'
import { type Found, findSubstitute, NOT_FOUND_HEADERS, NOT_FOUND_PAGE } from './not-found.ts'
import { chooseRepresentation, isKnown, rangeOf } from './representation.ts'
import { NOSNIFF, type Send, then } from './send.ts'
import type { SiteEntry, SiteFile, SiteHost, Sites } from './sites.ts'

export type Cdn = {
  /** Answers the exchange. */
  serve: (exchange: Exchange, host: { game: string; namespace: string }) => void
}

const WELL_KNOWN_PATH = '.well-known/muster.json'
/** Pages are fetched anew each time, other files are asked about: a deploy is seen at once. */
const CACHE_PAGE = 'no-cache, no-store'
const CACHE_FILE = 'no-cache'
/** What is behind a password stays out of caches that others share, whatever a route says. */
const CACHE_PRIVATE = 'private, no-cache'
/** `main.8f3a01bc.js`, `index-BqK3x9Zt.css`: such a name is of one content, in whichever version. */
const HASHED_NAME = /[.-][A-Za-z0-9_-]{8,64}\.[a-z0-9.]{1,16}$/

export function createCdn(
  ctx: Context,
  options: { sites: Sites; damaged: DamagedObjects; refuse: Refuse; send: Send; mainUrl: () => string },
): Cdn {
  const { sites, damaged, refuse, send, mainUrl } = options
  const auth = createBasicAuth(ctx)

  function answerWellKnown(exchange: Exchange, { game_id, namespace_id }: SiteHost): void {
    const body = Buffer.from(JSON.stringify({ matchmaker_url: mainUrl(), game_id, namespace_id }))
    const headers = ['content-type', 'application/json; charset=utf-8', 'cache-control', 'no-store', ...NOSNIFF]
    send.bytes(exchange, 200, headers, body)
  }

  /** Null: the site has neither the file nor a page for unknown paths. */
  function findFile(host: SiteHost, path: string, source: string): Found | null | Promise<Found | null> {
    if (host.site === null) throw new ApiError('SITE_NOT_FOUND', {}, { message: 'No site is deployed here.' })
    return then(sites.manifest(host.site, source), (manifest) => {
      const entry = manifest.get(path)
      if (entry !== undefined) return { path, entry, status: 200 }
      const { previous, not_found } = host
      const substitute = findSubstitute(manifest, path, not_found)
      if (previous === null || ctx.elapsed() >= previous.until_ms || !HASHED_NAME.test(path)) return substitute
      return then(sites.manifest(previous.site, source), (old) => {
        const older = old.get(path)
        return older === undefined ? substitute : { path, entry: older, status: 200 }
      })
    })
  }

  function answerFile(exchange: Exchange, host: SiteHost, { path, entry, status }: Found): void | Promise<void> {
    const { head, method } = exchange
    // RFC 9110, 13.2.1 and 14.2: conditions and ranges are of what is found.
    const is_found = status === 200
    const wanted = is_found ? headerOf(head, 'range') : undefined
    const accept = headerOf(head, 'accept-encoding')
    const { file, packed, varies } = chooseRepresentation(withoutDamaged(damaged, entry), accept, wanted !== undefined)
    const own = host.headersOf(path)
    const tag = file.etag === null || packed === null ? file.etag : `${file.etag.slice(0, -1)}-${packed}"`
    const etag = is_found ? tag : null
    // A cache that kept the page of an unknown path would hide the file that a later deploy brings.
    const cache_control = cacheControl(host, path, is_found ? own.cache_control : null)
    const headers = ['cache-control', cache_control, ...NOSNIFF]
    if (etag !== null) headers.push('etag', etag)
    if (varies || host.users !== null) headers.push('vary', varyOf(varies, host.users !== null))
    if (own.others.length > 0) headers.push(...own.others)
    if (etag !== null && isKnown(headerOf(head, 'if-none-match'), etag)) {
      answerHead(exchange, 304, headers, null)
      return
    }
    const encoding = packed ?? file.content_encoding
    headers.push('content-type', own.content_type ?? file.content_type)
    if (encoding !== null) headers.push('content-encoding', encoding)
    if (packed !== null) return send.packed(exchange, file, packed, headers, status)
    if (is_found) headers.push('accept-ranges', 'bytes')
    const range = method === 'GET' ? rangeOf(wanted, headerOf(head, 'if-range'), file) : null
    return send.file(exchange, file, range, headers, status)
  }

  function requireUser({ head }: Exchange, host: SiteHost, source: string): void | Promise<void> {
    if (host.users === null) return
    const site = { namespace_id: host.namespace_id, users: host.users }
    return then(auth.isUser(site, headerOf(head, 'authorization'), source), (is_user) => {
      if (!is_user) throw new ApiError('API_UNAUTHORIZED', {}, { message: 'This site asks for a name and a password.' })
    })
  }

  function answer(exchange: Exchange, game: string, namespace: string, source: string): void | Promise<void> {
    const { method } = exchange
    if (method !== 'GET' && method !== 'HEAD') throw new ApiError('API_METHOD_NOT_ALLOWED')
    const path = filePath(exchange.path)
    return then(sites.host(game, namespace, source), (host) => {
      if (host === null) throw new ApiError('SITE_NOT_FOUND')
      if (exchange.ray !== null) exchange.ray.owner = { kind: 'namespace', id: host.namespace_id }
      return then(requireUser(exchange, host, source), () => {
        if (path === WELL_KNOWN_PATH) return answerWellKnown(exchange, host)
        return then(findFile(host, path, source), (found) => {
          if (found?.status !== 200) exchange.ray_id ??= newRayId()
          ctx.recorder.end(exchange.ray, found?.status === 200 ? null : 'API_NOT_FOUND')
          if (found === null) return send.bytes(exchange, 404, [...NOT_FOUND_HEADERS, ...NOSNIFF], NOT_FOUND_PAGE)
          return answerFile(exchange, host, found)
        })
      })
    })
  }

  return {
    serve(exchange, { game, namespace }) {
      const onError = (error: unknown) => refuse.request(exchange, error, headersOfRefusal(error))
      try {
        answer(exchange, game, namespace, exchange.source)?.catch(onError)
      } catch (error) {
        onError(error)
      }
    },
  }
}

/** Compressed forms that the platform made are not needed: in place of a damaged one the file itself is served. */
function withoutDamaged(damaged: DamagedObjects, entry: SiteEntry): SiteEntry {
  const isDamaged = (form: SiteFile | null): boolean => form?.is_packed === true && damaged.has(form.object_key)
  const [br, gzip] = [isDamaged(entry.br), isDamaged(entry.gzip)]
  return br || gzip ? { ...entry, br: br ? null : entry.br, gzip: gzip ? null : entry.gzip } : entry
}

function headersOfRefusal(error: unknown): readonly string[] {
  if (!(error instanceof ApiError)) return []
  if (error.code === 'API_UNAUTHORIZED') return CHALLENGE
  if (error.code === 'CDN_NOT_ACCEPTABLE') return ['vary', 'Accept-Encoding']
  if (error.code !== 'CDN_RANGE_NOT_SATISFIABLE') return []
  return ['content-range', `bytes */${String(error.metadata.content_length)}`]
}

function cacheControl(host: SiteHost, path: string, own: string | null): string {
  const is_page = path.endsWith('.html')
  if (host.users !== null) return is_page ? `${CACHE_PRIVATE}, no-store` : CACHE_PRIVATE
  return own ?? (is_page ? CACHE_PAGE : CACHE_FILE)
}

function varyOf(encoding: boolean, authorization: boolean): string {
  if (!authorization) return 'Accept-Encoding'
  return encoding ? 'Accept-Encoding, Authorization' : 'Authorization'
}

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
