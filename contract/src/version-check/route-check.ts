// Checks the routes of a version's site beyond their schema. A route adds headers to the files of the site. They may say
// what a browser does with the files. They must not set what belongs to the platform (framing, type, access) or to other
// sites (cookies).
import type { ErrorDetail } from '../errors.ts'
import type { CdnRoute } from '../version-config.ts'

/** Names and values of all routes together: they travel in front of files, and heads are bounded. */
const HEADER_BYTES_MAX = 8 * 1024
const NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/
const VALUE = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/
/** Kept free, so that they may mean something one day. */
const GLOB_RESERVED = /[[\]{}!\\\p{Cc}]/u
const PLAIN_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}$/

const FORBIDDEN = new Set([
  ...['connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'expect', 'http2-settings'],
  ...['content-length', 'content-encoding', 'content-range', 'accept-ranges'],
  ...['etag', 'last-modified', 'vary', 'date', 'age', 'expires', 'pragma', 'status', 'server', 'via', 'warning'],
  ...['set-cookie', 'set-cookie2', 'www-authenticate', 'authorization', 'authentication-info', 'location', 'refresh'],
  ...['x-content-type-options', 'strict-transport-security', 'public-key-pins', 'expect-ct', 'alt-svc'],
  ...['nel', 'report-to', 'reporting-endpoints', 'x-ray-id', 'host', 'forwarded'],
])
const FORBIDDEN_PREFIX = /^(?:proxy-|x-forwarded-|sec-)/

/** `path` is where the routes stand in the config. */
export function checkRoutes(routes: readonly CdnRoute[], path: readonly string[]): ErrorDetail[] {
  const errors: ErrorDetail[] = []
  const seen = new Set<string>()
  let header_bytes = 0
  for (const [index, { glob, middlewares }] of routes.entries()) {
    const at = [...path, String(index)]
    const name = JSON.stringify(glob)
    if (GLOB_RESERVED.test(glob) || glob.startsWith('/')) {
      const message = `The glob ${name} begins with a slash, or has one of the characters [ ] { } ! \\ in it.`
      errors.push({ path: [...at, 'glob'], reason: 'invalid', message })
    }
    if (seen.has(glob)) {
      errors.push({ path: [...at, 'glob'], reason: 'not_unique', message: `The glob ${name} is there twice.` })
    }
    seen.add(glob)
    for (const [number, { kind }] of middlewares.entries()) {
      const headers_at = [...at, 'middlewares', String(number), 'kind', 'custom_headers', 'headers']
      for (const [position, header] of kind.custom_headers.headers.entries()) {
        header_bytes += header.name.length + header.value.length
        errors.push(...checkHeader(header, [...headers_at, String(position)]))
      }
    }
  }
  if (header_bytes > HEADER_BYTES_MAX) {
    const message = `The headers of all routes together are longer than ${HEADER_BYTES_MAX} bytes.`
    errors.push({ path: [...path], reason: 'too_long', message })
  }
  return errors
}

function checkHeader({ name, value }: { name: string; value: string }, path: readonly string[]): ErrorDetail[] {
  const lower = name.toLowerCase()
  const errors: ErrorDetail[] = []
  if (!NAME.test(name)) {
    const message = `${JSON.stringify(name)} is not the name of a header.`
    errors.push({ path: [...path, 'name'], reason: 'invalid', message })
  } else if (FORBIDDEN.has(lower) || FORBIDDEN_PREFIX.test(lower)) {
    errors.push({ path: [...path, 'name'], reason: 'forbidden', message: `A route cannot set the header ${lower}.` })
  }
  if (!VALUE.test(value)) {
    const message = `The value of ${JSON.stringify(name)} must be visible ASCII, with single lines and no space around.`
    errors.push({ path: [...path, 'value'], reason: 'invalid', message })
  } else if (lower === 'content-type' && !PLAIN_TYPE.test(value)) {
    const message = 'A content type is type/subtype in lower case, without parameters: text is UTF-8.'
    errors.push({ path: [...path, 'value'], reason: 'invalid', message })
  }
  return errors
}
