// Namespaces that expire, such as those of previews. After `expire_ts` the API and the matchmaker treat a namespace as
// deleted. The matchmaker stops its lobbies (matchmaker/watch/expired-namespaces.ts). When none runs, a job of the api deletes
// the namespace as a request would. Both parts read only the row, so each continues after a restart.
import type { BodyOf, ErrorDetail, updateGameNamespaceExpiry } from '@musterhost/contract'
import { NAMESPACE_LIFETIME_MS_MAX } from '@musterhost/contract'
import { asPlatform, type ChangeContext, changes } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
import { type Sweeper, startSweeper } from '../../database/sweeper.ts'
import type { Caller } from '../../tokens/caller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { requireGame, requireLiving } from '../access.ts'
import { throwErrors } from '../field-errors.ts'
import { lockGroupOf } from '../quotas.ts'
import { deleteNamespaceRows, namespaceLobbies } from '../records/deletion.ts'

const DELETE_EVERY_MS = 5_000
/** Time for requests under way: a lobby that they still create is stopped, and keeps the namespace until then. */
const REQUESTS_END_MS = 10_000
/** Namespaces that one run deletes; the rest is for the next. */
const DELETED_MAX = 100

/** What is wrong with the time, as fields. */
export function checkExpireTs(ctx: Context, expire_ts: string | undefined): ErrorDetail[] {
  if (expire_ts === undefined) return []
  const path = ['expire_ts']
  const remaining_ms = Date.parse(expire_ts) - ctx.now()
  if (remaining_ms <= 0) {
    const message = `expire_ts is in the past: it is ${new Date(ctx.now()).toISOString()} now.`
    return [{ path, reason: 'too_low', message }]
  }
  if (remaining_ms <= NAMESPACE_LIFETIME_MS_MAX) return []
  const latest = new Date(ctx.now() + NAMESPACE_LIFETIME_MS_MAX).toISOString()
  return [{ path, reason: 'too_high', message: `expire_ts must not be later than ${latest}.` }]
}

/** Throws GAME_NOT_FOUND, NAMESPACE_NOT_FOUND, also for a namespace that has expired, or VALIDATION_ERROR. */
export async function setExpiry(
  ctx: ChangeContext,
  caller: Caller,
  namespace: { game_id: string; namespace_id: string },
  { expire_ts }: BodyOf<typeof updateGameNamespaceExpiry>,
): Promise<void> {
  await requireGame(ctx, caller, namespace.game_id)
  throwErrors(checkExpireTs(ctx, expire_ts))
  const after = { expire_ts: expire_ts === undefined ? null : new Date(expire_ts) }
  await changes(ctx, namespace, async (trx) => {
    const row = await trx
      .selectFrom('namespaces')
      .select('expire_ts')
      .where('game_id', '=', namespace.game_id)
      .where('namespace_id', '=', namespace.namespace_id)
      .forNoKeyUpdate()
      .executeTakeFirst()
    const before = requireLiving(ctx, row)
    await trx.updateTable('namespaces').set(after).where('namespace_id', '=', namespace.namespace_id).execute()
    return { before, after }
  })
  await ctx.listener.notify(CHANNELS.namespaces, namespace.namespace_id)
}

export function startExpiry(ctx: Context): Sweeper {
  const remove = (): Promise<number> => deleteExpiredNamespaces(ctx)
  return startSweeper(ctx, 'api', DELETE_EVERY_MS, [{ what: 'expired namespaces', remove }])
}

/** Returns how many were deleted. One that cannot be deleted does not keep the others. */
async function deleteExpiredNamespaces(ctx: Context): Promise<number> {
  const expired = await ctx.db
    .selectFrom('namespaces')
    .select(['game_id', 'namespace_id', 'name_id', 'expire_ts'])
    .where('expire_ts', '<=', new Date(ctx.now() - REQUESTS_END_MS))
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('lobbies')
            .whereRef('lobbies.namespace_id', '=', 'namespaces.namespace_id')
            .where('stop_ts', 'is', null),
        ),
      ),
    )
    .orderBy('expire_ts')
    .limit(DELETED_MAX)
    .execute()
  let count = 0
  for (const { name_id, expire_ts, ...namespace } of expired) {
    const about = { ...namespace, name_id, expire_ts }
    try {
      if (!(await deleteExpired(ctx, namespace))) continue
      count++
      ctx.log.info(about, 'a namespace has expired and was deleted')
    } catch (error) {
      ctx.log.error({ err: error, ...about }, 'an expired namespace could not be deleted; trying again')
    }
  }
  return count
}

/** False: it has been deleted or prolonged since it was read, or got a lobby. */
async function deleteExpired(ctx: Context, namespace: { game_id: string; namespace_id: string }): Promise<boolean> {
  const { game_id, namespace_id } = namespace
  const platform = asPlatform(ctx, 'games.namespaces.deleteGameNamespace')
  const did_delete = await changes(platform, namespace, async (trx) => {
    const group_id = await lockGroupOf(trx, game_id)
    const row = await trx
      .selectFrom('namespaces')
      .select('namespace_id')
      .where('namespace_id', '=', namespace_id)
      .where('expire_ts', '<=', new Date(ctx.now() - REQUESTS_END_MS))
      .forUpdate()
      .executeTakeFirst()
    if (row === undefined || (await namespaceLobbies(trx, namespace_id)).length > 0) return null
    const before = await deleteNamespaceRows(ctx, trx, namespace_id)
    return { before, after: { reason: 'The namespace has expired.' }, scope: { group_id } }
  })
  if (did_delete === null) return false
  await ctx.listener.notify(CHANNELS.namespaces, namespace_id)
  return true
}
