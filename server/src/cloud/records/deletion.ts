// Deletion. Rows are deleted in one transaction that locks the game's group. Everything that creates something in the game
// locks it too, so nothing can begin to depend on what is being deleted. The bytes follow later (sweep/removed-objects.ts). A
// row that others depend on is not deleted: the error names them.
import { ApiError } from '@musterhost/contract'
import { sql, type Transaction } from 'kysely'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import type { Members } from '../../audit/members.ts'
import type { Context } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'
import type { Caller } from '../../tokens/caller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { requireGame, requireGroup } from '../access.ts'
import { lockDomains, releaseDomains } from '../domains/ownership.ts'
import { lockGroup, lockGroupOf } from '../quotas.ts'
import { deleteUploads } from '../sweep/removed-objects.ts'

/** An error names this many things that still use the one to delete. */
const HOLDERS_NAMED_MAX = 32

type Trx = Transaction<Schema>
type Holder = { kind: 'game' | 'namespace' | 'version' | 'lobby'; id: string }

/** Throws GROUP_NOT_FOUND or IN_USE. */
export async function deleteGroup(ctx: ChangeContext, caller: Caller, group_id: string): Promise<void> {
  await requireGroup(ctx, caller, group_id)
  await changes(ctx, { group_id }, async (trx) => {
    await lockGroup(trx, group_id)
    const games = await trx
      .selectFrom('games')
      .select('game_id as id')
      .where('developer_group_id', '=', group_id)
      .limit(HOLDERS_NAMED_MAX + 1)
      .execute()
    refuseHeld('The group', holders('game', games))
    const removed = await trx
      .deleteFrom('groups')
      .where('group_id', '=', group_id)
      .returning('display_name')
      .executeTakeFirst()
    return { before: { ...removed }, after: {} }
  })
}

/** Throws GAME_NOT_FOUND or IN_USE. */
export async function deleteGame(ctx: ChangeContext, caller: Caller, game_id: string): Promise<void> {
  await inGame(ctx, caller, { game_id }, async (trx) => {
    const deployed = await trx
      .selectFrom('namespaces')
      .innerJoin('versions', 'versions.version_id', 'namespaces.version_id')
      .select('namespace_id as id')
      .where('namespaces.game_id', '=', game_id)
      .where(sql<boolean>`versions.config <> '{}'`)
      .limit(HOLDERS_NAMED_MAX + 1)
      .execute()
    const lobbies = await trx
      .selectFrom('lobbies')
      .innerJoin('namespaces', 'namespaces.namespace_id', 'lobbies.namespace_id')
      .select('lobby_id as id')
      .where('namespaces.game_id', '=', game_id)
      .where('stop_ts', 'is', null)
      .limit(HOLDERS_NAMED_MAX + 1)
      .execute()
    refuseHeld('The game', [...holders('namespace', deployed), ...holders('lobby', lobbies)])
    const uploads = await trx
      .selectFrom('uploads')
      .select('upload_id')
      .where('game_id', '=', game_id)
      .forUpdate()
      .execute()
    await lockDomains(trx)
    await releaseDomains(ctx, trx, { game_id })
    await trx.deleteFrom('namespaces').where('game_id', '=', game_id).execute()
    await trx.deleteFrom('versions').where('game_id', '=', game_id).execute()
    await trx.deleteFrom('builds').where('game_id', '=', game_id).execute()
    await trx.deleteFrom('sites').where('game_id', '=', game_id).execute()
    await deleteUploads(
      ctx,
      trx,
      uploads.map((upload) => upload.upload_id),
    )
    return trx
      .deleteFrom('games')
      .where('game_id', '=', game_id)
      .returning(['display_name', 'name_id'])
      .executeTakeFirstOrThrow()
  })
  await ctx.listener.notify(CHANNELS.namespaces, '')
}

