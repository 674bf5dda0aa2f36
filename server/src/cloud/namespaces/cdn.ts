// How a namespace's site may be visited. The edge and the matchmaker keep copies: a change is announced on the channel
// 'namespaces'. Passwords arrive as bcrypt hashes and are never returned.
import { ApiError, AUTH_USERS_MAX } from '@musterhost/contract'
import { type AuditedChange, type ChangeContext, changes } from '../../audit/changes.ts'
import { SECRET } from '../../audit/members.ts'
import type { Context, Database } from '../../context.ts'
import type { Caller } from '../../tokens/caller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { requireGame, requireLiving } from '../access.ts'

export type NamespaceOf = { game_id: string; namespace_id: string }

/** The edge computes these for strangers: a higher cost would be their lever. */
const BCRYPT_COST_MAX = 13
const BCRYPT_COST_MIN = 4
/** 22 characters of salt, 31 of hash, in bcrypt's own base64. */
const BCRYPT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/

/** Throws GAME_NOT_FOUND or NAMESPACE_NOT_FOUND, like the functions below. */
export async function setAuthType(
  ctx: ChangeContext,
  caller: Caller,
  namespace: NamespaceOf,
  cdn_auth_type: 'none' | 'basic',
): Promise<void> {
  await change(ctx, caller, namespace, async (trx, before) => {
    await trx
      .updateTable('namespaces')
      .set({ cdn_auth_type })
      .where('namespace_id', '=', namespace.namespace_id)
      .execute()
    return { before: { cdn_auth_type: before.cdn_auth_type }, after: { cdn_auth_type } }
  })
}

export async function setDomainPublicAuth(
  ctx: ChangeContext,
  caller: Caller,
  namespace: NamespaceOf,
  enable_domain_public_auth: boolean,
): Promise<void> {
  await change(ctx, caller, namespace, async (trx, before) => {
    await trx
      .updateTable('namespaces')
      .set({ enable_domain_public_auth })
      .where('namespace_id', '=', namespace.namespace_id)
      .execute()
    const { enable_domain_public_auth: was_enabled } = before
    return { before: { enable_domain_public_auth: was_enabled }, after: { enable_domain_public_auth } }
  })
}

/** Adds the user or replaces its hash. Throws CDN_INVALID_AUTH_USER_PASSWORD or CDN_TOO_MANY_AUTH_USERS. */
export async function setAuthUser(
  ctx: ChangeContext,
  caller: Caller,
  namespace: NamespaceOf,
  { user, password: password_hash }: { user: string; password: string },
): Promise<void> {
  const { namespace_id } = namespace
  await change(ctx, caller, namespace, async (trx) => {
    if (!isBcryptHash(password_hash)) throw new ApiError('CDN_INVALID_AUTH_USER_PASSWORD')
    const users = await trx
      .selectFrom('namespace_auth_users')
      .select('user')
      .where('namespace_id', '=', namespace_id)
      .execute()
    if (users.length >= AUTH_USERS_MAX && !users.some((row) => row.user === user)) {
      throw new ApiError('CDN_TOO_MANY_AUTH_USERS', { limit: AUTH_USERS_MAX, used: users.length })
    }
    await trx
      .insertInto('namespace_auth_users')
      .values({ namespace_id, user, password_hash, create_ts: new Date(ctx.now()) })
      .onConflict((conflict) => conflict.columns(['namespace_id', 'user']).doUpdateSet({ password_hash }))
      .execute()
    const is_known = users.some((row) => row.user === user)
    return { before: is_known ? { user } : {}, after: { user, password: SECRET } }
  })
}

/** A user that is not there is removed already. */
export async function removeAuthUser(
  ctx: ChangeContext,
  caller: Caller,
  namespace: NamespaceOf,
  user: string,
): Promise<void> {
  await change(ctx, caller, namespace, async (trx) => {
    const { numDeletedRows } = await trx
      .deleteFrom('namespace_auth_users')
      .where('namespace_id', '=', namespace.namespace_id)
      .where('user', '=', user)
      .executeTakeFirst()
    return { before: numDeletedRows === 0n ? {} : { user }, after: {} }
  })
}

/** By name, without the hashes. */
export async function listAuthUsers(ctx: Context, namespace_id: string): Promise<{ user: string }[]> {
  return ctx.db
    .selectFrom('namespace_auth_users')
    .select('user')
    .where('namespace_id', '=', namespace_id)
    .orderBy('user')
    .limit(AUTH_USERS_MAX)
    .execute()
}

function isBcryptHash(text: string): boolean {
  const cost = Number(BCRYPT.exec(text)?.[1] ?? Number.NaN)
  return cost >= BCRYPT_COST_MIN && cost <= BCRYPT_COST_MAX
}

type Before = { cdn_auth_type: 'none' | 'basic'; enable_domain_public_auth: boolean }

/** One after the other for a namespace, so that a count stays true until what rests on it is written. */
async function change(
  ctx: ChangeContext,
  caller: Caller,
  { game_id, namespace_id }: NamespaceOf,
  write: (trx: Database, before: Before) => Promise<AuditedChange>,
): Promise<void> {
  await requireGame(ctx, caller, game_id)
  await changes(ctx, { game_id, namespace_id }, async (trx) => {
    const row = await trx
      .selectFrom('namespaces')
      .select(['cdn_auth_type', 'enable_domain_public_auth', 'expire_ts'])
      .where('game_id', '=', game_id)
      .where('namespace_id', '=', namespace_id)
      .forUpdate()
      .executeTakeFirst()
    return write(trx, requireLiving(ctx, row))
  })
  await ctx.listener.notify(CHANNELS.namespaces, namespace_id)
}
