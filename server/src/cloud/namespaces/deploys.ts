// The deploys of a namespace: one row each, with the time and the user, written in the transaction that changes the
// namespace's version. So the newest row is always the current version. A rollback is a deploy like any other.
import { ApiError, type getGameNamespaceVersionHistoryList, type QueryOf, type ResponseOf } from '@musterhost/contract'
import { type ExpressionBuilder, sql } from 'kysely'
import type { Context, Database } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'
import { newId } from '../../ids.ts'
import { type Caller, userOf } from '../../tokens/caller.ts'
import { requireGame, requireNamespace } from '../access.ts'
import { cut } from '../lists.ts'
import { timestamp } from '../times.ts'

const HISTORY_DEFAULT = 100
/** How long before a deploy a lobby may have been created that checked its version (matchmaker/calls/version-check.ts). */
const CHECK_BEFORE_MS_MAX = 15 * 60_000
/** The same as SQL. */
export const CHECK_BEFORE_SQL = `make_interval(secs => ${CHECK_BEFORE_MS_MAX / 1_000})`

/** Only within the transaction that puts the namespaces on the version. `now` in ms. */
export async function recordDeploys(
  trx: Database,
  caller: Caller,
  deploys: readonly { namespace_id: string; version_id: string; message?: string | undefined; is_rollback?: boolean }[],
  now: number,
): Promise<void> {
  const caller_name = 'name' in caller ? caller.name : null
  await trx
    .insertInto('namespace_versions')
    .values(
      deploys.map(({ namespace_id, version_id, message = null, is_rollback = false }) => ({
        ...{ deploy_id: newId(now), namespace_id, version_id, deploy_ts: new Date(now) },
        ...{ caller_kind: caller.kind, caller_name, caller_user_id: userOf(caller), message, is_rollback },
      })),
    )
    .execute()
}

/** Locks the row of a namespace against another deploy. Returns its version. Throws NAMESPACE_NOT_FOUND. */
export function lockNamespace(
  trx: Database,
  { game_id, namespace_id }: { game_id: string; namespace_id: string },
): Promise<{ version_id: string }> {
  return trx
    .selectFrom('namespaces')
    .select('version_id')
    .where('game_id', '=', game_id)
    .where('namespace_id', '=', namespace_id)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow(() => new ApiError('NAMESPACE_NOT_FOUND'))
}

/** Deploys a version to a namespace that the transaction has locked. `now` in ms. */
export async function putVersion(
  trx: Database,
  caller: Caller,
  deploy: { namespace_id: string; version_id: string; message?: string | undefined; is_rollback?: boolean },
  now: number,
): Promise<void> {
  const { namespace_id, version_id } = deploy
  await trx.updateTable('namespaces').set({ version_id }).where('namespace_id', '=', namespace_id).execute()
  await recordDeploys(trx, caller, [deploy], now)
  await endRolloutFor(trx, deploy, now)
}

/**
 * Ends the roll-out under way of a namespace, where there is one: it is promoted by the deploy of its version, and replaced by
 * a deploy or a roll-out of another. `now` in ms.
 */
export async function endRolloutFor(
  trx: Database,
  { namespace_id, version_id }: { namespace_id: string; version_id: string },
  now: number,
): Promise<void> {
  await trx
    .updateTable('rollouts')
    .set({
      end_ts: new Date(now),
      outcome: sql`case when version_id = ${version_id}::uuid then 'promoted' else 'replaced' end`,
    })
    .where('namespace_id', '=', namespace_id)
    .where('end_ts', 'is', null)
    .execute()
}

