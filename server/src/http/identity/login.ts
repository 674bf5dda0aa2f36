import {
  ApiError,
  completeAccessTokenVerification,
  completeEmailVerification,
  inspectAuth,
  refreshIdentityToken,
  startEmailVerification,
} from '@musterhost/contract'
import type { AskProvider } from '../../captcha/provider.ts'
import { mainUrl } from '../../config/addresses.ts'
import type { Context } from '../../context.ts'
import { loginByAccessToken } from '../../identity/access-login.ts'
import { completeEmailLogin, requireEmailLogin, startEmailLogin } from '../../identity/email-login.ts'
import { inspectCaller } from '../../identity/inspect.ts'
import { requireLoginCaptcha } from '../../identity/login-captcha.ts'
import type { LoadSignInWork } from '../../identity/providers/open.ts'
import { closeSession, type Device, issueUserToken, refreshSession } from '../../identity/sessions.ts'
import { type Implementation, implement } from '../implement.ts'
import { readSessionCookie, sessionCookie } from './cookie.ts'

export const login = (askProvider: AskProvider, loadSignInWork: LoadSignInWork): Implementation[] => [
  implement(startEmailVerification, async ({ ctx, client_key, client_ip, origin, body }) => {
    refuseForeign(ctx, origin)
    requireEmailLogin(ctx)
    await requireLoginCaptcha(ctx, askProvider, client_ip, body.captcha?.turnstile?.client_response ?? null)
    return startEmailLogin(ctx, client_key, body.email)
  }),
  implement(completeEmailVerification, async (request) => {
    const { ctx, origin, body, setCookie } = request
    refuseForeign(ctx, origin)
    const { status, session } = await completeEmailLogin(ctx, body.verification_id, body.code, deviceOf(request))
    if (session !== null) setCookie(sessionCookie(ctx.config, session.refresh_token))
    return { status }
  }),
  implement(completeAccessTokenVerification, async (request) => {
    const { ctx, origin, body, setCookie } = request
    refuseForeign(ctx, origin)
    const session = await loginByAccessToken(ctx, body.access_token, deviceOf(request))
    setCookie(sessionCookie(ctx.config, session.refresh_token))
  }),
  implement(refreshIdentityToken, async (request) => {
    const { ctx, origin, cookie, body, setCookie } = request
    // A browser sends the cookie on behalf of any page. Only the hub's own pages may use it.
    if (origin === undefined) throw foreign(origin)
    refuseForeign(ctx, origin)
    const refresh_token = readSessionCookie(ctx.config, cookie)
    if (body.logout === true) {
      const provider_id = await closeSession(ctx, refresh_token)
      setCookie(sessionCookie(ctx.config, ''))
      if (provider_id === null) return {}
      const end_session_url = await (await loadSignInWork()).endSessionUrl(ctx, provider_id)
      return end_session_url === null ? {} : { end_session_url }
    }
    const session = await refreshSession(ctx, refresh_token, deviceOf(request))
    setCookie(sessionCookie(ctx.config, session.refresh_token))
    const { token, expire_ms } = issueUserToken(ctx, session)
    return { token, exp: new Date(expire_ms).toISOString(), identity_id: session.user_id }
  }),
  implement(inspectAuth, ({ caller, client_ip }) => ({ ...inspectCaller(caller), client_ip })),
]

/** From where a session is used. */
export function deviceOf({ client_ip, user_agent }: { client_ip: string; user_agent: string | null }): Device {
  return { client_ip, user_agent }
}

/** A foreign page must neither use a session nor create one. Programs send no Origin. */
export function refuseForeign(ctx: Context, origin: string | undefined): void {
  if (origin !== undefined && origin !== mainUrl(ctx.config)) throw foreign(origin)
}

function foreign(origin: string | undefined): ApiError {
  const message = origin === undefined ? 'This takes an Origin header: that of the hub.' : 'This is for the hub only.'
  return new ApiError('API_FORBIDDEN', {}, { message })
}
