// Which names a site can have: names in the public DNS below a public suffix, none of the platform's own. There is one
// spelling of each, the one that browsers send: lower case, ASCII, without the dot at the end.
import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { ApiError } from '@musterhost/contract'
import { getDomain, parse } from 'tldts'
import type { Config } from '../../config/config.ts'

/** Characters of a domain name. */
const NAME_LENGTH_MAX = 253
const NAME = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
/** What the URL parser would take as something else than a name, or silently leave out. */
const NOT_IN_A_NAME = /[\s:/?#@[\]\\%\u00ad\u200b-\u200f\u2060\ufeff]/

/** Null when `text` is no domain name. */
function canonicalDomain(text: string): string | null {
  if (NOT_IN_A_NAME.test(text)) return null
  const ascii = domainToASCII(text.replace(/\.$/, ''))
  if (ascii.length > NAME_LENGTH_MAX || !NAME.test(ascii) || isIP(ascii) !== 0) return null
  return ascii
}

/** The canonical spelling. Throws CDN_INVALID_DOMAIN. */
export function requireDomain(domains: Config['domains'], text: string): string {
  const name = canonicalDomain(text)
  if (name === null) throw invalid('not_a_domain', 'This is not a domain name.')
  const { domain, isIcann, isPrivate } = parse(name, { allowPrivateDomains: true })
  if (domain === null || !(isIcann || isPrivate)) {
    throw invalid('no_public_domain', `${name} is not below a public suffix that names are registered under.`)
  }
  const own = Object.values(domains).map((item) => getDomain(item, { allowPrivateDomains: true }) ?? item)
  if (own.includes(domain)) throw invalid('own_domain', `${domain} is the platform's own.`)
  return name
}

function invalid(reason: string, message: string): ApiError {
  return new ApiError('CDN_INVALID_DOMAIN', { reason }, { message })
}
