// The path route (`/lobbies/LOBBY/PORT/...` on the main domain) serves a lobby's responses under the origin of the hub, and
// lobbies run uploaded code that is not trusted. So the lobby receives no credential of the main domain, its response
// headers are limited to an allow list, and its documents are sandboxed.
import { ApiError } from '@musterhost/contract'
import { hasCredential } from '../../tokens/credentials.ts'
import { linesOf } from '../http/headers.ts'
import { createNameTable } from '../http/lines.ts'
import type { Backend } from './forwarded-request.ts'

/**
 * Headers about this one response. Left out are headers that act on the origin, start a request, or show a dialog of the
 * browser, and every header that is new to the web. response-head.ts decides about `Date` and framing.
 */
const RESPONSE_ALLOWED = createNameTable<true>(
  [
    ...['content-type', 'content-encoding', 'content-language', 'content-disposition', 'content-range'],
    ...['accept-ranges', 'cache-control', 'age', 'expires', 'etag', 'last-modified', 'vary'],
    ...['location', 'retry-after', 'allow'],
    ...['access-control-allow-origin', 'access-control-allow-credentials', 'access-control-allow-headers'],
    ...['access-control-allow-methods', 'access-control-expose-headers', 'access-control-max-age'],
    ...['cross-origin-resource-policy', 'timing-allow-origin', 'server-timing'],
    ...['sec-websocket-accept', 'sec-websocket-extensions', 'sec-websocket-protocol', 'sec-websocket-version'],
  ].map((name) => [name, true] as const),
)

const BASIC = /^basic +([A-Za-z0-9+/=_-]+)$/i

export const PATH_ROUTE: Pick<Backend, 'isRequestDropped' | 'response_allowed' | 'response_added'> = {
  // Cookies of the main domain belong to the hub. Headers without a credential of the platform belong to the game.
  isRequestDropped: (name, value) =>
    name === 'cookie' || hasCredential(value) || (name === 'authorization' && hasCredential(basicText(value))),
  response_allowed: RESPONSE_ALLOWED,
  response_added: linesOf(['Content-Security-Policy', 'sandbox', 'X-Content-Type-Options', 'nosniff']),
}

/**
 * Throws API_BAD_REQUEST when the target has a credential of the platform: WebSockets of the API take one in the query, and
 * a client that uses the same query here would hand it to the lobby. `target`: the path and the query of the request.
 */
export function requireNoCredential(target: string): void {
  if (!hasCredential(target) && !hasCredential(decoded(target))) return
  const message =
    'The address has a token of the platform, which no lobby may receive. Send the player token of the seat, or connect to the host of the lobby.'
  throw new ApiError('API_BAD_REQUEST', {}, { message })
}

/** Names and passwords of Basic authentication (RFC 7617), decoded. Empty for other values. */
function basicText(value: string): string {
  const [, encoded = ''] = BASIC.exec(value) ?? []
  return Buffer.from(encoded, 'base64').toString('latin1')
}

/** A target that cannot be decoded is no form in which a program finds a token. */
function decoded(target: string): string {
  try {
    return decodeURIComponent(target)
  } catch {
    return ''
  }
}
