// Games: what a group develops. A game is made with the namespaces prod and staging, both on an empty version, so that
// there is something to deploy to before there is something to deploy.
import {
  ApiError,
  type BodyOf,
  type createGame as createGameOperation,
  type ErrorDetail,
  GAME_DISPLAY_NAME_LENGTH_MAX,
  type GameFull,
  type getGames,
  type ResponseOf,
} from '@musterhost/contract'
import type { Static } from 'typebox'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import { publicUrl } from '../../config/addresses.ts'
import type { Config } from '../../config/config.ts'
import type { Context } from '../../context.ts'
import { idOfName, newId } from '../../ids.ts'
import { type Caller, userOf } from '../../tokens/caller.ts'
import { requireGame, requireGroup } from '../access.ts'
import { checkDisplayName, checkNameId, notUnique, orNameTaken, throwErrors } from '../field-errors.ts'
import { handleOf, listGroups } from '../groups/groups.ts'
import { cut, LIST_MAX } from '../lists.ts'
import { recordDeploys } from '../namespaces/deploys.ts'
import { listNamespaces } from '../namespaces/namespaces.ts'
import { lockGroup, requireQuota } from '../quotas.ts'
import { timestamp } from '../times.ts'
import { listVersions } from '../versions/versions.ts'
import { imageUrls } from './images.ts'
import { freeNameId } from './name-ids.ts'

const FIRST_NAMESPACES = [
  { name_id: 'prod', display_name: 'Production' },
  { name_id: 'staging', display_name: 'Staging' },
] as const
const FIRST_VERSION_DISPLAY_NAME = '0.0.0'

const nameTaken = (name_id: string): ErrorDetail =>
  notUnique(['name_id'], `There is a game with the name id ${name_id} already.`)

/** Throws GROUP_NOT_FOUND, NAME_TAKEN or QUOTA_REACHED. Without a name id the game gets one from its display name. */
export async function createGame(
  ctx: ChangeContext,
  caller: Caller,
  body: BodyOf<typeof createGameOperation>,
): Promise<{ game_id: string }> {
  const { developer_group_id, display_name } = body
  await requireGroup(ctx, caller, developer_group_id)
  throwErrors(await checkGame(ctx, body))
  const name_id = body.name_id ?? (await freeNameId(ctx, display_name))

  const now = ctx.now()
  const create_ts = new Date(now)
  const game_id = newId(now)
  const version_id = newId(now)
  await orNameTaken(nameTaken(name_id), () =>
    changes(ctx, { group_id: developer_group_id, game_id }, async (trx) => {
      await lockGroup(trx, developer_group_id)
      await requireQuota(ctx, trx, developer_group_id, 'games')
      await requireQuota(ctx, trx, developer_group_id, 'namespaces', FIRST_NAMESPACES.length)
      await trx.insertInto('games').values({ game_id, developer_group_id, name_id, display_name, create_ts }).execute()
      await trx
        .insertInto('versions')
        .values({ version_id, game_id, display_name: FIRST_VERSION_DISPLAY_NAME, config: '{}', create_ts })
        .execute()
      const first = FIRST_NAMESPACES.map((item) => ({
        ...item,
        namespace_id: newId(now),
        game_id,
        version_id,
        create_ts,
      }))
      await trx.insertInto('namespaces').values(first).execute()
      await recordDeploys(trx, caller, first, now)
      return { before: {}, after: { display_name, name_id } }
    }),
  )
  return { game_id }
}

export async function checkGame(
  ctx: Context,
  draft: { display_name: string; name_id?: string },
): Promise<ErrorDetail[]> {
  const errors = checkDisplayName(draft.display_name, GAME_DISPLAY_NAME_LENGTH_MAX)
  const { name_id } = draft
  if (name_id === undefined) return errors
  const name_errors = checkNameId(name_id)
  errors.push(...name_errors)
  if (name_errors.length > 0) return errors
  const twin = await ctx.db.selectFrom('games').select('game_id').where('name_id', '=', name_id).executeTakeFirst()
  if (twin !== undefined) errors.push(nameTaken(name_id))
  return errors
}

