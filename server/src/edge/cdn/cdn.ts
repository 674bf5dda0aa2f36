// A site's files over HTTP. A path is decoded once and looked up as a key of the manifest, so no spelling of it leads to
// anything but a file of the site. The response depends only on the request's host, path, accepted encodings and range, and
// on the client while a roll-out is under way. Small
// files come from memory; large ones are streamed as fast as the client reads. A response whose parts are all in memory is
// sent without a turn of the event loop.
import { ApiError } from '@musterhost/contract'
import { headerOf, isPreflight } from '@musterhost/contract/edge'
import { fileOfPathname, folderLocation } from '@musterhost/contract/site'
import type { Context } from '../../context.ts'
import { newRayId } from '../../ids.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Refuse } from '../http/refuse.ts'
import { sendResponse } from '../http/response.ts'
import { BasicAuth } from './basic-auth.ts'
import type { DamagedObjects } from './damaged.ts'
import { type FoundPage, findFolder, findSubstitute, NOT_FOUND_HEADERS, NOT_FOUND_PAGE } from './not-found.ts'
import { allowsCors, sitePreflightHeaders } from './preflight.ts'
import { headersOfRefusal } from './refusal-headers.ts'
import { chooseRepresentation, isKnown, isWanted, type Representation, rangeOf } from './representation.ts'
import { NOSNIFF, type Send, then } from './send.ts'
import { hostOfClient, type SiteEntry, type SiteFile, type SiteHost, type Sites } from './sites.ts'

const WELL_KNOWN_PATH = '.well-known/muster.json'
/** The name under which pages find their version in Server-Timing (sdk/src/request.ts). */
const SITE_VERSION_METRIC = 'muster-version'
/** Browsers fetch pages again each time, and revalidate other files: a deploy is visible at once. */
const CACHE_PAGE = 'no-cache, no-store'
const CACHE_FILE = 'no-cache'
/**
 * Files behind a password, and files of which clients get two versions, stay out of shared caches, whatever a route says.
 */
const CACHE_PRIVATE = 'private, no-cache'
/** `main.8f3a01bc.js`, `index-BqK3x9Zt.css`: such a name stands for the same content in every version. */
const HASHED_NAME = /[.-][A-Za-z0-9_-]{8,64}\.[a-z0-9.]{1,16}$/

export type CdnOptions = { sites: Sites; damaged: DamagedObjects; refuse: Refuse; send: Send; mainUrl: () => string }

export class Cdn {
  readonly #ctx: Context
  readonly #options: CdnOptions
  readonly #auth: BasicAuth

  constructor(ctx: Context, options: CdnOptions) {
    this.#ctx = ctx
    this.#options = options
    this.#auth = new BasicAuth(ctx)
  }

  /** Responds to the exchange. */
  serve(exchange: Exchange, { game, namespace }: { game: string; namespace: string }): void {
    const onError = (error: unknown) => this.#options.refuse.request(exchange, error, headersOfRefusal(error))
    try {
      this.#respond(exchange, game, namespace)?.catch(onError)
    } catch (error) {
      onError(error)
    }
  }

