// Namespaces: where a version of a game is played. The matchmaker and the edge keep copies of these rows: a change is
// announced on the channel 'namespaces'.
import {
  ApiError,
  type BodyOf,
  CLIENT_LIMITS,
  type createGameNamespace,
  type ErrorDetail,
  NAMESPACE_DISPLAY_NAME_LENGTH_MAX,
  type NamespaceFull,
  type NamespaceSummary,
  updateGameNamespaceMatchmakerConfig,
  type updateGameNamespaceVersion,
  type validateGameNamespaceMatchmakerConfig,
} from '@musterhost/contract'
import { createShapeCheck } from '@musterhost/contract/schema-check'
import type { Static } from 'typebox'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
import { newId } from '../../ids.ts'
import type { Caller } from '../../tokens/caller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { requireGame, requireLiving, requireNamespace } from '../access.ts'
import { listDomains } from '../domains/domains.ts'
import { checkDisplayName, checkNameId, notUnique, orNameTaken, throwErrors } from '../field-errors.ts'
import { cut, LIST_MAX } from '../lists.ts'
import { lockGroupOf, requireQuota } from '../quotas.ts'
import { timestamp } from '../times.ts'
import { requireVersion } from '../versions/versions.ts'
import { listAuthUsers } from './cdn.ts'
import { lockNamespace, putVersion, recordDeploys } from './deploys.ts'
import { checkExpireTs } from './expiry.ts'

const nameTaken = (name_id: string): ErrorDetail =>
  notUnique(['name_id'], `The game has a namespace with the name id ${name_id} already.`)
const nameExpired = (name_id: string): ErrorDetail =>
  notUnique(['name_id'], `The namespace ${name_id} has expired and is being deleted. Try again in some seconds.`)

/** Throws GAME_NOT_FOUND, VERSION_NOT_FOUND, NAME_TAKEN or QUOTA_REACHED. */
export async function createNamespace(
  ctx: ChangeContext,
  caller: Caller,
  game_id: string,
  { message, ...body }: BodyOf<typeof createGameNamespace>,
): Promise<{ namespace_id: string }> {
  await requireGame(ctx, caller, game_id)
  await requireVersion(ctx, game_id, body.version_id)
  throwErrors([...checkExpireTs(ctx, body.expire_ts), ...(await checkNamespace(ctx, game_id, body))])
  const now = ctx.now()
  const namespace_id = newId(now)
  const expire_ts = body.expire_ts === undefined ? null : new Date(body.expire_ts)
  await orNameTaken(nameTaken(body.name_id), () =>
    changes(ctx, { game_id, namespace_id }, async (trx) => {
      await requireQuota(ctx, trx, await lockGroupOf(trx, game_id), 'namespaces')
      await requireVersion({ ...ctx, db: trx }, game_id, body.version_id)
      await trx
        .insertInto('namespaces')
        .values({ ...body, namespace_id, game_id, create_ts: new Date(now), expire_ts })
        .execute()
      await recordDeploys(trx, caller, [{ namespace_id, version_id: body.version_id, message }], now)
      return { before: {}, after: { ...body, message } }
    }),
  )
  // Somebody may have asked for its host a moment ago, and remember that there is none.
  await ctx.listener.notify(CHANNELS.namespaces, namespace_id)
  return { namespace_id }
}

/** Throws GAME_NOT_FOUND. */
export async function validateNamespace(
  ctx: Context,
  caller: Caller,
  game_id: string,
  draft: { display_name: string; name_id: string },
): Promise<ErrorDetail[]> {
  await requireGame(ctx, caller, game_id)
  return checkNamespace(ctx, game_id, draft)
}

async function checkNamespace(
  ctx: Context,
  game_id: string,
  draft: { display_name: string; name_id: string },
): Promise<ErrorDetail[]> {
  const errors = checkDisplayName(draft.display_name, NAMESPACE_DISPLAY_NAME_LENGTH_MAX)
  const name_errors = checkNameId(draft.name_id)
  errors.push(...name_errors)
  if (name_errors.length > 0) return errors
  const twin = await ctx.db
    .selectFrom('namespaces')
    .select('expire_ts')
    .where('game_id', '=', game_id)
    .where('name_id', '=', draft.name_id)
    .executeTakeFirst()
  if (twin === undefined) return errors
  const has_expired = twin.expire_ts !== null && twin.expire_ts.getTime() <= ctx.now()
  return [...errors, has_expired ? nameExpired(draft.name_id) : nameTaken(draft.name_id)]
}

export async function listNamespaces(
  ctx: Context,
  game_id: string,
): Promise<{ rows: Static<typeof NamespaceSummary>[]; is_cut: boolean }> {
  const rows = await ctx.db
    .selectFrom('namespaces')
    .select(['namespace_id', 'create_ts', 'display_name', 'version_id', 'name_id', 'expire_ts'])
    .where('game_id', '=', game_id)
    .where(({ or, eb }) => or([eb('expire_ts', 'is', null), eb('expire_ts', '>', new Date(ctx.now()))]))
    .orderBy('create_ts', 'desc')
    .orderBy('name_id')
    .limit(LIST_MAX + 1)
    .execute()
  return cut(
    rows.map(({ expire_ts, ...row }) => ({ ...row, create_ts: timestamp(row.create_ts), ...expiryOf(expire_ts) })),
  )
}

