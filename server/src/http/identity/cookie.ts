// The cookie of a session. With HTTPS, as in production, its `__Host-` name makes browsers bind it to this host, to HTTPS and
// to the root path. Development has no HTTPS.
import type { Config } from '../../config/config.ts'
import { SESSION_LIFETIME_MS } from '../../identity/sessions.ts'

const ATTRIBUTES = 'Path=/; HttpOnly; SameSite=Lax'

function nameOf(config: Config): string {
  return config.public_scheme === 'https' ? '__Host-muster_session' : 'muster_session'
}

/** A Set-Cookie value. An empty `refresh_token` removes the cookie. */
export function sessionCookie(config: Config, refresh_token: string): string {
  const age_s = refresh_token === '' ? 0 : SESSION_LIFETIME_MS / 1000
  const secure = config.public_scheme === 'https' ? '; Secure' : ''
  return `${nameOf(config)}=${refresh_token}; ${ATTRIBUTES}; Max-Age=${age_s}${secure}`
}

/** The refresh token in a Cookie header; undefined without one, or with two. */
export function readSessionCookie(config: Config, header: string | undefined): string | undefined {
  const start = `${nameOf(config)}=`
  const found = (header ?? '')
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part.startsWith(start))
  return found.length === 1 ? found[0]?.slice(start.length) : undefined
}