  #respond(exchange: Exchange, game: string, namespace: string): void | Promise<void> {
    const { method, client_key } = exchange
    const is_preflight = isPreflight(exchange)
    if (method !== 'GET' && method !== 'HEAD' && !is_preflight) throw new ApiError('API_METHOD_NOT_ALLOWED')
    const path = filePath(exchange.path)
    return then(this.#options.sites.host(game, namespace, client_key), (found_host) => {
      if (found_host === null) throw new ApiError('SITE_NOT_FOUND')
      const host = hostOfClient(found_host, client_key)
      if (exchange.ray !== null) exchange.ray.owner = { kind: 'namespace', id: host.namespace_id }
      if (is_preflight) return this.#sendPreflight(exchange, host, path)
      return then(this.#requireUser(exchange, host), () => {
        if (path === WELL_KNOWN_PATH) return this.#sendWellKnown(exchange, host)
        return then(this.#findFile(host, path, client_key), (found) => this.#sendFound(exchange, host, found))
      })
    })
  }

  /** A preflight carries no password (Fetch standard, 4.8), so none is required. Its response shows only headers of routes. */
  #sendPreflight(exchange: Exchange, host: SiteHost, path: string): void {
    const { others } = host.headersOf(path)
    // The well-known file has no headers of routes.
    if (path === WELL_KNOWN_PATH || !allowsCors(others)) throw new ApiError('API_METHOD_NOT_ALLOWED')
    this.#ctx.recorder.end(exchange.ray, null)
    sendResponse(exchange, 204, sitePreflightHeaders(others), null)
  }

  #requireUser({ head, client_key }: Exchange, host: SiteHost): void | Promise<void> {
    if (host.users === null) return
    const site = { namespace_id: host.namespace_id, users: host.users }
    return then(this.#auth.isUser(site, headerOf(head, 'authorization'), client_key), (is_user) => {
      if (!is_user) throw new ApiError('API_UNAUTHORIZED', {}, { message: 'This site asks for a name and a password.' })
    })
  }

  #sendWellKnown(exchange: Exchange, { game_id, namespace_id, version_id }: SiteHost): void {
    const { send, mainUrl } = this.#options
    const body = Buffer.from(JSON.stringify({ matchmaker_url: mainUrl(), game_id, namespace_id, version_id }))
    const headers = ['content-type', 'application/json; charset=utf-8', 'cache-control', 'no-store', ...NOSNIFF]
    // A page in a sandboxed frame has an opaque origin, and every request of it needs CORS.
    headers.push('access-control-allow-origin', '*')
    send.bytes(exchange, 200, headers, body)
  }

  /** Returns null when the site has neither the file, nor a folder of this name, nor a page for unknown paths. */
  #findFile(host: SiteHost, path: string, client_key: string): FoundPage | null | Promise<FoundPage | null> {
    const { sites } = this.#options
    if (host.site === null) throw new ApiError('SITE_NOT_FOUND', {}, { message: 'No site is deployed here.' })
    return then(sites.manifest(host.site, client_key), (manifest) => {
      const entry = manifest.get(path)
      if (entry !== undefined) return { path, entry, status: 200 }
      const { previous, not_found } = host
      const other = findFolder(manifest, path) ?? findSubstitute(manifest, path, not_found)
      if (previous === null || this.#ctx.elapsed() >= previous.until_ms || !HASHED_NAME.test(path)) return other
      return then(sites.manifest(previous.site, client_key), (old) => {
        const older = old.get(path)
        return older === undefined ? other : { path, entry: older, status: 200, version_id: previous.version_id }
      })
    })
  }

  #sendFound(exchange: Exchange, host: SiteHost, found: FoundPage | null): void | Promise<void> {
    const is_found = found !== null && found.status !== 404
    if (!is_found) exchange.ray_id ??= newRayId()
    this.#ctx.recorder.end(exchange.ray, is_found ? null : 'API_NOT_FOUND')
    if (found?.status === 301) return this.#sendFolder(exchange, host, found.path)
    if (found !== null) return this.#sendFile(exchange, host, found)
    this.#options.send.bytes(exchange, 404, [...NOT_FOUND_HEADERS, ...NOSNIFF], NOT_FOUND_PAGE)
  }

  /** Redirects to the address of the folder. `index`: its page. */
  #sendFolder(exchange: Exchange, host: SiteHost, index: string): void {
    // A cache that kept the redirect would hide a file of this name that a later deploy adds.
    const headers = ['cache-control', cacheControl(host, index, null), ...NOSNIFF]
    if (host.users !== null) headers.push('vary', varyOf(false, true))
    headers.push(...host.headersOf(index).others, 'location', folderLocation(index, exchange.path))
    sendResponse(exchange, 301, [...headers, 'content-length', '0'], null)
  }

  #sendFile(exchange: Exchange, host: SiteHost, found: FoundPage): void | Promise<void> {
    const { path, entry, status } = found
    const { send, damaged } = this.#options
    const { head, method } = exchange
    // RFC 9110, 13.2.1 and 14.2: conditions and ranges apply only to a file that is found.
    const is_found = status === 200
    const wanted = is_found ? headerOf(head, 'range') : undefined
    const accept = headerOf(head, 'accept-encoding')
    const chosen = chooseRepresentation(withoutDamaged(damaged, entry), accept, wanted !== undefined)
    const { file, packed, unpacked, varies } = chosen
    const own = host.headersOf(path)
    const etag = is_found ? tagOf(chosen) : null
    // A cache that kept the page of an unknown path would hide a file that a later deploy adds.
    const cache_control = cacheControl(host, path, is_found ? own.cache_control : null)
    const headers = ['cache-control', cache_control, ...NOSNIFF]
    if (etag !== null) headers.push('etag', etag)
    if (isPage(path)) headers.push('server-timing', serverTimingOf(found.version_id ?? host.version_id))
    if (varies || host.users !== null) headers.push('vary', varyOf(varies, host.users !== null))
    if (own.others.length > 0) headers.push(...own.others)
    // RFC 9110, 13.1.1. A file has no date, so If-Unmodified-Since is ignored, as 13.1.4 says.
    if (etag !== null && !isWanted(headerOf(head, 'if-match'), etag)) {
      sendResponse(exchange, 412, ['content-length', '0', ...headers], null)
      return
    }
    if (etag !== null && isKnown(headerOf(head, 'if-none-match'), etag)) {
      sendResponse(exchange, 304, headers, null)
      return
    }
    const encoding = packed ?? file.content_encoding
    headers.push('content-type', own.content_type ?? file.content_type)
    if (unpacked !== null) return send.unpacked(exchange, file, unpacked, headers, status)
    if (encoding !== null) headers.push('content-encoding', encoding)
    if (packed !== null) return send.packed(exchange, file, packed, headers, status)
    if (is_found) headers.push('accept-ranges', 'bytes')
    const range = method === 'GET' ? rangeOf(wanted, headerOf(head, 'if-range'), file) : null
    return send.file(exchange, file, range, headers, status)
  }
}

