// Checks who a group or a game belongs to, and which of its members may do what. Every function on a group, a game, or on
// something below one, begins here. What an operation asks of a member stands in the contract and comes with the caller.
import assert from 'node:assert'
import { ApiError, type ErrorCode, GROUP_ROLES, type GroupRole } from '@musterhost/contract'
import type { Kysely, Transaction } from 'kysely'
import type { Context } from '../context.ts'
import type { Schema } from '../database/schema.ts'
import type { Caller } from '../tokens/caller.ts'

/**
 * Throws GAME_NOT_FOUND (or `unknown`) for an unknown game, and likewise for a game that is not the caller's: nobody learns
 * which games exist. Throws GROUP_INSUFFICIENT_PERMISSIONS when the caller's role does not suffice.
 */
export function requireGame(
  ctx: Context,
  caller: Caller,
  game_id: string,
  unknown: ErrorCode = 'GAME_NOT_FOUND',
): Promise<void> {
  return requireGames(ctx, caller, [game_id], unknown)
}

/** The same for all of them: one that is not the caller's is as if none were. */
export async function requireGames(
  ctx: Context,
  caller: Caller,
  game_ids: readonly string[],
  unknown: ErrorCode = 'GAME_NOT_FOUND',
): Promise<void> {
  const wanted = [...new Set(game_ids)]
  if (wanted.length === 0) return
  const rows = await ctx.db
    .selectFrom('games')
    .select(['game_id', 'developer_group_id'])
    .where('game_id', 'in', wanted)
    .execute()
  if (rows.length < wanted.length) throw new ApiError(unknown)
  const others = rows.filter(({ game_id }) => !(caller.kind === 'cloud' && caller.game_id === game_id))
  for (const group_id of new Set(others.map((row) => row.developer_group_id))) {
    await requireRight(ctx, caller, group_id, unknown)
  }
}

/** The namespace must belong to this game, whose access was checked before. Throws NAMESPACE_NOT_FOUND. */
export async function requireNamespace(
  ctx: Context,
  game_id: string,
  namespace_id: string,
  db: Kysely<Schema> = ctx.db,
): Promise<{ name_id: string }> {
  const row = await db
    .selectFrom('namespaces')
    .select(['name_id', 'expire_ts'])
    .where('game_id', '=', game_id)
    .where('namespace_id', '=', namespace_id)
    .executeTakeFirst()
  return requireLiving(ctx, row)
}

/** A namespace that has expired is treated as deleted, also in the seconds before its row is gone. Throws NAMESPACE_NOT_FOUND. */
export function requireLiving<T extends { expire_ts: Date | null }>(ctx: Context, row: T | undefined): T {
  if (row === undefined) throw new ApiError('NAMESPACE_NOT_FOUND')
  if (row.expire_ts !== null && row.expire_ts.getTime() <= ctx.now()) {
    const expire_ts = row.expire_ts.toISOString()
    ctx.log.warn({ expire_ts }, 'a request names a namespace that has expired and is being deleted')
    throw new ApiError('NAMESPACE_NOT_FOUND', { expire_ts }, { message: `The namespace expired at ${expire_ts}.` })
  }
  return row
}

/**
 * Throws GROUP_NOT_FOUND for an unknown group and for a caller who is not its member, or GROUP_INSUFFICIENT_PERMISSIONS.
 * With `trx`, the result holds until the end of that transaction: changes of the members wait.
 */
export async function requireGroup(
  ctx: Context,
  caller: Caller,
  group_id: string,
  trx?: Transaction<Schema>,
): Promise<void> {
  await (trx ?? ctx.db)
    .selectFrom('groups')
    .select('group_id')
    .where('group_id', '=', group_id)
    .$if(trx !== undefined, (query) => query.forNoKeyUpdate())
    .executeTakeFirstOrThrow(() => new ApiError('GROUP_NOT_FOUND'))
  await requireRight(ctx, caller, group_id, 'GROUP_NOT_FOUND', trx)
}

async function requireRight(
  ctx: Context,
  caller: Caller,
  group_id: string,
  unknown: ErrorCode,
  trx?: Transaction<Schema>,
): Promise<void> {
  if (caller.kind === 'admin') return
  if (caller.kind !== 'user') throw new ApiError(unknown)
  const { user_id, role: needed } = caller
  const member = await (trx ?? ctx.db)
    .selectFrom('group_members')
    .select('role')
    .where('group_id', '=', group_id)
    .where('user_id', '=', user_id)
    .executeTakeFirstOrThrow(() => new ApiError(unknown))
  assert(needed !== null, 'An operation on a group or a game says in the contract what it asks of a member.')
  if (suffices(member.role, needed)) return
  const message = `This takes the role ${needed} in the group; yours is ${member.role}.`
  throw new ApiError('GROUP_INSUFFICIENT_PERMISSIONS', { role: member.role, needed, group_id }, { message })
}

function suffices(role: GroupRole, needed: GroupRole): boolean {
  return GROUP_ROLES.indexOf(role) <= GROUP_ROLES.indexOf(needed)
}
