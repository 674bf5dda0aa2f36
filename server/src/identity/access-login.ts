// Logging in with the operator's access token. It opens a session of the administrator with the token's name.
import { ApiError } from '@musterhost/contract'
import type { Transaction } from 'kysely'
import { type AuditedChange, type ChangeContext, changes } from '../audit/changes.ts'
import type { Schema } from '../database/schema.ts'
import { newId } from '../ids.ts'
import { type Device, openSession, type UserSession } from './sessions.ts'

/** Characters of a display name, as in the contract. */
const NAME_LENGTH_MAX = 24

/** Throws TOKEN_INVALID (also for a token of another kind), TOKEN_EXPIRED or TOKEN_REVOKED. */
export async function loginByAccessToken(
  ctx: ChangeContext,
  access_token: string,
  device: Device,
): Promise<UserSession> {
  const token = ctx.keys.verify(access_token, ctx.now())
  if (ctx.revoked.has(token.token_id)) throw new ApiError('TOKEN_REVOKED')
  if (token.kind !== 'access') throw new ApiError('TOKEN_INVALID', {}, { message: 'This is not an access token.' })
  const { session } = await changes(ctx, {}, (trx) => openAdminSession(ctx, trx, token, device))
  return session
}

/** Opens a session of the administrator with this name, as a change for the audit log. The session ends with the token. */
export async function openAdminSession(
  ctx: ChangeContext,
  trx: Transaction<Schema>,
  { name, token_id }: { name: string; token_id: string | null },
  device: Device,
): Promise<AuditedChange & { session: UserSession }> {
  const now = ctx.now()
  await trx
    .insertInto('users')
    .values({
      user_id: newId(now),
      access_name: name,
      display_name: name.slice(0, NAME_LENGTH_MAX),
      create_ts: new Date(now),
    })
    .onConflict((conflict) => conflict.column('access_name').doNothing())
    .execute()
  const { user_id } = await trx
    .selectFrom('users')
    .select('user_id')
    .where('access_name', '=', name)
    .executeTakeFirstOrThrow()
  const session = await openSession(ctx, trx, { user_id, access_token_id: token_id, device })
  const actor = { actor_kind: 'admin', user_id, actor_name: name, ...(token_id === null ? {} : { token_id }) }
  return { before: {}, after: { session_id: session.session_id }, actor, session }
}