/**
 * Throws GAME_NOT_FOUND, NAMESPACE_NOT_FOUND or IN_USE. A lobby that is created before the matchmaker knows of the deletion
 * lives until it is empty; no request finds it.
 */
export async function deleteNamespace(
  ctx: ChangeContext,
  caller: Caller,
  game_id: string,
  namespace_id: string,
): Promise<void> {
  await inGame(ctx, caller, { game_id, namespace_id }, async (trx) => {
    const namespace = trx
      .selectFrom('namespaces')
      .select('namespace_id')
      .where('game_id', '=', game_id)
      .where('namespace_id', '=', namespace_id)
    if ((await namespace.executeTakeFirst()) === undefined) throw new ApiError('NAMESPACE_NOT_FOUND')
    refuseHeld('The namespace', holders('lobby', await namespaceLobbies(trx, namespace_id)))
    return deleteNamespaceRows(ctx, trx, namespace_id)
  })
  await ctx.listener.notify(CHANNELS.namespaces, namespace_id)
}

/** Lobbies of the namespace that run, at most one more than an error names. */
export function namespaceLobbies(trx: Trx, namespace_id: string): Promise<{ id: string }[]> {
  return trx
    .selectFrom('lobbies')
    .select('lobby_id as id')
    .where('namespace_id', '=', namespace_id)
    .where('stop_ts', 'is', null)
    .limit(HOLDERS_NAMED_MAX + 1)
    .execute()
}

/** Only for a caller that has locked the group and found no lobbies. Returns what the namespace was. */
export async function deleteNamespaceRows(ctx: Context, trx: Trx, namespace_id: string): Promise<Members> {
  await lockDomains(trx)
  await releaseDomains(ctx, trx, { namespace_id })
  return trx
    .deleteFrom('namespaces')
    .where('namespace_id', '=', namespace_id)
    .returning(['display_name', 'name_id', 'version_id', 'expire_ts'])
    .executeTakeFirstOrThrow()
}

/** Throws GAME_NOT_FOUND, VERSION_NOT_FOUND or IN_USE. */
export async function deleteVersion(
  ctx: ChangeContext,
  caller: Caller,
  game_id: string,
  version_id: string,
): Promise<void> {
  await inGame(ctx, caller, { game_id }, async (trx) => {
    // Held against a deploy at the same time, whose row would rest on it.
    await trx
      .selectFrom('versions')
      .select('version_id')
      .where('game_id', '=', game_id)
      .where('version_id', '=', version_id)
      .forUpdate()
      .executeTakeFirstOrThrow(() => new ApiError('VERSION_NOT_FOUND'))
    const namespaces = await trx
      .selectFrom('namespaces')
      .select('namespace_id as id')
      .where((is) =>
        is.or([
          is('version_id', '=', version_id),
          is('namespace_id', 'in', (of) =>
            of
              .selectFrom('rollouts')
              .select('rollouts.namespace_id')
              .where('rollouts.version_id', '=', version_id)
              .where('end_ts', 'is', null),
          ),
        ]),
      )
      .limit(HOLDERS_NAMED_MAX + 1)
      .execute()
    const lobbies = await trx
      .selectFrom('lobbies')
      .select('lobby_id as id')
      .where('version_id', '=', version_id)
      .where('stop_ts', 'is', null)
      .limit(HOLDERS_NAMED_MAX + 1)
      .execute()
    refuseHeld('The version', [...holders('namespace', namespaces), ...holders('lobby', lobbies)])
    return trx
      .deleteFrom('versions')
      .where('version_id', '=', version_id)
      .returning(['version_id', 'display_name'])
      .executeTakeFirstOrThrow()
  })
}

