// Groups: who develops games. Made by the operator; members come with logging in.
import {
  ApiError,
  type BodyOf,
  type createGroup as createGroupOperation,
  type ErrorDetail,
  GROUP_DISPLAY_NAME_LENGTH_MAX,
  type GroupSummary,
} from '@muster/contract'
import type { Static } from 'typebox'
import type { Context } from '../context.ts'
import { newId } from '../ids.ts'
import { checkDisplayName } from './field-errors.ts'
import { LIST_MAX } from './lists.ts'
import { timestamp } from './times.ts'

type Summary = Static<typeof GroupSummary>

export async function createGroup(
  ctx: Context,
  body: BodyOf<typeof createGroupOperation>,
): Promise<{ group_id: string }> {
  const now = ctx.now()
  const group_id = newId(now)
  await ctx.db
    .insertInto('groups')
    .values({ group_id, display_name: body.display_name, create_ts: new Date(now) })
    .execute()
  return { group_id }
}

export async function listGroups(ctx: Context): Promise<{ groups: Summary[] }> {
  const rows = await ctx.db
    .selectFrom('groups')
    .select(['group_id', 'display_name', 'create_ts'])
    .orderBy('create_ts', 'desc')
    .orderBy('group_id', 'desc')
    .limit(LIST_MAX)
    .execute()
  return { groups: rows.map((row) => ({ ...row, create_ts: timestamp(row.create_ts) })) }
}

/** Throws GROUP_NOT_FOUND. */
export async function findGroup(ctx: Context, group_id: string): Promise<Summary> {
  const row = await ctx.db
    .selectFrom('groups')
    .select(['group_id', 'display_name', 'create_ts'])
    .where('group_id', '=', group_id)
    .executeTakeFirst()
  if (row === undefined) throw new ApiError('GROUP_NOT_FOUND')
  return { ...row, create_ts: timestamp(row.create_ts) }
}

/** Names of groups need not be unique: nothing is addressed by them. */
export function checkGroup(draft: { display_name: string }): ErrorDetail[] {
  return checkDisplayName(draft.display_name, GROUP_DISPLAY_NAME_LENGTH_MAX)
}
