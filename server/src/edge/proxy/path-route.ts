// The path route (`/lobbies/LOBBY/PORT/...` on the main domain) carries a lobby's responses under the origin of the hub, and
// lobbies run what strangers uploaded. So the lobby sees no credential that the client meant for the main domain, its
// response headers come from an allow list, and a document that it sends is sandboxed.
import { hasCredential } from '../../tokens/credentials.ts'
import type { Upstream } from '../http/exchange.ts'
import { linesOf } from '../http/head.ts'
import { createNameTable } from '../http/lines.ts'

/**
 * Headers about this one response. A header is missing here when it acts on the origin, starts a request, or shows a
 * dialog of the browser; a header that is new to the web is missing too. `Date` and framing are decided in head.ts.
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

export const PATH_ROUTE: Pick<Upstream, 'isRequestDropped' | 'response_allowed' | 'response_added'> = {
  // Cookies of the main domain are the hub's. Other Authorization than the platform's is the game's own.
  isRequestDropped: (name, value) => name === 'cookie' || (name === 'authorization' && hasCredential(value)),
  response_allowed: RESPONSE_ALLOWED,
  response_added: linesOf(['Content-Security-Policy', 'sandbox', 'X-Content-Type-Options', 'nosniff']),
}