function expiryOf(expire_ts: Date | null): { expire_ts?: string } {
  return expire_ts === null ? {} : { expire_ts: timestamp(expire_ts) }
}

/** Throws GAME_NOT_FOUND or NAMESPACE_NOT_FOUND; a namespace of another game is not found here. */
export async function findNamespace(
  ctx: Context,
  caller: Caller,
  game_id: string,
  namespace_id: string,
): Promise<Static<typeof NamespaceFull>> {
  await requireGame(ctx, caller, game_id)
  const row = await ctx.db
    .selectFrom('namespaces')
    .select(['namespace_id', 'create_ts', 'display_name', 'version_id', 'name_id', 'expire_ts'])
    .select(['enable_domain_public_auth', 'cdn_auth_type', 'lobby_count_max', 'max_players_per_client'])
    .select(['max_players_per_client_vpn', 'max_players_per_client_proxy'])
    .select(['max_players_per_client_tor', 'max_players_per_client_hosting'])
    .where('game_id', '=', game_id)
    .where('namespace_id', '=', namespace_id)
    .executeTakeFirst()
  const { enable_domain_public_auth, cdn_auth_type, create_ts, expire_ts, ...of_row } = requireLiving(ctx, row)
  const { namespace_id: _, display_name, version_id, name_id, ...matchmaker } = of_row
  const auth_user_list = await listAuthUsers(ctx, namespace_id)
  const domains = await listDomains(ctx, namespace_id)
  return {
    namespace_id,
    create_ts: timestamp(create_ts),
    display_name,
    version_id,
    name_id,
    ...expiryOf(expire_ts),
    config: {
      cdn: { enable_domain_public_auth, domains, auth_type: cdn_auth_type, auth_user_list },
      identity: {},
      kv: {},
      matchmaker,
    },
  }
}

/** Deploys a version. Throws GAME_NOT_FOUND, NAMESPACE_NOT_FOUND or VERSION_NOT_FOUND. */
export async function setVersion(
  ctx: ChangeContext,
  caller: Caller,
  game_id: string,
  namespace_id: string,
  { version_id, message, is_rollback = false }: BodyOf<typeof updateGameNamespaceVersion>,
): Promise<void> {
  await requireGame(ctx, caller, game_id)
  await requireNamespace(ctx, game_id, namespace_id)
  await requireVersion(ctx, game_id, version_id)
  const now = ctx.now()
  const deploy = changes(ctx, { game_id, namespace_id }, async (trx) => {
    const before = await lockNamespace(trx, { game_id, namespace_id })
    await putVersion(trx, caller, { namespace_id, version_id, message, is_rollback }, now)
    return { before, after: { version_id, message, ...(is_rollback && { is_rollback }) } }
  })
  await deploy.catch((error: unknown) => {
    // It was deleted a moment ago.
    if ((error as { code?: unknown }).code === FOREIGN_KEY_VIOLATION) throw new ApiError('VERSION_NOT_FOUND')
    throw error
  })
  await ctx.listener.notify(CHANNELS.namespaces, namespace_id)
}

/** PostgreSQL, appendix A: foreign_key_violation. */
const FOREIGN_KEY_VIOLATION = '23503'

const checkLimits = createShapeCheck(updateGameNamespaceMatchmakerConfig.body)

/** Throws GAME_NOT_FOUND or NAMESPACE_NOT_FOUND. Returns the errors that setMatchmakerLimits would throw. */
export async function validateMatchmakerLimits(
  ctx: Context,
  caller: Caller,
  game_id: string,
  namespace_id: string,
  draft: BodyOf<typeof validateGameNamespaceMatchmakerConfig>,
): Promise<ErrorDetail[]> {
  await requireGame(ctx, caller, game_id)
  await requireNamespace(ctx, game_id, namespace_id)
  return checkLimits(draft)
}

/** Sets the limits that are named; `max_players` names all of a client. Throws GAME_NOT_FOUND or NAMESPACE_NOT_FOUND. */
export async function setMatchmakerLimits(
  ctx: ChangeContext,
  caller: Caller,
  game_id: string,
  namespace_id: string,
  { max_players, ...limits }: BodyOf<typeof updateGameNamespaceMatchmakerConfig>,
): Promise<void> {
  await requireGame(ctx, caller, game_id)
  const of_all = max_players === undefined ? {} : Object.fromEntries(CLIENT_LIMITS.map((name) => [name, max_players]))
  const after = { ...of_all, ...limits }
  await changes(ctx, { game_id, namespace_id }, async (trx) => {
    const row = await trx
      .selectFrom('namespaces')
      .select(['lobby_count_max', 'expire_ts', ...CLIENT_LIMITS])
      .where('game_id', '=', game_id)
      .where('namespace_id', '=', namespace_id)
      .forNoKeyUpdate()
      .executeTakeFirst()
    requireLiving(ctx, row)
    await trx.updateTable('namespaces').set(after).where('namespace_id', '=', namespace_id).execute()
    return { before: { ...row }, after: { ...row, ...after } }
  })
  await ctx.listener.notify(CHANNELS.namespaces, namespace_id)
}
