// Which user an account of a provider is: the one that it was before; else, where the operator allows it, the user with the
// same verified e-mail address; else a new one. The subject of an issuer names an account for ever, an address does not.
import { sql, type Transaction } from 'kysely'
import type { Context } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'
import { newId } from '../../ids.ts'
import { displayNameOf, emailOf, isEmailVerified, type PersonClaims } from './claims.ts'
import type { Provider } from './rows.ts'

/** `how`: whether the account was known, is linked now, or has a new user. */
type AccountUser = { user_id: string; how: 'known' | 'linked' | 'created' }

export async function userOfAccount(
  ctx: Context,
  trx: Transaction<Schema>,
  { issuer, settings }: Pick<Provider, 'issuer' | 'settings'>,
  { subject, claims }: { subject: string; claims: PersonClaims },
): Promise<AccountUser> {
  const now = new Date(ctx.now())
  const email = emailOf(claims)
  // Two first sign-ins of one account at once would make two users.
  await sql`select pg_advisory_xact_lock(hashtextextended(${`account ${issuer} ${subject}`}, 0))`.execute(trx)
  const known = await trx
    .updateTable('provider_accounts')
    .set({ sign_in_ts: now, email })
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .returning('user_id')
    .executeTakeFirst()
  if (known !== undefined) return { user_id: known.user_id, how: 'known' }
  const trusted_email = settings.links_by_email && isEmailVerified(claims) ? email : null
  const found = trusted_email === null ? null : await linkable(trx, issuer, trusted_email)
  const user: AccountUser =
    found === null || found === 'taken'
      ? await createUser(ctx, trx, displayNameOf(claims), found === 'taken' ? null : trusted_email)
      : { user_id: found, how: 'linked' }
  await trx
    .insertInto('provider_accounts')
    .values({ issuer, subject, user_id: user.user_id, email, create_ts: now, sign_in_ts: now })
    .execute()
  return user
}

/**
 * The user with this address. Null: there is none. `taken`: the user has another account of the issuer, which gave the address
 * to a second person.
 */
async function linkable(trx: Transaction<Schema>, issuer: string, email: string): Promise<string | 'taken' | null> {
  const user = await trx.selectFrom('users').select('user_id').where('email', '=', email).executeTakeFirst()
  if (user === undefined) return null
  const other = await trx
    .selectFrom('provider_accounts')
    .select('subject')
    .where('user_id', '=', user.user_id)
    .where('issuer', '=', issuer)
    .executeTakeFirst()
  return other === undefined ? user.user_id : 'taken'
}

/**
 * `email`: null unless the operator trusts the provider with it. A user with an address is the user of a log-in by e-mail too, so
 * a provider that lies could prepare a user for a stranger.
 */
async function createUser(
  ctx: Context,
  trx: Transaction<Schema>,
  display_name: string,
  email: string | null,
): Promise<AccountUser> {
  const user_id = newId(ctx.now())
  const { numInsertedOrUpdatedRows } = await trx
    .insertInto('users')
    .values({ user_id, email, display_name, create_ts: new Date(ctx.now()) })
    .onConflict((conflict) => conflict.column('email').doNothing())
    .executeTakeFirst()
  if (numInsertedOrUpdatedRows !== 0n) return { user_id, how: 'created' }
  // A log-in by e-mail has made the user a moment ago.
  const { user_id: made_id } = await trx
    .selectFrom('users')
    .select('user_id')
    .where('email', '=', email)
    .executeTakeFirstOrThrow()
  return { user_id: made_id, how: 'linked' }
}
