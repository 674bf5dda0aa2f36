// The kept rays of a game and its namespaces: pages with filters, newest first. One page reads a limited number of rows,
// each by an index, whatever the size of the table; a filter that matches few of them gives pages with few rays.
import {
  type listGameRays,
  type QueryOf,
  type RaySummary,
  type ResponseOf,
  validationError,
} from '@musterhost/contract'
import type { Context } from '../../context.ts'
import type { Caller } from '../../tokens/caller.ts'
import { requireGame, requireNamespace } from '../access.ts'
import { instantOf } from '../times.ts'
import { microtime } from './rays.ts'

const PAGE_DEFAULT = 50
/** Rays of one owner, and of all owners, that one page compares with the filters. */
const COMPARED_MAX = 2_000
const CURSOR = /^(\d{1,17})\.([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

/** Sorts after every ray. Times are microseconds since the epoch. */
const NEWEST: Position = { ts_us: 99_999_999_999_999_999n, ray_id: 'ffffffff-ffff-ffff-ffff-ffffffffffff' }
type Position = { ts_us: bigint; ray_id: string }

/** The columns of a ray, from ray_spans as `s`. */
const RAY_COLUMNS = `ray_id, (extract(epoch from ts) * 1000000)::bigint::text as ts_us, service, operation, code, duration_us,
  owner_kind, owner_id, player_id, exists (select from explanations e where e.ray_id = s.ray_id) as has_explanation`
/** The edge's part of a forwarded request, and the runner's of a start, are parts of another service's request. */
const IS_REQUEST = `(service in ('api', 'matchmaker') or (service = 'edge' and operation <> 'forward'))`
const TIME = (parameter: string): string => `('epoch'::timestamptz + ${parameter}::bigint * interval '1 microsecond')`

type RayRow = {
  ray_id: string
  ts_us: string
  service: string
  operation: string
  code: string | null
  duration_us: number
  owner_kind: 'namespace' | 'game' | 'user'
  owner_id: string
  player_id: string | null
  has_explanation: boolean
}

/** Throws GAME_NOT_FOUND, NAMESPACE_NOT_FOUND, and VALIDATION_ERROR for what is no cursor. */
export async function listRays(
  ctx: Context,
  caller: Caller,
  game_id: string,
  query: QueryOf<typeof listGameRays>,
): Promise<ResponseOf<typeof listGameRays>> {
  await requireGame(ctx, caller, game_id)
  const { namespace_id, cursor, limit = PAGE_DEFAULT } = query
  if (namespace_id !== undefined) await requireNamespace(ctx, game_id, namespace_id)
  const before = cursor === undefined ? NEWEST : requireCursor(cursor)
  const owner_ids = namespace_id === undefined ? await ownersOf(ctx, game_id) : [namespace_id]
  const { rows } = await ctx.pool.query<RayRow & { is_match: boolean }>(comparedSql(query.player_id !== undefined), [
    owner_ids,
    ...[String(before.ts_us), before.ray_id, timeOf(query.query_start), timeOf(query.query_end)],
    ...[query.code ?? null, query.operation ?? null, query.duration_min ?? null],
    ...(query.player_id === undefined ? [] : [query.player_id]),
  ])
  const matches = rows.filter(({ is_match }) => is_match)
  const rays = matches.slice(0, limit)
  const is_whole = rows.length < COMPARED_MAX && matches.length <= limit
  // A full page continues after its last ray, another one after the last ray that was compared.
  const last = matches.length >= limit ? rays.at(-1) : rows.at(-1)
  return {
    rays: rays.map(summaryOf),
    ...(is_whole || last === undefined ? {} : { next_cursor: `${last.ts_us}.${last.ray_id}` }),
  }
}

/** Rays with one of the ids, or about a player with one of them, newest first. */
export async function findRays(
  ctx: Context,
  owner_ids: readonly string[],
  ids: readonly string[],
  count_max: number,
): Promise<RaySummary[]> {
  const found = `select * from ray_spans where owner_id = any($1) and ${IS_REQUEST}`
  const { rows } = await ctx.pool.query<RayRow>(
    `select ${RAY_COLUMNS} from (
        (${found} and ray_id = any($2) order by ts desc limit $3)
        union all
        (${found} and not ray_id = any($2) and player_id = any($2) order by ts desc limit $3)
      ) as s order by ts desc limit $3`,
    [owner_ids, ids, count_max],
  )
  return rows.map(summaryOf)
}

/** The game and its namespaces: whose requests are the game's. */
export async function ownersOf({ db }: Context, game_id: string): Promise<string[]> {
  const rows = await db.selectFrom('namespaces').select('namespace_id').where('game_id', '=', game_id).execute()
  return [game_id, ...rows.map(({ namespace_id }) => namespace_id)]
}

/**
 * The newest rays before a position, each with whether it matches. The newest of each owner are read by (owner_id, ts), those
 * of a player by (player_id, ts).
 */
function comparedSql(is_of_player: boolean): string {
  const page = `ts >= coalesce($4::timestamptz, '-infinity') and ts < coalesce($5::timestamptz, 'infinity')
    and (ts, ray_id) < (${TIME('$2')}, $3::uuid) and ${IS_REQUEST} order by ts desc, ray_id desc limit ${COMPARED_MAX}`
  const newest = is_of_player
    ? `select * from ray_spans where player_id = $9 and owner_id = any($1::uuid[]) and ${page}`
    : `select r.* from unnest($1::uuid[]) as owner (id),
        lateral (select * from ray_spans where owner_id = owner.id and ${page}) as r
        order by ts desc, ray_id desc limit ${COMPARED_MAX}`
  return `select ${RAY_COLUMNS}, (
      ($6::text is null or case $6 when 'none' then code is null when 'any' then code is not null else code = $6 end)
      and ($7::text is null or operation = $7) and ($8::bigint is null or duration_us >= $8)
    ) is true as is_match from (${newest}) as s order by ts desc, ray_id desc`
}

function summaryOf({ ray_id, ts_us, service, operation, code, duration_us, player_id, ...row }: RayRow): RaySummary {
  return {
    ray_id,
    ts: microtime(Number(ts_us)),
    service,
    operation,
    ...(code === null ? {} : { code }),
    duration: duration_us,
    ...(row.owner_kind === 'namespace' ? { namespace_id: row.owner_id } : {}),
    ...(player_id === null ? {} : { player_id }),
    has_explanation: row.has_explanation,
  }
}

const timeOf = (text: string | undefined): Date | null => (text === undefined ? null : new Date(instantOf(text)))

function requireCursor(cursor: string): Position {
  const match = CURSOR.exec(cursor)
  if (match === null) {
    const message = 'A cursor is the next_cursor of the page before.'
    throw validationError([{ path: ['cursor'], reason: 'invalid', message }])
  }
  return { ts_us: BigInt(match[1]!), ray_id: match[2]! }
}
