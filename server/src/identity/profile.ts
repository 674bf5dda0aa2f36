// The profile of a user: a display name, which the members of their groups see.
import { ApiError, type BodyOf, updateProfile } from '@musterhost/contract'
import { createShapeCheck } from '@musterhost/contract/schema-check'
import { sql } from 'kysely'
import { type ChangeContext, changes } from '../audit/changes.ts'
import type { Context } from '../context.ts'
import { type Caller, userOf } from '../tokens/caller.ts'
import { constantMembers, type Profile } from './constant-members.ts'

/** Account numbers have four digits. */
const ACCOUNT_NUMBER_MAX = 9_999

/** Returns what is wrong with a new profile. */
export const checkProfile = createShapeCheck(updateProfile.body)

/** Accounts at providers that one profile shows. */
const ACCOUNTS_MAX = 20

type ShownAccount = { issuer: string; title: string | null; email: string | null }

/** Null: the user has none. */
const providerAccounts = sql<ShownAccount[] | null>`(
  select json_agg(json_build_object('issuer', issuer, 'title', title, 'email', email))
  from (
    select a.issuer, a.email,
      (select title from sign_in_providers p where p.issuer = a.issuer order by name limit 1) as title
    from provider_accounts a where a.user_id = users.user_id order by a.create_ts limit ${sql.lit(ACCOUNTS_MAX)}
  ) as shown)`.as('accounts')

/** Throws API_FORBIDDEN when the caller is not a user. */
export async function findProfile(ctx: Context, caller: Caller): Promise<Profile> {
  const { user_id, display_name, create_ts, email, access_name, accounts } = await ctx.db
    .selectFrom('users')
    .select(['user_id', 'display_name', 'create_ts', 'email', 'access_name', providerAccounts])
    .where('user_id', '=', requireUser(caller))
    .executeTakeFirstOrThrow()
  return {
    ...constantMembers(ctx),
    identity_id: user_id,
    display_name,
    account_number: accountNumberOf(user_id),
    is_registered: true,
    is_admin: caller.kind === 'admin',
    join_ts: create_ts.toISOString(),
    linked_accounts: [
      ...(email === null ? [] : [{ email: { email } }]),
      ...(access_name === null ? [] : [{ access_token: { name: access_name } }]),
      ...(accounts ?? []).map(({ issuer, title, email: reported }) => ({
        provider: {
          issuer,
          ...(title === null ? {} : { title }),
          ...(reported === null ? {} : { email: reported }),
        },
      })),
    ],
  }
}

/** Throws API_FORBIDDEN when the caller is not a user. */
export async function changeProfile(
  ctx: ChangeContext,
  caller: Caller,
  profile: BodyOf<typeof updateProfile>,
): Promise<void> {
  const user_id = requireUser(caller)
  await changes(ctx, {}, async (trx) => {
    const before = await trx
      .selectFrom('users')
      .select('display_name')
      .where('user_id', '=', user_id)
      .forNoKeyUpdate()
      .executeTakeFirstOrThrow()
    await trx.updateTable('users').set(profile).where('user_id', '=', user_id).execute()
    return { before, after: profile }
  })
}

/** The account number is not stored: it is derived from the random part of the id, and does not change. */
function accountNumberOf(user_id: string): number {
  return 1 + (Number.parseInt(user_id.slice(-12), 16) % ACCOUNT_NUMBER_MAX)
}

function requireUser(caller: Caller): string {
  const user_id = userOf(caller)
  if (user_id === null) throw new ApiError('API_FORBIDDEN', {}, { message: 'This is for users who have logged in.' })
  return user_id
}
