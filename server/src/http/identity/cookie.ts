// The cookies of a session, and of a sign-in that has begun. With HTTPS, as in production, its `__Host-` name makes browsers bind it to this host, to HTTPS and
// to the root path. Development has no HTTPS.
import type { Config } from '../../config/config.ts'
import { SESSION_LIFETIME_MS } from '../../identity/sessions.ts'

const ATTRIBUTES = 'Path=/; HttpOnly; SameSite=Lax'

const SESSION = 'muster_session'
const FLOW = 'muster_sign_in'
/** As long as a sign-in with a provider may take. */
const FLOW_LIFETIME_S = 10 * 60

/** A Set-Cookie value. An empty `refresh_token` removes the cookie. */
export function sessionCookie(config: Config, refresh_token: string): string {
  return setCookie(config, SESSION, refresh_token, SESSION_LIFETIME_MS / 1_000)
}

/** The same for the sealed secrets of a sign-in with a provider. */
export function flowCookie(config: Config, sealed: string): string {
  return setCookie(config, FLOW, sealed, FLOW_LIFETIME_S)
}

/** The refresh token in a Cookie header; undefined without one, or with two. */
export function readSessionCookie(config: Config, header: string | undefined): string | undefined {
  return readCookie(config, SESSION, header)
}

export function readFlowCookie(config: Config, header: string | undefined): string | undefined {
  return readCookie(config, FLOW, header)
}

function setCookie(config: Config, name: string, value: string, lifetime_s: number): string {
  const age_s = value === '' ? 0 : lifetime_s
  const secure = config.public_scheme === 'https' ? '; Secure' : ''
  return `${nameOf(config, name)}=${value}; ${ATTRIBUTES}; Max-Age=${age_s}${secure}`
}

function nameOf(config: Config, name: string): string {
  return config.public_scheme === 'https' ? `__Host-${name}` : name
}

function readCookie(config: Config, name: string, header: string | undefined): string | undefined {
  const start = `${nameOf(config, name)}=`
  const found = (header ?? '')
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part.startsWith(start))
  return found.length === 1 ? found[0]?.slice(start.length) : undefined
}
