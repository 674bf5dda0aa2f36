// What people say of themselves: a name, which the members of their groups see.
import { ApiError, type BodyOf, type getSelfProfile, type ResponseOf, updateProfile } from '@muster/contract'
import { type Caller, userOf } from '../caller.ts'
import type { Context } from '../context.ts'
import { createShapeCheck } from '../shape.ts'

/** What is wrong with a profile that somebody wants to have. */
export const checkProfile = createShapeCheck(updateProfile.body)

/** Throws API_FORBIDDEN when no person calls. */
export async function findProfile(
  ctx: Context,
  caller: Caller,
): Promise<ResponseOf<typeof getSelfProfile>['identity']> {
  const { user_id, display_name, create_ts, email, access_name } = await ctx.db
    .selectFrom('users')
    .select(['user_id', 'display_name', 'create_ts', 'email', 'access_name'])
    .where('user_id', '=', requirePerson(caller))
    .executeTakeFirstOrThrow()
  return {
    identity_id: user_id,
    display_name,
    is_registered: true,
    is_admin: caller.kind === 'admin',
    join_ts: create_ts.toISOString(),
    linked_accounts: [
      ...(email === null ? [] : [{ email: { email } }]),
      ...(access_name === null ? [] : [{ access_token: { name: access_name } }]),
    ],
  }
}

/** Throws API_FORBIDDEN when no person calls. */
export async function changeProfile(
  ctx: Context,
  caller: Caller,
  profile: BodyOf<typeof updateProfile>,
): Promise<void> {
  const user_id = requirePerson(caller)
  await ctx.db.updateTable('users').set(profile).where('user_id', '=', user_id).execute()
}

function requirePerson(caller: Caller): string {
  const user_id = userOf(caller)
  if (user_id === null) throw new ApiError('API_FORBIDDEN', {}, { message: 'This is for people who have logged in.' })
  return user_id
}
