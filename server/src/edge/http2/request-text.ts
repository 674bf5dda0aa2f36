// The head of a request over HTTP/2 as the text that HTTP/1.1 would have. The edge then reads it by http/head.ts, so a request
// has the same checks over both. What text cannot hold, or would mean something else there, is refused here.
import { ApiError } from '@musterhost/contract'

/** Fields about one connection (RFC 9113, 8.2.2). HTTP/1.1 would give them a meaning. */
const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
])
const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const PSEUDO = 0x3a

/**
 * `fields`: names and values in turns, as they came. `has_body`: the stream continues after them. A body of unknown length is
 * chunked. Throws API_BAD_REQUEST.
 */
export function requestText(fields: readonly string[], has_body: boolean): string {
  let [method, path, authority, cookies, lines] = ['', '', '', '', '']
  let has_length = false
  for (let index = 0; index < fields.length; index += 2) {
    const name = fields[index]!
    const value = fields[index + 1]!
    if (!VALUE.test(value)) throw malformed()
    if (name.charCodeAt(0) === PSEUDO) {
      if (name === ':method') method = value
      else if (name === ':path') path = value
      else if (name === ':authority') authority = value
      else if (name !== ':scheme') throw malformed()
      continue
    }
    if (!NAME.test(name) || CONNECTION_FIELDS.has(name)) throw malformed()
    if (name === 'cookie') {
      cookies += cookies === '' ? value : `; ${value}`
      continue
    }
    if (name === 'content-length') has_length = true
    // A host that differs becomes a second one, which is refused.
    if (name === 'host' && value === authority) continue
    lines += `${name}: ${value}\r\n`
  }
  if (authority !== '') lines = `host: ${authority}\r\n${lines}`
  if (cookies !== '') lines += `cookie: ${cookies}\r\n`
  if (has_body && !has_length) lines += 'transfer-encoding: chunked\r\n'
  return `${method} ${path} HTTP/1.1\r\n${lines}\r\n`
}

function malformed(): ApiError {
  return new ApiError('API_BAD_REQUEST')
}
