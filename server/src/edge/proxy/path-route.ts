// The path route (`/lobbies/LOBBY/PORT/...` on the main domain) serves a lobby's responses under the origin of the hub, and
// lobbies run uploaded code that is not trusted. So the lobby receives no credential of the main domain, its response
// headers are limited to an allow list, and its documents are sandboxed.
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

export const PATH_ROUTE: Pick<Backend, 'isRequestDropped' | 'response_allowed' | 'response_added'> = {
  // Cookies of the main domain belong to the hub. An Authorization that is not the platform's belongs to the game.
  isRequestDropped: (name, value) => name === 'cookie' || (name === 'authorization' && hasCredential(value)),
  response_allowed: RESPONSE_ALLOWED,
  response_added: linesOf(['Content-Security-Policy', 'sandbox', 'X-Content-Type-Options', 'nosniff']),
}
