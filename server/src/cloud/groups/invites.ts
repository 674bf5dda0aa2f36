// Invites to groups: open -> used up, expired, or revoked (when a member is kicked, who may know the code). The code is
// kept as a hash; nobody can be shown it a second time.
import {
  ApiError,
  type BodyOf,
  type createGroupInvite,
  type GroupHandle,
  INVITE_TTL_MS_MAX,
} from '@musterhost/contract'
import type { Static } from 'typebox'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
import type { Caller, CallerOf } from '../../tokens/caller.ts'
import { newCode } from '../../tokens/codes.ts'
import { requireGroup } from '../access.ts'
import { requireQuota } from '../quotas.ts'
import { handleOf } from './groups.ts'

const CODE_LENGTH = 12

/** Throws GROUP_NOT_FOUND or GROUP_INSUFFICIENT_PERMISSIONS. */
export async function createInvite(
  ctx: ChangeContext,
  caller: Caller,
  group_id: string,
  body: BodyOf<typeof createGroupInvite>,
): Promise<{ code: string }> {
  const code = newCode(CODE_LENGTH)
  const now = ctx.now()
  await changes(ctx, { group_id }, async (trx) => {
    await requireGroup(ctx, caller, group_id, trx)
    const invite = {
      role: body.role ?? 'developer',
      use_count_max: body.use_count ?? 1,
      expire_ts: new Date(now + (body.ttl ?? INVITE_TTL_MS_MAX)),
    }
    await trx
      .insertInto('group_invites')
      .values({ code_hash: hashOf(ctx, code), group_id, ...invite, create_ts: new Date(now) })
      .execute()
    return { before: {}, after: invite }
  })
  return { code }
}

/** Throws GROUP_INVITE_CODE_INVALID, _EXPIRED, _REVOKED or _ALREADY_USED. */
export async function findInvite(ctx: Context, code: string): Promise<Static<typeof GroupHandle>> {
  const invite = await ctx.db
    .selectFrom('group_invites')
    .innerJoin('groups', 'groups.group_id', 'group_invites.group_id')
    .select(['groups.group_id', 'display_name', 'use_count', 'use_count_max', 'expire_ts', 'revoke_ts'])
    .where('code_hash', '=', hashOf(ctx, code))
    .executeTakeFirst()
  requireOpen(ctx, invite)
  return handleOf(ctx, invite)
}

/** Throws what findInvite throws, GROUP_ALREADY_MEMBER or QUOTA_REACHED; then no use of the invite is counted. */
export async function consumeInvite(
  ctx: ChangeContext,
  caller: CallerOf<'user'>,
  code: string,
): Promise<{ group_id: string }> {
  const { user_id } = caller
  const code_hash = hashOf(ctx, code)
  const { group_id } = await findInvite(ctx, code)
  await changes(ctx, { group_id }, async (trx) => {
    // First the group, as everybody who changes its members does.
    await trx.selectFrom('groups').select('group_id').where('group_id', '=', group_id).forNoKeyUpdate().execute()
    const invite = await trx
      .selectFrom('group_invites')
      .select(['role', 'use_count', 'use_count_max', 'expire_ts', 'revoke_ts'])
      .where('code_hash', '=', code_hash)
      .executeTakeFirst()
    requireOpen(ctx, invite)
    const member = await trx
      .selectFrom('group_members')
      .select('user_id')
      .where('group_id', '=', group_id)
      .where('user_id', '=', user_id)
      .executeTakeFirst()
    if (member !== undefined) throw new ApiError('GROUP_ALREADY_MEMBER')
    // Counted here and not at the invite: an invite promises no place.
    await requireQuota(ctx, trx, group_id, 'members')
    await trx
      .insertInto('group_members')
      .values({ group_id, user_id, role: invite.role, join_ts: new Date(ctx.now()) })
      .execute()
    await trx
      .updateTable('group_invites')
      .set({ use_count: invite.use_count + 1 })
      .where('code_hash', '=', code_hash)
      .execute()
    return { before: {}, after: { member_user_id: user_id, role: invite.role } }
  })
  return { group_id }
}

type Invite = { use_count: number; use_count_max: number; expire_ts: Date; revoke_ts: Date | null }

function requireOpen<T extends Invite>(ctx: Context, invite: T | undefined): asserts invite is T {
  if (invite === undefined) throw new ApiError('GROUP_INVITE_CODE_INVALID')
  if (invite.revoke_ts !== null) throw new ApiError('GROUP_INVITE_CODE_REVOKED')
  if (invite.expire_ts.getTime() <= ctx.now()) throw new ApiError('GROUP_INVITE_CODE_EXPIRED')
  if (invite.use_count >= invite.use_count_max) throw new ApiError('GROUP_INVITE_CODE_ALREADY_USED')
}

function hashOf(ctx: Context, code: string): Buffer {
  return ctx.keys.mac('invite', code)
}
