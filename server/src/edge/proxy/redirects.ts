// Redirects from http to https, in production and where a certificate covers the host. The main domain also sends HSTS. Not
// redirected are lobbies, WebSockets (their clients follow no redirect), and the challenges that an authority fetches over
// http before it issues a certificate.
import { publicUrl } from '../../config/addresses.ts'
import type { Config } from '../../config/config.ts'
import type { Exchange } from '../http/exchange.ts'
import { linesOf } from '../http/headers.ts'
import type { Certificates } from '../tls/certificates.ts'

type Redirectable = Pick<Exchange, 'host' | 'path' | 'client_key' | 'is_secure' | 'head'>

const ACME_CHALLENGE = /^\/\.well-known\/acme-challenge\//

/** Half a year. Not sent for sites, custom domains and hosts below the main domain: their owners decide that. */
const HSTS = linesOf(['Strict-Transport-Security', 'max-age=15552000'])

/** Returns a function that returns the URL to redirect a request to; null: it is not redirected. */
export function createRedirects(
  config: Config,
  certificates: Certificates | null,
): (request: Redirectable) => string | null {
  if (certificates === null || !isHttpsPublic(config)) return () => null
  return ({ host, path, client_key, is_secure, head }) => {
    if (is_secure || head.is_upgrade || ACME_CHALLENGE.test(path) || !certificates.covers(host, client_key)) return null
    return `${publicUrl(config, host)}${path}`
  }
}

/** Returns the HSTS line for responses of the main domain. Over http it would be ignored (RFC 6797, 7.2). */
export function hstsOf(config: Config, is_secure: boolean): string {
  return is_secure && isHttpsPublic(config) ? HSTS : ''
}

function isHttpsPublic({ mode, public_scheme }: Config): boolean {
  return mode === 'production' && public_scheme === 'https'
}
