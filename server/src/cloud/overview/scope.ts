// Which groups, games and namespaces an overview is about: the newest of the caller's, as many as one response carries.
import { type GroupRole, OVERVIEW_GAMES_MAX, OVERVIEW_GROUPS_MAX, OVERVIEW_NAMESPACES_MAX } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { type Caller, userOf } from '../../tokens/caller.ts'
import { cut } from '../lists.ts'

export type ScopeGroup = { group_id: string; display_name: string; role: GroupRole | null }
export type ScopeGame = { game_id: string; group_id: string; name_id: string; display_name: string }
export type ScopeNamespace = {
  namespace_id: string
  game_id: string
  name_id: string
  display_name: string
  version_id: string
  version_display_name: string
  lobby_count_max: number
}

export type OverviewScope = {
  groups: ScopeGroup[]
  games: ScopeGame[]
  namespaces: ScopeNamespace[]
  group_ids: string[]
  namespace_ids: string[]
  is_cut: boolean
}

/** `group_id`: only this group, whose access was checked before; null: all groups of the caller. */
export async function scopeOf(ctx: Context, caller: Caller, group_id: string | null): Promise<OverviewScope> {
  return scopeOfRows(ctx, await readGroups(ctx, caller, group_id))
}

/** The same of these groups, without a caller; null: of all. */
export async function scopeOfGroups(ctx: Context, group_ids: readonly string[] | null): Promise<OverviewScope> {
  const { rows } = await ctx.pool.query<ScopeGroup>(
    `select group_id, display_name, null as role from groups where $1::uuid[] is null or group_id = any($1)
      order by create_ts desc, group_id desc limit ${OVERVIEW_GROUPS_MAX + 1}`,
    [group_ids],
  )
  return scopeOfRows(ctx, rows)
}

async function scopeOfRows(ctx: Context, found: readonly ScopeGroup[]): Promise<OverviewScope> {
  const groups = cut(found, OVERVIEW_GROUPS_MAX)
  const group_ids = groups.rows.map((group) => group.group_id)
  const games = cut(await readGames(ctx, group_ids), OVERVIEW_GAMES_MAX)
  const game_ids = games.rows.map((game) => game.game_id)
  const namespaces = cut(await readNamespaces(ctx, game_ids), OVERVIEW_NAMESPACES_MAX)
  return {
    groups: groups.rows,
    games: games.rows,
    namespaces: namespaces.rows,
    group_ids,
    namespace_ids: namespaces.rows.map((namespace) => namespace.namespace_id),
    is_cut: groups.is_cut || games.is_cut || namespaces.is_cut,
  }
}

async function readGroups({ pool }: Context, caller: Caller, group_id: string | null): Promise<ScopeGroup[]> {
  const { rows } = await pool.query<ScopeGroup>(
    `select groups.group_id, groups.display_name, own.role
      from groups left join group_members as own on own.group_id = groups.group_id and own.user_id = $1
      where ($2 or own.role is not null) and ($3::uuid is null or groups.group_id = $3)
      order by groups.create_ts desc, groups.group_id desc limit ${OVERVIEW_GROUPS_MAX + 1}`,
    [userOf(caller), caller.kind === 'admin', group_id],
  )
  return rows
}

async function readGames({ pool }: Context, group_ids: readonly string[]): Promise<ScopeGame[]> {
  const { rows } = await pool.query<ScopeGame>(
    `select game_id, developer_group_id as group_id, name_id, display_name from games
      where developer_group_id = any($1)
      order by create_ts desc, game_id desc limit ${OVERVIEW_GAMES_MAX + 1}`,
    [group_ids],
  )
  return rows
}

async function readNamespaces({ pool }: Context, game_ids: readonly string[]): Promise<ScopeNamespace[]> {
  const { rows } = await pool.query<ScopeNamespace>(
    `select namespace_id, namespaces.game_id, name_id, namespaces.display_name, version_id, lobby_count_max,
        versions.display_name as version_display_name
      from namespaces join versions using (version_id)
      where namespaces.game_id = any($1)
      order by namespaces.create_ts desc, namespaces.name_id, namespace_id limit ${OVERVIEW_NAMESPACES_MAX + 1}`,
    [game_ids],
  )
  return rows
}