/** A form that the edge makes of the file has a tag of its own. */
function tagOf({ file: { etag }, packed, unpacked }: Representation): string | null {
  const made = packed ?? (unpacked === null ? null : 'plain')
  return etag === null || made === null ? etag : `${etag.slice(0, -1)}-${made}"`
}

/** Removes damaged compressed forms that the platform made: the file itself is served instead. */
function withoutDamaged(damaged: DamagedObjects, entry: SiteEntry): SiteEntry {
  const isDamaged = (form: SiteFile | null): boolean => form?.is_packed === true && damaged.has(form.object_key)
  const [br, gzip] = [isDamaged(entry.br), isDamaged(entry.gzip)]
  return br || gzip ? { ...entry, br: br ? null : entry.br, gzip: gzip ? null : entry.gzip } : entry
}

function isPage(path: string): boolean {
  return path.endsWith('.html')
}

/** The header is the only one of its own response that a page can read, so it says which version the page is of. */
function serverTimingOf(version_id: string): string {
  return `${SITE_VERSION_METRIC};desc="${version_id}"`
}

function cacheControl(host: SiteHost, path: string, own: string | null): string {
  const is_page = isPage(path)
  const is_private = host.users !== null || (host.is_rolling_out && !HASHED_NAME.test(path))
  if (is_private) return is_page ? `${CACHE_PRIVATE}, no-store` : CACHE_PRIVATE
  return own ?? (is_page ? CACHE_PAGE : CACHE_FILE)
}

function varyOf(encoding: boolean, authorization: boolean): string {
  if (!authorization) return 'Accept-Encoding'
  return encoding ? 'Accept-Encoding, Authorization' : 'Authorization'
}

/** Returns the manifest's key for a request's path. Throws API_BAD_REQUEST for a path that cannot be decoded. */
function filePath(target: string): string {
  const query = target.indexOf('?')
  const encoded = query === -1 ? target : target.slice(0, query)
  try {
    return fileOfPathname(encoded)
  } catch {
    throw new ApiError('API_BAD_REQUEST', {}, { message: 'The path is not percent-encoded UTF-8.' })
  }
}
