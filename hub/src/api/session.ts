// The session of the person. The browser keeps it in a cookie that scripts cannot read. The page keeps only the user token,
// which is valid for minutes, in memory, and exchanges the cookie for a new one before it expires.
import { CallError, errorOf } from './call-error.ts'

export type SignInState = { state: 'unknown' } | { state: 'signed_out' } | { state: 'signed_in'; identity_id: string }

type UserToken = { token: string; expire_ms: number; identity_id: string }

/** A token with less time left is exchanged first. */
const TOKEN_LEFT_MS_MIN = 60_000

let session: SignInState = { state: 'unknown' }
let user_token: UserToken | null = null
let exchange: Promise<UserToken | null> | null = null
const listeners = new Set<() => void>()

function setSession(next: SignInState): void {
  session = next
  for (const listener of listeners) listener()
}

export function readSession(): SignInState {
  return session
}

export function onSessionChange(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Returns a valid user token, or null when the person is signed out. Throws a CallError when the platform cannot say. */
export async function userToken(): Promise<string | null> {
  if (user_token !== null && user_token.expire_ms - Date.now() > TOKEN_LEFT_MS_MIN) return user_token.token
  exchange ??= exchangeCookie().finally(() => {
    exchange = null
  })
  return (await exchange)?.token ?? null
}

/** Forgets the user token after the platform has refused it. The next call exchanges the cookie again. */
export function dropUserToken(token: string): void {
  if (user_token?.token === token) user_token = null
}

async function exchangeCookie(): Promise<UserToken | null> {
  const response = await fetch('/auth/tokens/identity', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  }).catch(() => {
    throw CallError.unreachable()
  })
  if (!response.ok) {
    const error = await errorOf(response)
    if (error.code !== 'TOKEN_REFRESH_NOT_FOUND' && error.code !== 'TOKEN_REVOKED') throw error
    user_token = null
    setSession({ state: 'signed_out' })
    return null
  }
  const { token, exp, identity_id } = (await response.json()) as { token: string; exp: string; identity_id: string }
  user_token = { token, expire_ms: Date.parse(exp), identity_id }
  if (session.state !== 'signed_in' || session.identity_id !== identity_id) {
    setSession({ state: 'signed_in', identity_id })
  }
  return user_token
}

/**
 * Ends the session on the platform. The page then shows the sign-in form, or the provider's own sign-out. The platform closes the feeds of the session before
 * its response arrives here: until then no feed gets a token, which the platform would refuse.
 */
export async function signOut(): Promise<void> {
  await exchange?.catch(() => null)
  user_token = null
  const logout = endSession()
  exchange = logout.then(
    () => null,
    () => null,
  )
  const end_session_url = await logout.finally(() => {
    exchange = null
  })
  // The provider leads back to the sign-in form. A step of the router meanwhile could end that navigation.
  if (end_session_url !== null) location.assign(end_session_url)
  else setSession({ state: 'signed_out' })
}

/** Returns where the person signs out of the provider too, or null. */
async function endSession(): Promise<string | null> {
  const response = await fetch('/auth/tokens/identity', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"logout":true}',
  })
  if (!response.ok) throw await errorOf(response)
  const { end_session_url } = (await response.json()) as { end_session_url?: string }
  return end_session_url !== undefined && /^https?:/.test(end_session_url) ? end_session_url : null
}
