// Members of a group, and what they may do. Changes of one group's members are serialised, and each is checked against the
// rights that the caller has at that moment. They hold for the very next request.
import {
  ApiError,
  GROUP_MEMBERS_MAX,
  type GroupRole,
  type getGroupMembers,
  type ResponseOf,
} from '@musterhost/contract'
import type { Transaction } from 'kysely'
import { type AuditedChange, type ChangeContext, changes } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'
import type { Caller, CallerOf } from '../../tokens/caller.ts'
import { requireGroup } from '../access.ts'
import { timestamp } from '../times.ts'

/** Throws GROUP_NOT_FOUND. */
export async function listMembers(
  ctx: Context,
  caller: Caller,
  group_id: string,
): Promise<Omit<ResponseOf<typeof getGroupMembers>, 'watch'>> {
  await requireGroup(ctx, caller, group_id)
  const rows = await ctx.db
    .selectFrom('group_members')
    .innerJoin('users', 'users.user_id', 'group_members.user_id')
    .select(['users.user_id', 'display_name', 'email', 'role', 'join_ts'])
    .where('group_id', '=', group_id)
    .orderBy('join_ts')
    .orderBy('users.user_id')
    .limit(GROUP_MEMBERS_MAX)
    .execute()
  return {
    members: rows.map(({ user_id, display_name, email, role, join_ts }) => ({
      identity: { identity_id: user_id, display_name, ...(email === null ? {} : { email }) },
      role,
      join_ts: timestamp(join_ts),
    })),
  }
}

/** Throws GROUP_NOT_FOUND, GROUP_INSUFFICIENT_PERMISSIONS, GROUP_NOT_MEMBER or GROUP_OWNER_REQUIRED. */
export async function setMemberRole(
  ctx: ChangeContext,
  caller: Caller,
  group_id: string,
  user_id: string,
  role: Exclude<GroupRole, 'owner'>,
): Promise<void> {
  await changing(ctx, caller, group_id, async (trx) => {
    const before = await requireNotOwner(trx, group_id, user_id)
    await setRole(trx, group_id, user_id, role)
    return { before: { role: before }, after: { role, member_user_id: user_id } }
  })
}

/** Throws GROUP_NOT_FOUND, GROUP_INSUFFICIENT_PERMISSIONS, GROUP_NOT_MEMBER or GROUP_OWNER_REQUIRED. */
export async function kickMember(ctx: ChangeContext, caller: Caller, group_id: string, user_id: string): Promise<void> {
  await changing(ctx, caller, group_id, async (trx) => {
    const role = await requireNotOwner(trx, group_id, user_id)
    await removeMember(trx, group_id, user_id)
    await trx
      .updateTable('group_invites')
      .set({ revoke_ts: new Date(ctx.now()) })
      .where('group_id', '=', group_id)
      .where('revoke_ts', 'is', null)
      .execute()
    return { before: { member_user_id: user_id, role }, after: {} }
  })
}

/** Throws GROUP_NOT_FOUND or GROUP_OWNER_REQUIRED. */
export async function leaveGroup(ctx: ChangeContext, caller: CallerOf<'user'>, group_id: string): Promise<void> {
  await changing(ctx, caller, group_id, async (trx) => {
    const role = await requireNotOwner(trx, group_id, caller.user_id)
    await removeMember(trx, group_id, caller.user_id)
    return { before: { member_user_id: caller.user_id, role }, after: {} }
  })
}

/** Throws GROUP_NOT_FOUND, GROUP_INSUFFICIENT_PERMISSIONS or GROUP_NOT_MEMBER. A transfer to the owner changes nothing. */
export async function transferOwnership(
  ctx: ChangeContext,
  caller: Caller,
  group_id: string,
  user_id: string,
): Promise<void> {
  await changing(ctx, caller, group_id, async (trx) => {
    await requireMember(trx, group_id, user_id)
    const owners = await trx
      .updateTable('group_members')
      .set({ role: 'developer' })
      .where('group_id', '=', group_id)
      .where('role', '=', 'owner')
      .returning('user_id')
      .execute()
    await setRole(trx, group_id, user_id, 'owner')
    return { before: { owner_user_id: owners[0]?.user_id }, after: { owner_user_id: user_id } }
  })
}

async function changing(
  ctx: ChangeContext,
  caller: Caller,
  group_id: string,
  change: (trx: Transaction<Schema>) => Promise<AuditedChange>,
): Promise<void> {
  await changes(ctx, { group_id }, async (trx) => {
    await requireGroup(ctx, caller, group_id, trx)
    return change(trx)
  })
}

async function requireMember(trx: Transaction<Schema>, group_id: string, user_id: string): Promise<GroupRole> {
  const row = await trx
    .selectFrom('group_members')
    .select('role')
    .where('group_id', '=', group_id)
    .where('user_id', '=', user_id)
    .executeTakeFirstOrThrow(() => new ApiError('GROUP_NOT_MEMBER'))
  return row.role
}

async function requireNotOwner(trx: Transaction<Schema>, group_id: string, user_id: string): Promise<GroupRole> {
  const role = await requireMember(trx, group_id, user_id)
  if (role === 'owner') throw new ApiError('GROUP_OWNER_REQUIRED')
  return role
}

async function setRole(trx: Transaction<Schema>, group_id: string, user_id: string, role: GroupRole): Promise<void> {
  await trx
    .updateTable('group_members')
    .set({ role })
    .where('group_id', '=', group_id)
    .where('user_id', '=', user_id)
    .execute()
}

async function removeMember(trx: Transaction<Schema>, group_id: string, user_id: string): Promise<void> {
  await trx.deleteFrom('group_members').where('group_id', '=', group_id).where('user_id', '=', user_id).execute()
}
