// The end of a session on both sides. After a sign-out here, the browser goes to the provider, which ends its session too. After a
// sign-out there, the provider sends a logout token, and the sessions that were opened before it end here.

import type { ApiError } from '@musterhost/contract'
import { errors, type JWTPayload } from 'jose'
import { asPlatform, changes } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
import { explainFailure, signInFailure } from './failures.ts'
import { CLOCK_TOLERANCE_S, type Issuers, webUrl } from './issuers.ts'
import { requireProvider, signOutUrl } from './rows.ts'

const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout'
/** The operation with the effect of a logout token. */
const OPERATION = 'auth.sessions.end'
const TYPES = [undefined, 'JWT', 'logout+jwt']

/** Where the browser ends the session at the provider. Null: the provider has no such address, or cannot be reached now. */
export async function endSessionUrl(ctx: Context, issuers: Issuers, provider_id: string): Promise<string | null> {
  const provider = await ctx.db
    .selectFrom('sign_in_providers')
    .select(['issuer', 'client_id'])
    .where('provider_id', '=', provider_id)
    .executeTakeFirst()
  if (provider === undefined) return null
  const issuer = await issuers.open(provider.issuer).catch(() => null)
  const url = webUrl(issuer?.as.end_session_endpoint)
  if (url === null) return null
  // Without the ID token, which is not kept, the provider asks the person first.
  url.searchParams.set('client_id', provider.client_id)
  url.searchParams.set('post_logout_redirect_uri', signOutUrl(ctx.config))
  return url.href
}

/** Ends the sessions that a logout token names. Throws SIGN_IN_PROVIDER_NOT_FOUND and SIGN_IN_FAILED. */
export async function logOut(
  ctx: Context,
  issuers: Issuers,
  { name, logout_token, client_ip }: { name: string; logout_token: string; client_ip: string },
): Promise<{ ended_count: number }> {
  const provider = await requireProvider(ctx.db, name)
  let claims: JWTPayload
  try {
    const { verify } = await issuers.open(provider.issuer)
    claims = await verify(logout_token, provider.client_id, { requiredClaims: ['iat', 'jti', 'events'] })
    requireType(logout_token)
  } catch (error) {
    throw explainFailure(error, provider.title)
  }
  const { sub, sid, iat = 0 } = requireLogout(claims)
  const { provider_id } = provider
  const as_platform = asPlatform(ctx, OPERATION)
  const audit = { ...as_platform.audit!, client_ip }
  const change = await changes({ ...as_platform, audit }, {}, async (trx) => {
    const ended = await trx
      .updateTable('user_sessions')
      .set({ end_ts: new Date(ctx.now()) })
      .where('provider_id', '=', provider_id)
      .where('end_ts', 'is', null)
      // A token that comes again does not end a later session.
      .where('create_ts', '<=', new Date((iat + CLOCK_TOLERANCE_S) * 1_000))
      .$if(sub !== undefined, (query) => query.where('provider_subject', '=', sub!))
      .$if(sid !== undefined, (query) =>
        query.where((of) =>
          sub === undefined
            ? of('provider_sid', '=', sid!)
            : of.or([of('provider_sid', '=', sid!), of('provider_sid', 'is', null)]),
        ),
      )
      .returning('user_id')
      .execute()
    const [first] = ended
    if (first === undefined) return null
    const after = { ended_count: ended.length, end_reason: 'provider_logout', provider: name }
    return { before: {}, after, actor: { actor_kind: 'platform', user_id: first.user_id }, ended_count: ended.length }
  })
  return { ended_count: change?.ended_count ?? 0 }
}

/** A token of another kind, as an ID token, must not end sessions. Throws an error of the library. */
function requireType(token: string): void {
  const [head = ''] = token.split('.', 1)
  const { typ } = JSON.parse(Buffer.from(head, 'base64url').toString()) as { typ?: string }
  if (!TYPES.includes(typ)) throw new errors.JWTInvalid('The token is of another type.')
}

function requireLogout(claims: JWTPayload): {
  sub?: string | undefined
  sid?: string | undefined
  iat?: number | undefined
} {
  const { sub, sid, events, nonce, iat } = claims as JWTPayload & { sid?: unknown; events?: unknown; nonce?: unknown }
  const is_logout = typeof events === 'object' && events !== null && Object.hasOwn(events, LOGOUT_EVENT)
  const session = typeof sid === 'string' ? sid : undefined
  if (!is_logout || nonce !== undefined || (sub === undefined && session === undefined)) throw noLogout()
  return { sub, sid: session, iat }
}

function noLogout(): ApiError {
  return signInFailure('token', 'This is no logout token: it has no event of a logout, or names no person or session.')
}
