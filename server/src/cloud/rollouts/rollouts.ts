// Roll-outs: a part of the clients of a namespace gets another version than the deployed one. At most one is under way in a
// namespace. The matchmaker and the edge keep copies: a change is announced on the channel 'namespaces'.
import {
  ApiError,
  type BodyOf,
  type endRollout as endOperation,
  type getRollout,
  type ResponseOf,
  type setRollout as setOperation,
} from '@musterhost/contract'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import type { Context, Database } from '../../context.ts'
import { newId } from '../../ids.ts'
import type { Caller } from '../../tokens/caller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { requireGame, requireNamespace } from '../access.ts'
import { endRolloutFor, lockNamespace, putVersion } from '../namespaces/deploys.ts'
import { timestamp } from '../times.ts'
import { requireVersion } from '../versions/versions.ts'
import { readFigures } from './figures.ts'

type OfNamespace = { game_id: string; namespace_id: string }
/** How a roll-out ends. */
type End = { outcome: 'promoted' | 'rolled_back'; reason: string | null }

/**
 * Begins a roll-out, or changes the part and the limits of the one under way. One of another version is replaced. Throws
 * GAME_NOT_FOUND, NAMESPACE_NOT_FOUND, VERSION_NOT_FOUND, or ROLLOUT_VERSION_DEPLOYED.
 */
export async function setRollout(
  ctx: ChangeContext,
  caller: Caller,
  { game_id, namespace_id }: OfNamespace,
  { version_id, ...body }: BodyOf<typeof setOperation>,
): Promise<{ rollout_id: string }> {
  await requireGame(ctx, caller, game_id)
  await requireNamespace(ctx, game_id, namespace_id)
  // A limit that is left out ends.
  const part = { failed_lobbies_percent_max: null, refused_finds_percent_max: null, ...body }
  const now = ctx.now()
  let rollout_id = newId(now)
  await changes(ctx, { game_id, namespace_id }, async (trx) => {
    const { version_id: deployed_version_id } = await lockNamespace(trx, { game_id, namespace_id })
    await requireVersion({ ...ctx, db: trx }, game_id, version_id)
    if (version_id === deployed_version_id) throw new ApiError('ROLLOUT_VERSION_DEPLOYED')
    const before = await underWay(trx, namespace_id)
    if (before?.version_id === version_id) {
      rollout_id = before.rollout_id
      await trx.updateTable('rollouts').set(part).where('rollout_id', '=', rollout_id).execute()
    } else {
      await endRolloutFor(trx, { namespace_id, version_id }, now)
      await trx
        .insertInto('rollouts')
        .values({ rollout_id, namespace_id, version_id, deployed_version_id, ...part, begin_ts: new Date(now) })
        .execute()
    }
    return { before: before ?? {}, after: { rollout_id, version_id, ...part } }
  })
  await ctx.listener.notify(CHANNELS.namespaces, namespace_id)
  return { rollout_id }
}

/** Throws GAME_NOT_FOUND or NAMESPACE_NOT_FOUND. */
export async function findRollout(
  ctx: Context,
  caller: Caller,
  { game_id, namespace_id }: OfNamespace,
): Promise<ResponseOf<typeof getRollout>> {
  await requireGame(ctx, caller, game_id)
  await requireNamespace(ctx, game_id, namespace_id)
  const row = await ctx.db
    .selectFrom('rollouts')
    .selectAll()
    .where('namespace_id', '=', namespace_id)
    .orderBy('begin_ts', 'desc')
    .orderBy('rollout_id', 'desc')
    .limit(1)
    .executeTakeFirst()
  if (row === undefined) return {}
  const { failed_lobbies_percent_max, refused_finds_percent_max, end_ts, outcome, reason } = row
  return {
    rollout: {
      rollout_id: row.rollout_id,
      version_id: row.version_id,
      deployed_version_id: row.deployed_version_id,
      percent: row.percent,
      ...(failed_lobbies_percent_max === null ? {} : { failed_lobbies_percent_max }),
      ...(refused_finds_percent_max === null ? {} : { refused_finds_percent_max }),
      begin_ts: timestamp(row.begin_ts),
      ...(end_ts === null ? {} : { end_ts: timestamp(end_ts) }),
      ...(outcome === null ? {} : { outcome }),
      ...(reason === null ? {} : { reason }),
      figures: await readFigures(ctx, row),
    },
  }
}

/** Throws GAME_NOT_FOUND, NAMESPACE_NOT_FOUND or ROLLOUT_NOT_UNDER_WAY. */
export async function endRollout(
  ctx: ChangeContext,
  caller: Caller,
  of: OfNamespace,
  { outcome, message }: BodyOf<typeof endOperation>,
): Promise<{ version_id: string }> {
  await requireGame(ctx, caller, of.game_id)
  await requireNamespace(ctx, of.game_id, of.namespace_id)
  return finishRollout(ctx, caller, of, { outcome, reason: message ?? null })
}

/**
 * Ends the roll-out under way, and deploys its version when it is promoted. Returns the version that is deployed then.
 * `caller`: null where the platform rolls it back. `rollout_id`: only this one is ended. Throws NAMESPACE_NOT_FOUND or
 * ROLLOUT_NOT_UNDER_WAY.
 */
export async function finishRollout(
  ctx: ChangeContext,
  caller: Caller | null,
  of: OfNamespace,
  { outcome, reason }: End,
  rollout_id?: string,
): Promise<{ version_id: string }> {
  const { namespace_id } = of
  const now = ctx.now()
  let version_id = ''
  await changes(ctx, of, async (trx) => {
    const deployed = await lockNamespace(trx, of)
    const rollout = await underWay(trx, namespace_id)
    if (rollout === undefined || (rollout_id ?? rollout.rollout_id) !== rollout.rollout_id) {
      throw new ApiError('ROLLOUT_NOT_UNDER_WAY')
    }
    const is_promoted = outcome === 'promoted' && caller !== null
    version_id = is_promoted ? rollout.version_id : deployed.version_id
    if (is_promoted) {
      await putVersion(trx, caller, { namespace_id, version_id, message: reason ?? undefined }, now)
    }
    // putVersion has ended it without a reason.
    await trx
      .updateTable('rollouts')
      .set({ end_ts: new Date(now), outcome, reason })
      .where('rollout_id', '=', rollout.rollout_id)
      .execute()
    return { before: { ...deployed, rollout_id: rollout.rollout_id }, after: { version_id, outcome, reason } }
  })
  await ctx.listener.notify(CHANNELS.namespaces, namespace_id)
  return { version_id }
}

function underWay(trx: Database, namespace_id: string) {
  return trx
    .selectFrom('rollouts')
    .select(['rollout_id', 'version_id', 'percent', 'failed_lobbies_percent_max', 'refused_finds_percent_max'])
    .where('namespace_id', '=', namespace_id)
    .where('end_ts', 'is', null)
    .executeTakeFirst()
}