/** An administrator sees all games and groups, a cloud token its own game and the group of that. */
export async function listGames(ctx: Context, caller: Caller): Promise<Omit<ResponseOf<typeof getGames>, 'watch'>> {
  const own = caller.kind === 'cloud' ? caller.game_id : null
  const found = await ctx.db
    .selectFrom('games')
    .innerJoin('groups', 'groups.group_id', 'games.developer_group_id')
    .select(['game_id', 'name_id', 'games.display_name', 'games.create_ts'])
    .select(['group_id', 'groups.display_name as group_display_name'])
    .$if(own !== null, (query) => query.where('game_id', '=', own))
    .$if(caller.kind === 'user', (query) =>
      query.where('developer_group_id', 'in', (of) =>
        of.selectFrom('group_members').select('group_id').where('user_id', '=', userOf(caller)),
      ),
    )
    .orderBy('games.create_ts', 'desc')
    .orderBy('game_id', 'desc')
    .limit(LIST_MAX + 1)
    .execute()
  const { rows: games, is_cut } = cut(found)
  const groups = await listGroups(ctx, caller)
  const ids = games.map((game) => game.game_id)
  const [players, images] = await Promise.all([countPlayers(ctx, ids), imageUrls(ctx, ids)])
  return {
    games: games.map(({ group_id, group_display_name, ...game }) => ({
      ...game,
      create_ts: timestamp(game.create_ts),
      url: publicUrl(ctx.config, `${game.name_id}.${ctx.config.domains.cdn}`),
      developer: handleOf(ctx, { group_id, display_name: group_display_name }),
      total_player_count: players.get(game.game_id) ?? 0,
      ...images.get(game.game_id),
    })),
    groups: groups.groups,
    is_cut: is_cut || groups.is_cut,
  }
}

/** Throws GAME_NOT_FOUND. */
export async function findGame(ctx: Context, caller: Caller, game_id: string): Promise<Static<typeof GameFull>> {
  await requireGame(ctx, caller, game_id)
  const game = await ctx.db
    .selectFrom('games')
    .select(['game_id', 'create_ts', 'name_id', 'display_name', 'developer_group_id'])
    .where('game_id', '=', game_id)
    .executeTakeFirstOrThrow(() => new ApiError('GAME_NOT_FOUND'))
  const [namespaces, versions, players, images] = await Promise.all([
    listNamespaces(ctx, game_id),
    listVersions(ctx, game_id),
    countPlayers(ctx, [game_id]),
    imageUrls(ctx, [game_id]),
  ])
  return {
    ...game,
    create_ts: timestamp(game.create_ts),
    total_player_count: players.get(game_id) ?? 0,
    ...images.get(game_id),
    namespaces: namespaces.rows,
    versions: versions.rows,
    available_regions: regionsOf(ctx.config),
    is_cut: namespaces.is_cut || versions.is_cut,
  }
}

function regionsOf(config: Config): Static<typeof GameFull>['available_regions'] {
  return config.regions.map((region) => ({
    region_id: idOfName(region.name),
    region_name_id: region.name,
    region_display_name: region.display_name,
    provider: region.driver,
    universal_region: region.name === 'local' ? 'local' : 'unknown',
    provider_display_name: region.provider_display_name,
  }))
}

/** Players connected at this moment, as far as the matchmaker has projected them; a game without any is absent. */
async function countPlayers(ctx: Context, game_ids: readonly string[]): Promise<Map<string, number>> {
  if (game_ids.length === 0) return new Map()
  const rows = await ctx.db
    .selectFrom('players')
    .innerJoin('namespaces', 'namespaces.namespace_id', 'players.namespace_id')
    .select(({ fn }) => ['namespaces.game_id', fn.countAll<number>().as('player_count')])
    .where('namespaces.game_id', 'in', game_ids)
    .where('players.remove_ts', 'is', null)
    .where('players.connect_ts', 'is not', null)
    .where('players.is_spectator', '=', false)
    .groupBy('namespaces.game_id')
    .execute()
  return new Map(rows.map((row) => [row.game_id, Number(row.player_count)]))
}
