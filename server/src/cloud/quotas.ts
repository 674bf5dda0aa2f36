// The quotas of a group. Everything that creates a row under a quota locks the group's row while it counts and inserts, so
// that a quota is exact however many requests create at once.
import { ApiError, QUOTA_NAMES, type QuotaUse } from '@musterhost/contract'
import { type RawBuilder, sql, type Transaction } from 'kysely'
import type { Config } from '../config/config.ts'
import type { Context } from '../context.ts'
import type { Schema } from '../database/schema.ts'

type Trx = Transaction<Schema>
type Quota = keyof Config['quotas']
export const QUOTAS: readonly Quota[] = QUOTA_NAMES

/** Holds the group until the transaction ends. Throws GROUP_NOT_FOUND. */
export async function lockGroup(trx: Trx, group_id: string): Promise<void> {
  await trx
    .selectFrom('groups')
    .select('group_id')
    .where('group_id', '=', group_id)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow(() => new ApiError('GROUP_NOT_FOUND'))
}

/** Locks the group of a game, and returns its id. Throws GAME_NOT_FOUND, also when the game was deleted meanwhile. */
export async function lockGroupOf(trx: Trx, game_id: string): Promise<string> {
  const groupOf = async (): Promise<string> => {
    const query = trx.selectFrom('games').select('developer_group_id').where('game_id', '=', game_id)
    const row = await query.executeTakeFirstOrThrow(() => new ApiError('GAME_NOT_FOUND'))
    return row.developer_group_id
  }
  const group_id = await groupOf()
  await lockGroup(trx, group_id)
  if ((await groupOf()) === group_id) return group_id
  const message = 'The game is being moved to another group.'
  throw new ApiError('API_NOT_AVAILABLE', {}, { message, retry_after_s: 1 })
}

/** For who holds the group. Throws QUOTA_REACHED unless there is room for `wanted` more. */
export async function requireQuota(ctx: Context, trx: Trx, group_id: string, quota: Quota, wanted = 1): Promise<void> {
  const limit = ctx.config.quotas[quota]
  if (limit === null) return
  const used = await usedOf(trx, group_id, quota)
  if (used + wanted <= limit) return
  const message =
    quota === 'bytes'
      ? `The group stores ${used} of ${limit} bytes, and ${wanted} more are too many.`
      : `The group has ${used} of ${limit} ${quota}.`
  throw new ApiError('QUOTA_REACHED', { quota, limit, used, ...(quota === 'bytes' ? { wanted } : {}) }, { message })
}

async function usedOf(trx: Trx, group_id: string, quota: Quota): Promise<number> {
  const { rows } = await sql<{ used: number }>`select ${usageOf(group_id, quota)}`.execute(trx)
  return Number(Object.values(rows[0]!)[0])
}

function usageOf(group_id: string, quota: Quota): RawBuilder<unknown> {
  const of_games = sql`game_id in (select game_id from games where developer_group_id = ${group_id})`
  // Nothing that is prepared is refused later for lack of room, so it counts from the first moment.
  if (quota === 'bytes') return sql`coalesce(sum(content_length), 0)::bigint from uploads where ${of_games}`
  if (quota === 'members') return sql`count(*) from group_members where group_id = ${group_id}`
  if (quota === 'domains') return sql`count(*) from domains join namespaces using (namespace_id) where ${of_games}`
  return sql`count(*) from ${sql.table(quota)} where ${of_games}`
}

export type QuotaUsage = Record<Quota, number>

/** What each group uses now, by group. Nothing is locked: it may have changed when it is read. */
export async function usageOfGroups({ pool }: Context, group_ids: readonly string[]): Promise<Map<string, QuotaUsage>> {
  const of = (quota: Quota, count: string, from: string): string =>
    `select developer_group_id as group_id, '${quota}' as quota, ${count}::bigint as used from games ${from}
      where developer_group_id = any($1) group by 1`
  const parts = [
    of('games', 'count(*)', ''),
    of('namespaces', 'count(*)', 'join namespaces using (game_id)'),
    of('builds', 'count(*)', 'join builds using (game_id)'),
    of('sites', 'count(*)', 'join sites using (game_id)'),
    of('bytes', 'sum(content_length)', 'join uploads using (game_id)'),
    of('domains', 'count(*)', 'join namespaces using (game_id) join domains using (namespace_id)'),
    "select group_id, 'members', count(*) from group_members where group_id = any($1) group by 1",
  ]
  const { rows } = await pool.query<{ group_id: string; quota: Quota; used: number }>(parts.join(' union all '), [
    group_ids,
  ])
  const nothing = (): QuotaUsage => ({ games: 0, namespaces: 0, builds: 0, sites: 0, bytes: 0, domains: 0, members: 0 })
  const usage = new Map(group_ids.map((group_id) => [group_id, nothing()]))
  for (const { group_id, quota, used } of rows) usage.get(group_id)![quota] = Number(used)
  return usage
}

/** Each quota of a group with its limit, as the contract has it. */
export function quotasOf({ config }: Context, usage: QuotaUsage): QuotaUse[] {
  return QUOTAS.map((quota) => {
    const limit = config.quotas[quota]
    return { quota, used: usage[quota], ...(limit === null ? {} : { limit }) }
  })
}
