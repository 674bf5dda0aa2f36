// The overview of a person. The number of queries does not depend on the number of groups, games and namespaces.
import {
  type getOverview,
  OVERVIEW_DEPLOYS_MAX,
  OVERVIEW_MINUTES,
  OVERVIEW_PROBLEMS_MAX,
  type OverviewDeploy,
  type OverviewNamespace,
  type Problem,
  type QueryOf,
  type ResponseOf,
} from '@musterhost/contract'
import { firstMinuteMs, type MinuteCounts, readLastHour } from '../../analytics/last-hour.ts'
import type { Context } from '../../context.ts'
import type { Caller } from '../../tokens/caller.ts'
import { requireGroup } from '../access.ts'
import { cut } from '../lists.ts'
import { timestamp } from '../times.ts'
import { countNow, type NowCount } from './counts.ts'
import { readLastDeploys } from './last-deploys.ts'
import { platformProblems } from './platform-problems.ts'
import { gameProblems } from './problems.ts'
import { type OverviewScope, type ScopeNamespace, scopeOf } from './scope.ts'

type Answer = ResponseOf<typeof getOverview>
const NO_STEPS = { has_game: false, has_build: false, has_deploy: false, has_player: false }

/** Throws GROUP_NOT_FOUND. */
export async function tellOverview(
  ctx: Context,
  caller: Caller,
  { group_id }: QueryOf<typeof getOverview>,
): Promise<Answer> {
  if (group_id !== undefined) await requireGroup(ctx, caller, group_id)
  const scope = await scopeOf(ctx, caller, group_id ?? null)
  const now_ms = ctx.now()
  const [counts, hours, deploys, steps] = await Promise.all([
    countNow(ctx, scope.namespace_ids),
    readLastHour(ctx.pool, scope.namespace_ids, { now_ms, minutes: OVERVIEW_MINUTES }),
    readLastDeploys(ctx, scope, OVERVIEW_DEPLOYS_MAX),
    readFirstSteps(ctx, scope.group_ids),
  ])
  const found = [
    ...(caller.kind === 'admin' && group_id === undefined ? await platformProblems(ctx) : []),
    ...(await gameProblems(ctx, scope, counts)),
  ]
  const problems = cut<Problem>(found.toSorted(bySeverity), OVERVIEW_PROBLEMS_MAX)
  const start_ts = timestamp(new Date(firstMinuteMs(now_ms, OVERVIEW_MINUTES)))
  const namespaces = scope.namespaces.map((namespace) =>
    namespaceOf(namespace, start_ts, counts.get(namespace.namespace_id), hours.get(namespace.namespace_id)),
  )
  const games = gamesOf(scope, namespaces)
  return {
    ts: timestamp(new Date(now_ms)),
    problems: problems.rows,
    groups: groupsOf(scope, games, steps),
    games,
    namespaces,
    deploys: deploys satisfies OverviewDeploy[],
    is_cut: scope.is_cut || problems.is_cut,
  }
}

function bySeverity(one: Problem, other: Problem): number {
  return Number(one.severity === 'warning') - Number(other.severity === 'warning')
}

function namespaceOf(
  { lobby_count_max: _, ...namespace }: ScopeNamespace,
  start_ts: string,
  now: NowCount | undefined,
  hour: MinuteCounts | undefined,
): OverviewNamespace {
  const [player_count, lobby_count] = [now?.player_count ?? 0, now?.lobby_count ?? 0]
  const endingWith = (counts: readonly number[] | undefined, last: number): number[] =>
    counts === undefined ? [...new Array<number>(OVERVIEW_MINUTES - 1).fill(0), last] : [...counts.slice(0, -1), last]
  return {
    ...namespace,
    player_count,
    lobby_count,
    last_hour: {
      start_ts,
      player_counts: endingWith(hour?.player_counts, player_count),
      lobby_counts: endingWith(hour?.lobby_counts, lobby_count),
    },
  }
}

function gamesOf(scope: OverviewScope, namespaces: readonly OverviewNamespace[]): Answer['games'] {
  const by_game = Map.groupBy(namespaces, ({ game_id }) => game_id)
  return scope.games.map((game) => {
    const of_game = by_game.get(game.game_id) ?? []
    return {
      ...game,
      player_count: of_game.reduce((sum, { player_count }) => sum + player_count, 0),
      lobby_count: of_game.reduce((sum, { lobby_count }) => sum + lobby_count, 0),
    }
  })
}

type Steps = Answer['groups'][number]['first_steps']

/** A player who is there now may be unknown to analytics, which are a few seconds late. */
function groupsOf(scope: OverviewScope, games: Answer['games'], steps: ReadonlyMap<string, Steps>): Answer['groups'] {
  const with_players = new Set(games.filter(({ player_count }) => player_count > 0).map(({ group_id }) => group_id))
  return scope.groups.map(({ role, ...group }) => {
    const done = steps.get(group.group_id) ?? NO_STEPS
    const has_player = done.has_player || with_players.has(group.group_id)
    return { ...group, ...(role === null ? {} : { role }), first_steps: { ...done, has_player } }
  })
}

/** A year's roll-ups know of every player that analytics are kept of. */
async function readFirstSteps({ pool }: Context, group_ids: readonly string[]): Promise<Map<string, Steps>> {
  const { rows } = await pool.query<Steps & { group_id: string }>(
    `select owner.id as group_id,
        exists (select from games where developer_group_id = owner.id) as has_game,
        exists (
          select from games join builds using (game_id) join uploads using (upload_id)
          where developer_group_id = owner.id and complete_ts is not null
        ) as has_build,
        exists (
          select from games join namespaces using (game_id) join namespace_versions using (namespace_id)
          where developer_group_id = owner.id and namespace_versions.version_id <> (
            select version_id from versions where versions.game_id = games.game_id order by create_ts, version_id limit 1
          )
        ) as has_deploy,
        exists (
          select from games join namespaces using (game_id) join analytics_lines as lines using (namespace_id)
          where developer_group_id = owner.id and lines.region is null and lines.game_mode is null and (
            lines.player_count > 0 or exists (
              select from analytics_roll_ups as roll_up
              where roll_up.line_id = lines.line_id and width = 31536000 and new_player_count > 0
            )
          )
        ) as has_player
      from unnest($1::uuid[]) as owner (id)`,
    [group_ids],
  )
  return new Map(rows.map(({ group_id, ...steps }) => [group_id, steps]))
}
