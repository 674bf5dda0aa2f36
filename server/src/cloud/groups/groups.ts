// Groups: who develops games. The user who creates a group owns it. A group that was created with the operator's own token
// has no owner until a member has joined and receives the ownership.
import {
  ApiError,
  type BodyOf,
  type createGroup as createGroupOperation,
  type ErrorDetail,
  GROUP_DISPLAY_NAME_LENGTH_MAX,
  type GroupHandle,
  type GroupSummary,
  NO_OWNER_ID,
  type QuotaUse,
} from '@musterhost/contract'
import type { Static } from 'typebox'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import { mainUrl } from '../../config/addresses.ts'
import type { Context } from '../../context.ts'
import { newId } from '../../ids.ts'
import { type Caller, userOf } from '../../tokens/caller.ts'
import { requireGroup } from '../access.ts'
import { checkDisplayName } from '../field-errors.ts'
import { cut, LIST_MAX } from '../lists.ts'
import { quotasOf, usageOfGroups } from '../quotas.ts'
import { timestamp } from '../times.ts'

type Summary = Static<typeof GroupSummary>

/** Throws API_FORBIDDEN when only administrators may make groups and the caller is none. */
export async function createGroup(
  ctx: ChangeContext,
  caller: Caller,
  body: BodyOf<typeof createGroupOperation>,
): Promise<{ group_id: string }> {
  if (caller.kind === 'user' && ctx.config.access === 'private') {
    const message = 'On this platform only administrators make groups; ask one for an invite.'
    throw new ApiError('API_FORBIDDEN', {}, { message })
  }
  const now = ctx.now()
  const group_id = newId(now)
  const owner = userOf(caller)
  await changes(ctx, { group_id }, async (trx) => {
    await trx
      .insertInto('groups')
      .values({ group_id, display_name: body.display_name, create_ts: new Date(now) })
      .execute()
    const after = { display_name: body.display_name, owner_user_id: owner }
    if (owner === null) return { before: {}, after }
    await trx
      .insertInto('group_members')
      .values({ group_id, user_id: owner, role: 'owner', join_ts: new Date(now) })
      .execute()
    return { before: {}, after }
  })
  return { group_id }
}

/** Lists the caller's groups, newest first: an administrator sees all groups, a cloud token the group of its game. */
export async function listGroups(ctx: Context, caller: Caller): Promise<{ groups: Summary[]; is_cut: boolean }> {
  const found = await summaries(ctx, caller)
    .$if(caller.kind === 'user', (query) =>
      query.where('groups.group_id', 'in', (of) =>
        of.selectFrom('group_members').select('group_id').where('user_id', '=', userOf(caller)),
      ),
    )
    .$if(caller.kind === 'cloud', (query) =>
      query.where('groups.group_id', 'in', (of) =>
        of
          .selectFrom('games')
          .select('developer_group_id')
          .where('game_id', '=', caller.kind === 'cloud' ? caller.game_id : null),
      ),
    )
    .orderBy('create_ts', 'desc')
    .orderBy('group_id', 'desc')
    .limit(LIST_MAX + 1)
    .execute()
  const { rows, is_cut } = cut(found)
  return { groups: rows.map((row) => toSummary(ctx, row)), is_cut }
}

/** Throws GROUP_NOT_FOUND. */
export async function findGroup(ctx: Context, caller: Caller, group_id: string): Promise<Summary> {
  await requireGroup(ctx, caller, group_id)
  const row = await summaries(ctx, caller)
    .where('groups.group_id', '=', group_id)
    .executeTakeFirstOrThrow(() => new ApiError('GROUP_NOT_FOUND'))
  return toSummary(ctx, row)
}

/** Throws GROUP_NOT_FOUND. */
export async function findQuotas(ctx: Context, caller: Caller, group_id: string): Promise<{ quotas: QuotaUse[] }> {
  await requireGroup(ctx, caller, group_id)
  const usage = await usageOfGroups(ctx, [group_id])
  return { quotas: quotasOf(ctx, usage.get(group_id)!) }
}

/** Throws GROUP_NOT_FOUND or GROUP_INSUFFICIENT_PERMISSIONS. */
export async function renameGroup(
  ctx: ChangeContext,
  caller: Caller,
  group_id: string,
  display_name: string,
): Promise<void> {
  await requireGroup(ctx, caller, group_id)
  await changes(ctx, { group_id }, async (trx) => {
    const group = trx.selectFrom('groups').select('display_name').where('group_id', '=', group_id)
    const before = await group.forNoKeyUpdate().executeTakeFirstOrThrow(() => new ApiError('GROUP_NOT_FOUND'))
    await trx.updateTable('groups').set({ display_name }).where('group_id', '=', group_id).execute()
    return { before, after: { display_name } }
  })
}

/** Names of groups need not be unique: nothing is addressed by them. */
export function checkGroup(draft: { display_name: string }): ErrorDetail[] {
  return checkDisplayName(draft.display_name, GROUP_DISPLAY_NAME_LENGTH_MAX)
}

/** A group as other records name it. */
export function handleOf(
  { config }: Context,
  { group_id, display_name }: { group_id: string; display_name: string },
): Static<typeof GroupHandle> {
  return { group_id, display_name, external: { profile: `${mainUrl(config)}/groups/${group_id}` }, is_developer: true }
}

function summaries(ctx: Context, caller: Caller) {
  const user_id = userOf(caller)
  return ctx.db
    .selectFrom('groups')
    .select(['groups.group_id', 'groups.display_name', 'groups.create_ts'])
    .select((of) => [
      of
        .selectFrom('group_members as member')
        .whereRef('member.group_id', '=', 'groups.group_id')
        .select(({ fn }) => fn.countAll<number>().as('member_count'))
        .as('member_count'),
      of
        .selectFrom('group_members as owner')
        .whereRef('owner.group_id', '=', 'groups.group_id')
        .where('owner.role', '=', 'owner')
        .select('owner.user_id')
        .as('owner_identity_id'),
      of
        .selectFrom('group_members as own')
        .whereRef('own.group_id', '=', 'groups.group_id')
        .where('own.user_id', '=', user_id)
        .select('own.role')
        .as('role'),
    ])
}

type Row = Awaited<ReturnType<ReturnType<typeof summaries>['execute']>>[number]

function toSummary(ctx: Context, { owner_identity_id, role, ...row }: Row): Summary {
  return {
    ...handleOf(ctx, row),
    bio: '',
    publicity: 'closed',
    create_ts: timestamp(row.create_ts),
    member_count: Number(row.member_count),
    is_current_identity_member: role !== null,
    owner_identity_id: owner_identity_id ?? NO_OWNER_ID,
    ...(role === null ? {} : { role }),
  }
}
