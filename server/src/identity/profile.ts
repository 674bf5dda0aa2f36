// The profile of a user: a display name, which the members of their groups see.
import { ApiError, type BodyOf, updateProfile } from '@musterhost/contract'
import { createShapeCheck } from '@musterhost/contract/schema-check'
import { type ChangeContext, changes } from '../audit/changes.ts'
import type { Context } from '../context.ts'
import { type Caller, userOf } from '../tokens/caller.ts'
import { constantMembers, type Profile } from './constant-members.ts'

/** Largest number that is shown beside a display name. */
/** Account numbers have four digits. */
const ACCOUNT_NUMBER_MAX = 9_999

/** Returns what is wrong with a new profile. */
export const checkProfile = createShapeCheck(updateProfile.body)

/** Throws API_FORBIDDEN when the caller is not a user. */
export async function findProfile(ctx: Context, caller: Caller): Promise<Profile> {
  const { user_id, display_name, create_ts, email, access_name } = await ctx.db
    .selectFrom('users')
    .select(['user_id', 'display_name', 'create_ts', 'email', 'access_name'])
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
