// From http to https, in production and where a certificate covers the host: then browsers are sent there, and the main
// domain tells them to come that way from now on. Never sent away are lobbies, WebSockets (no client of theirs follows), and
// what an authority asks over http before it issues a certificate.

import { publicUrl } from '../../config/addresses.ts'
import type { Config } from '../../config/config.ts'
import type { Exchange } from '../http/exchange.ts'
import { linesOf } from '../http/head.ts'
import type { Certificates } from '../tls/certificates.ts'

type Wanted = Pick<Exchange, 'host' | 'path' | 'source' | 'is_secure' | 'head'>

const ACME_CHALLENGE = /^\/\.well-known\/acme-challenge\//

/** Half a year. Sites and custom domains are not ours to bind for so long, nor are hosts below the main domain. */
const HSTS = linesOf(['Strict-Transport-Security', 'max-age=15552000'])

/** Where the request is to be made instead; null: it is answered. */
export function createRedirects(config: Config, certificates: Certificates | null): (wanted: Wanted) => string | null {
  if (certificates === null || !isHttpsPeoples(config)) return () => null
  return ({ host, path, source, is_secure, head }) => {
    if (is_secure || head.is_upgrade || ACME_CHALLENGE.test(path) || !certificates.covers(host, source)) return null
    return `${publicUrl(config, host)}${path}`
  }
}

/** The line that an answer of the main domain carries beside what it says. Over http it would mean nothing (RFC 6797, 7.2). */
export function hstsOf(config: Config, is_secure: boolean): string {
  return is_secure && isHttpsPeoples(config) ? HSTS : ''
}

function isHttpsPeoples({ mode, public_scheme }: Config): boolean {
  return mode === 'production' && public_scheme === 'https'
}
