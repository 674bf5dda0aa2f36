// From http to https, in production and where a certificate covers the host: then browsers are sent there, and the main
// domain tells them to come that way from now on. Never sent away are lobbies, WebSockets (no client of theirs follows), and
// what others ask over http to prove a domain.
import type { Config } from '../config.ts'
import { publicUrl } from '../config.ts'
import { clientBucket } from '../net/client-ip.ts'
import type { Certificates } from './certificates.ts'
import type { Exchange } from './forward.ts'
import type { RawHeaders } from './head.ts'

type Wanted = Pick<Exchange, 'host' | 'path' | 'client' | 'is_secure' | 'upgrade'>

const WELL_KNOWN_PROOF = /^\/\.well-known\/(?:acme-challenge|muster-domain)\//

/** Half a year. Sites and custom domains are not ours to bind for so long, nor are hosts below the main domain. */
const HSTS: RawHeaders = ['Strict-Transport-Security', 'max-age=15552000']

/** Where the request is to be made instead; null: it is answered. */
export function createRedirects(config: Config, certificates: Certificates | null): (wanted: Wanted) => string | null {
  if (certificates === null || !isHttpsPeoples(config)) return () => null
  return ({ host, path, client, is_secure, upgrade }) => {
    if (
      is_secure ||
      upgrade !== null ||
      WELL_KNOWN_PROOF.test(path) ||
      !certificates.covers(host, clientBucket(client))
    )
      return null
    return `${publicUrl(config, host)}${path}`
  }
}

/** What an answer of the main domain carries beside what it says. Over http it would mean nothing (RFC 6797, 7.2). */
export function hstsOf(config: Config, is_secure: boolean): RawHeaders | undefined {
  return is_secure && isHttpsPeoples(config) ? HSTS : undefined
}

function isHttpsPeoples({ mode, public_scheme }: Config): boolean {
  return mode === 'production' && public_scheme === 'https'
}
