// All groups and all users of the platform, page by page. Ids sort by time.
import {
  ADMIN_PAGE_DEFAULT,
  type listAdminGroups,
  type listAdminUsers,
  type QueryOf,
  type ResponseOf,
} from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { cut } from '../lists.ts'
import { quotasOf, usageOfGroups } from '../quotas.ts'
import { timestamp } from '../times.ts'

type GroupRow = {
  group_id: string
  display_name: string
  create_ts: Date
  owner_id: string | null
  owner_name: string
  owner_email: string | null
  lobby_count: number
  player_count: number
}

export async function listAllGroups(
  ctx: Context,
  { text, before_group_id, limit = ADMIN_PAGE_DEFAULT }: QueryOf<typeof listAdminGroups>,
): Promise<ResponseOf<typeof listAdminGroups>> {
  const { rows: found } = await ctx.pool.query<GroupRow>(
    `with page as (
        select group_id, display_name, create_ts from groups
        where ($1::text is null or strpos(lower(display_name), lower($1)) > 0) and ($2::uuid is null or group_id < $2)
        order by group_id desc limit $3
      ), now as (
        select developer_group_id as group_id, count(*)::integer as lobby_count, sum(player_count)::integer as player_count
        from page join games on developer_group_id = page.group_id join namespaces using (game_id)
          join lobbies using (namespace_id)
        where lobbies.stop_ts is null group by 1
      )
      select page.*, owner.user_id as owner_id, coalesce(users.display_name, '') as owner_name, users.email as owner_email,
        coalesce(now.lobby_count, 0) as lobby_count, coalesce(now.player_count, 0) as player_count
      from page left join now using (group_id)
        left join group_members as owner on owner.group_id = page.group_id and owner.role = 'owner'
        left join users using (user_id)
      order by page.group_id desc`,
    [text ?? null, before_group_id ?? null, limit + 1],
  )
  const { rows, is_cut } = cut(found, limit)
  const usage = await usageOfGroups(
    ctx,
    rows.map(({ group_id }) => group_id),
  )
  const groups = rows.map(({ owner_id, owner_name, owner_email, create_ts, ...group }) => ({
    ...group,
    create_ts: timestamp(create_ts),
    ...(owner_id === null
      ? {}
      : {
          owner: {
            identity_id: owner_id,
            display_name: owner_name,
            ...(owner_email === null ? {} : { email: owner_email }),
          },
        }),
    quotas: quotasOf(ctx, usage.get(group.group_id)!),
  }))
  return { groups, is_cut }
}

type UserRow = {
  user_id: string
  display_name: string
  email: string | null
  access_name: string | null
  create_ts: Date
  seen_ts: Date | null
  group_count: number
  session_count: number
}

export async function listAllUsers(
  ctx: Context,
  { text, before_identity_id, limit = ADMIN_PAGE_DEFAULT }: QueryOf<typeof listAdminUsers>,
): Promise<ResponseOf<typeof listAdminUsers>> {
  const { rows: found } = await ctx.pool.query<UserRow>(
    `select users.user_id, display_name, email, access_name, create_ts,
        (select max(refresh_ts) from user_sessions where user_sessions.user_id = users.user_id) as seen_ts,
        (select count(*)::integer from group_members where group_members.user_id = users.user_id) as group_count,
        (
          select count(*)::integer from user_sessions
          where user_sessions.user_id = users.user_id and end_ts is null and expire_ts > $4
        ) as session_count
      from users
      where ($2::uuid is null or user_id < $2) and (
        $1::text is null or strpos(lower(display_name), lower($1)) > 0 or strpos(coalesce(email, ''), lower($1)) > 0
          or strpos(lower(coalesce(access_name, '')), lower($1)) > 0
      )
      order by user_id desc limit $3`,
    [text ?? null, before_identity_id ?? null, limit + 1, new Date(ctx.now())],
  )
  const { rows, is_cut } = cut(found, limit)
  const users = rows.map(({ user_id, email, access_name, create_ts, seen_ts, ...user }) => ({
    identity_id: user_id,
    ...user,
    create_ts: timestamp(create_ts),
    ...(email === null ? {} : { email }),
    ...(access_name === null ? {} : { access_name }),
    ...(seen_ts === null ? {} : { seen_ts: timestamp(seen_ts) }),
  }))
  return { users, is_cut }
}