/** Newest first. Throws GAME_NOT_FOUND or NAMESPACE_NOT_FOUND; an anchor that is not of the namespace ends the list. */
export async function listDeploys(
  ctx: Context,
  caller: Caller,
  { game_id, namespace_id }: { game_id: string; namespace_id: string },
  { anchor, limit = HISTORY_DEFAULT }: QueryOf<typeof getGameNamespaceVersionHistoryList>,
): Promise<ResponseOf<typeof getGameNamespaceVersionHistoryList>> {
  await requireGame(ctx, caller, game_id)
  await requireNamespace(ctx, game_id, namespace_id)
  const found = await ctx.db
    .selectFrom('namespace_versions')
    .leftJoin('users', 'users.user_id', 'namespace_versions.caller_user_id')
    .select(['deploy_id', 'namespace_id', 'version_id', 'deploy_ts', 'caller_kind', 'message'])
    .select(({ fn }) => fn.coalesce('caller_name', 'users.display_name').as('caller_name'))
    .select(firstReady)
    .select(rolledBack)
    .where('namespace_id', '=', namespace_id)
    .$if(anchor !== undefined, (query) =>
      query.where('deploy_number', '<', (of) =>
        of
          .selectFrom('namespace_versions')
          .select('deploy_number')
          .where('deploy_id', '=', anchor!)
          .where('namespace_id', '=', namespace_id),
      ),
    )
    .orderBy('deploy_number', 'desc')
    .limit(limit + 1)
    .execute()
  const { rows, is_cut } = cut(found, limit)
  const versions = rows.map(({ caller_kind: kind, caller_name: name, deploy_ts, message, ...row }) => ({
    ...{ deploy_id: row.deploy_id, namespace_id: row.namespace_id, version_id: row.version_id },
    deploy_ts: timestamp(deploy_ts),
    deployed_by: name === null ? { kind } : { kind, name },
    ...(message === null ? {} : { message }),
    ...(row.first_ready_ts === null ? {} : { first_ready_ts: timestamp(row.first_ready_ts) }),
    ...(row.rolled_back_ts === null ? {} : { rolled_back_ts: timestamp(row.rolled_back_ts) }),
  }))
  return { versions, is_cut }
}

/** When the next deploy of the namespace was made, if that is a rollback. */
function rolledBack(of: ExpressionBuilder<Schema, 'namespace_versions'>) {
  return of
    .selectFrom('namespace_versions as next')
    .select(sql<Date | null>`case when next.is_rollback then next.deploy_ts end`.as('ts'))
    .whereRef('next.namespace_id', '=', 'namespace_versions.namespace_id')
    .whereRef('next.deploy_number', '>', 'namespace_versions.deploy_number')
    .orderBy('next.deploy_number')
    .limit(1)
    .as('rolled_back_ts')
}

/**
 * When the first lobby of a deploy became ready: of the lobbies of its version that were created between it and the next
 * deploy, or that checked the version before it. Such a lobby was ready when the deploy was made. The window is bounded at
 * both ends, and is read by its index, so only lobbies of this deploy and of the time of its check are read.
 */
function firstReady(of: ExpressionBuilder<Schema, 'namespace_versions'>) {
  return of
    .selectFrom('lobbies')
    .select(sql<Date | null>`greatest(ready_ts, namespace_versions.deploy_ts)`.as('ts'))
    .whereRef('lobbies.namespace_id', '=', 'namespace_versions.namespace_id')
    .whereRef('lobbies.version_id', '=', 'namespace_versions.version_id')
    .where('lobbies.create_ts', '>=', ({ selectFrom }) => {
      // A deploy of the same version again has lobbies that are no check.
      const begin_ts = sql<Date>`case when former.version_id = namespace_versions.version_id
        then namespace_versions.deploy_ts else former.deploy_ts end`
      const former_ts = selectFrom('namespace_versions as former')
        .select(begin_ts.as('begin_ts'))
        .whereRef('former.namespace_id', '=', 'namespace_versions.namespace_id')
        .whereRef('former.deploy_number', '<', 'namespace_versions.deploy_number')
        .orderBy('former.deploy_number', 'desc')
        .limit(1)
      const check_ts = sql`namespace_versions.deploy_ts - make_interval(secs => ${CHECK_BEFORE_MS_MAX / 1_000})`
      // greatest() ignores a former deploy that does not exist.
      return sql<Date>`greatest(${check_ts}, (${former_ts}))`
    })
    .where('lobbies.create_ts', '<', ({ fn, selectFrom }) =>
      fn.coalesce(
        selectFrom('namespace_versions as later')
          .select('later.deploy_ts')
          .whereRef('later.namespace_id', '=', 'namespace_versions.namespace_id')
          .whereRef('later.deploy_number', '>', 'namespace_versions.deploy_number')
          .orderBy('later.deploy_number')
          .limit(1),
        sql<Date>`'infinity'::timestamptz`,
      ),
    )
    .where('ready_ts', 'is not', null)
    .orderBy('lobbies.create_ts')
    .limit(1)
    .as('first_ready_ts')
}
