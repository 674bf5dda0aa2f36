// Links that sign an administrator in once. A link is 32 random bytes; the database has its hash, so a reader of the database
// cannot use it. It is good for an hour, and ends earlier with the access token of the administrator who made it.
import { hash, randomBytes } from 'node:crypto'
import { ApiError } from '@musterhost/contract'
import { type ChangeContext, changes } from '../audit/changes.ts'
import { tokenOf } from '../audit/events.ts'
import { mainUrl } from '../config/addresses.ts'
import type { CallerOf } from '../tokens/caller.ts'
import { openAdminSession } from './access-login.ts'
import type { Device, UserSession } from './sessions.ts'

const LINK_LIFETIME_MS = 60 * 60_000
const LINK_BYTES = 32
/** Links that are open at the same time. Beyond it the oldest ones are removed. */
const LINKS_MAX = 100
const SIGN_IN_PATH = '/sign-in'

/** Throws API_FORBIDDEN for an administrator by a provider. */
export async function createSignInLink(
  ctx: ChangeContext,
  caller: CallerOf<'admin'>,
): Promise<{ url: string; expire_ts: string }> {
  const link = randomBytes(LINK_BYTES).toString('base64url')
  const now = ctx.now()
  const expire_ts = new Date(now + LINK_LIFETIME_MS)
  const access_token_id = await accessTokenOf(ctx)
  await changes(ctx, {}, async (trx) => {
    await trx
      .insertInto('sign_in_links')
      .values({
        link_hash: hashOf(link),
        access_name: caller.name,
        access_token_id,
        create_ts: new Date(now),
        expire_ts,
        use_ts: null,
      })
      .execute()
    await trx
      .deleteFrom('sign_in_links')
      .where('link_hash', 'in', (of) =>
        of.selectFrom('sign_in_links').select('link_hash').orderBy('expire_ts', 'desc').offset(LINKS_MAX),
      )
      .execute()
    return { before: {}, after: { expire_ts } }
  })
  return { url: `${mainUrl(ctx.config)}${SIGN_IN_PATH}?link=${link}`, expire_ts: expire_ts.toISOString() }
}

/** Throws SIGN_IN_LINK_INVALID for a link that is unknown, used or expired, or whose access token was revoked. */
export async function loginByLink(ctx: ChangeContext, link: string, device: Device): Promise<UserSession> {
  const now = new Date(ctx.now())
  const { session } = await changes(ctx, {}, async (trx) => {
    const row = await trx
      .updateTable('sign_in_links')
      .set({ use_ts: now })
      .where('link_hash', '=', hashOf(link))
      .where('use_ts', 'is', null)
      .where('expire_ts', '>', now)
      .returning(['access_name', 'access_token_id'])
      .executeTakeFirstOrThrow(() => new ApiError('SIGN_IN_LINK_INVALID'))
    const { access_name, access_token_id } = row
    if (access_token_id !== null && ctx.revoked.has(access_token_id)) throw new ApiError('SIGN_IN_LINK_INVALID')
    return openAdminSession(ctx, trx, { name: access_name, token_id: access_token_id }, device)
  })
  return session
}

/** The access token behind the call: its own credential, or the one that opened the session. */
async function accessTokenOf(ctx: ChangeContext): Promise<string | null> {
  const token = tokenOf(ctx.keys, ctx.audit?.authorization)
  if (token?.kind === 'access') return token.token_id
  if (token?.kind !== 'user') return null
  const session = await ctx.db
    .selectFrom('user_sessions')
    .select(['access_token_id', 'provider_id'])
    .where('session_id', '=', token.session_id)
    .executeTakeFirst()
  if (session !== undefined && session.provider_id !== null) {
    const message =
      'A provider of sign-ins made you an administrator, so a link would outlast it. Sign in with the provider on the other device.'
    throw new ApiError('API_FORBIDDEN', {}, { message })
  }
  return session?.access_token_id ?? null
}

function hashOf(link: string): Buffer {
  return hash('sha256', link, 'buffer')
}