/** Throws GAME_NOT_FOUND, BUILD_NOT_FOUND or IN_USE. */
export async function deleteBuild(
  ctx: ChangeContext,
  caller: Caller,
  game_id: string,
  build_id: string,
): Promise<void> {
  await inGame(ctx, caller, { game_id }, async (trx) => {
    const build = await trx
      .selectFrom('builds')
      .select('upload_id')
      .where('game_id', '=', game_id)
      .where('build_id', '=', build_id)
      .executeTakeFirstOrThrow(() => new ApiError('BUILD_NOT_FOUND'))
    // In whichever block of the config: image_id is a member of that name anywhere in the matchmaker section.
    const versions = await trx
      .selectFrom('versions')
      .select('version_id as id')
      .where('game_id', '=', game_id)
      .where(
        sql<boolean>`jsonb_path_exists(config, '$.matchmaker.**.image_id ? (@ == $id)', ${JSON.stringify({ id: build_id })}::jsonb)`,
      )
      .limit(HOLDERS_NAMED_MAX + 1)
      .execute()
    refuseHeld('The build', holders('version', versions))
    await lockUpload(trx, build.upload_id)
    const removed = await trx
      .deleteFrom('builds')
      .where('build_id', '=', build_id)
      .returning(['build_id', 'display_name', 'image_tag'])
      .executeTakeFirst()
    await deleteUploads(ctx, trx, [build.upload_id])
    return { ...removed }
  })
}

/** Throws GAME_NOT_FOUND, SITE_NOT_FOUND or IN_USE. */
export async function deleteSite(ctx: ChangeContext, caller: Caller, game_id: string, site_id: string): Promise<void> {
  await inGame(ctx, caller, { game_id }, async (trx) => {
    const site = await trx
      .selectFrom('sites')
      .select('upload_id')
      .where('game_id', '=', game_id)
      .where('site_id', '=', site_id)
      .executeTakeFirstOrThrow(() => new ApiError('SITE_NOT_FOUND'))
    const versions = await trx
      .selectFrom('versions')
      .select('version_id as id')
      .where('game_id', '=', game_id)
      .where(sql<boolean>`config #>> '{cdn,site_id}' = ${site_id}`)
      .limit(HOLDERS_NAMED_MAX + 1)
      .execute()
    refuseHeld('The site', holders('version', versions))
    await lockUpload(trx, site.upload_id)
    const removed = await trx
      .deleteFrom('sites')
      .where('site_id', '=', site_id)
      .returning(['site_id', 'display_name'])
      .executeTakeFirst()
    await deleteUploads(ctx, trx, [site.upload_id])
    return { ...removed }
  })
}

/** `remove` returns the members of what it removed, for the audit log. */
async function inGame(
  ctx: ChangeContext,
  caller: Caller,
  place: { game_id: string; namespace_id?: string },
  remove: (trx: Trx) => Promise<Members>,
): Promise<void> {
  await requireGame(ctx, caller, place.game_id)
  await changes(ctx, place, async (trx) => {
    // The game itself may be gone when the event is written.
    const group_id = await lockGroupOf(trx, place.game_id)
    return { before: await remove(trx), after: {}, scope: { group_id } }
  })
}

/** Waits for files that are being published, and for who completes or abandons it. */
async function lockUpload(trx: Trx, upload_id: string): Promise<void> {
  await trx.selectFrom('uploads').select('upload_id').where('upload_id', '=', upload_id).forUpdate().execute()
}

function holders(kind: Holder['kind'], rows: readonly { id: string }[]): Holder[] {
  return rows.map(({ id }) => ({ kind, id }))
}

function refuseHeld(what: string, held_by: readonly Holder[]): void {
  if (held_by.length === 0) return
  const named = held_by.slice(0, HOLDERS_NAMED_MAX)
  const is_cut = held_by.length > HOLDERS_NAMED_MAX
  const others = is_cut ? ' and others' : ''
  const message = `${what} is in use by ${named.map(({ kind, id }) => `${kind} ${id}`).join(', ')}${others}.`
  throw new ApiError('IN_USE', { held_by: named, ...(is_cut && { is_cut }) }, { message })
}
