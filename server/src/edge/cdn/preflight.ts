// Preflights of browsers (Fetch standard, 3.2.2) to a site, and the methods that files have. A site allows CORS by routes of
// its version, so the response to a preflight has the headers of those routes.

/** For API_METHOD_NOT_ALLOWED (RFC 9110, 15.5.6). */
export const METHOD_NOT_ALLOWED_HEADERS = ['allow', 'GET, HEAD']

/** What a route need not say. `*` leaves out Authorization: a route that wants it names it. */
const DEFAULTS = [
  ['access-control-allow-methods', 'GET, HEAD'],
  ['access-control-allow-headers', '*'],
  ['access-control-max-age', '600'],
] as const

/** `headers`: of the routes, names in lower case and values, one after the other. */
export function allowsCors(headers: readonly string[]): boolean {
  return hasHeader(headers, 'access-control-allow-origin')
}

export function sitePreflightHeaders(headers: readonly string[]): string[] {
  return [...headers, ...DEFAULTS.filter(([name]) => !hasHeader(headers, name)).flat()]
}

function hasHeader(headers: readonly string[], name: string): boolean {
  return headers.some((text, index) => index % 2 === 0 && text === name)
}
