// CORS (Fetch standard, 3.2) of lobbies. Pages run under other origins than lobbies. The edge's own refusals can be read by
// every page: they contain no secret. Where the edge checks the seats, it also responds to preflights, which show no token
// and so may not reach the server. `*` covers no request with cookies, so a page can only use a token that it has.
import { headerOf } from './header-lines.ts'

const PREFLIGHT_AGE_S = 600

/** Headers by which every page may read a response to a request without cookies. */
export const READABLE = ['access-control-allow-origin', '*', 'access-control-expose-headers', 'x-ray-id, retry-after']
/** The same as a line, for a server that says nothing about it. */
export const READABLE_LINE = 'Access-Control-Allow-Origin: *\r\n'

export function isPreflight({ method, head }: { method: string; head: { lines: string } }): boolean {
  if (method !== 'OPTIONS' || headerOf(head, 'origin') === undefined) return false
  return headerOf(head, 'access-control-request-method') !== undefined
}

/** `token_header`: the one that may carry the player token. */
export function preflightHeaders(token_header: string): string[] {
  return [
    ...READABLE,
    ...['access-control-allow-methods', 'GET, HEAD, POST, PUT, PATCH, DELETE'],
    ...['access-control-allow-headers', `*, authorization, content-type, ${token_header}`],
    ...['access-control-max-age', String(PREFLIGHT_AGE_S)],
  ]
}
