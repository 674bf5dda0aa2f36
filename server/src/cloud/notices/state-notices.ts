// Notices of what is wrong now, of deploys, of players and of backups: what the tables show, compared with what was noticed.
import type { Transaction } from 'kysely'
import { sql } from 'kysely'
import { readLastHour } from '../../analytics/last-hour.ts'
import type { Context } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'
import { countNow, type NowCount } from '../overview/counts.ts'
import { readLastDeploys } from '../overview/last-deploys.ts'
import { type OverviewScope, scopeOfGroups } from '../overview/scope.ts'
import type { CollectedTarget } from './audience.ts'
import { type ConditionState, compareConditions } from './condition-changes.ts'
import { gameConditions, placeOf, platformConditions } from './conditions.ts'
import type { FoundNotice } from './notice.ts'
import { comparePlayers, type PlayerState } from './player-notices.ts'

/** Deploys that are read, and for how long after they began. */
const DEPLOYS_MAX = 20
const DEPLOY_MS_MAX = 86_400_000
const BACKUPS_MAX = 20
const PLAYERS = 'players '

type Reader = { states_ts: Date | null; begin_ts: Date }
type Trx = Transaction<Schema>

export async function findStateNotices(
  ctx: Context,
  trx: Trx,
  targets: readonly CollectedTarget[],
  { states_ts, begin_ts }: Reader,
): Promise<FoundNotice[]> {
  const is_first = states_ts === null
  const has_platform = targets.some(({ group_id, game_id }) => group_id === null && game_id === null)
  const scope = await scopeOfGroups(ctx, has_platform ? null : await groupsOf(trx, targets))
  const counts = await countNow(ctx, scope.namespace_ids)
  const stored = await readStates(trx)
  const conditions = [
    ...(await gameConditions(ctx, scope, counts)),
    ...(has_platform ? await platformConditions(ctx) : []),
  ]
  // After the reads: a target that was made before gets what they found.
  const now_ms = ctx.now()
  const of_conditions = new Map([...stored].filter(([key]) => !key.startsWith(PLAYERS)))
  const changes = compareConditions(conditions, of_conditions, { now_ms, is_first })
  const players = await findPlayers(ctx, scope, { counts, stored, now_ms })
  await writeStates(trx, [...changes.put, ...players.put], changes.removed, now_ms)
  return [
    ...changes.found,
    ...(is_first ? [] : players.found),
    ...(await findDeploys(ctx, scope)),
    ...(has_platform ? await findBackups(ctx, begin_ts) : []),
  ]
}

async function groupsOf(trx: Trx, targets: readonly CollectedTarget[]): Promise<string[]> {
  const game_ids = targets.flatMap(({ game_id }) => game_id ?? [])
  const { rows } = await sql<{ group_id: string }>`
    select distinct developer_group_id as group_id from games where game_id = any(${game_ids}::uuid[])`.execute(trx)
  return [...new Set([...rows.map(({ group_id }) => group_id), ...targets.flatMap(({ group_id }) => group_id ?? [])])]
}

type States = Map<string, { value: ConditionState & PlayerState; seen_ms: number }>

async function readStates(trx: Trx): Promise<States> {
  const rows = await trx.selectFrom('notice_states').selectAll().execute()
  return new Map(
    rows.map(({ state_key, value, seen_ts }) => [
      state_key,
      { value: value as unknown as ConditionState & PlayerState, seen_ms: seen_ts.getTime() },
    ]),
  )
}

async function writeStates(
  trx: Trx,
  put: readonly (readonly [string, ConditionState | PlayerState])[],
  removed: readonly string[],
  now_ms: number,
): Promise<void> {
  if (removed.length > 0) await trx.deleteFrom('notice_states').where('state_key', 'in', removed).execute()
  if (put.length === 0) return
  await trx
    .insertInto('notice_states')
    .values(put.map(([state_key, value]) => ({ state_key, value: JSON.stringify(value), seen_ts: new Date(now_ms) })))
    .onConflict((conflict) =>
      conflict.column('state_key').doUpdateSet(({ ref }) => ({
        value: ref('excluded.value'),
        seen_ts: ref('excluded.seen_ts'),
      })),
    )
    .execute()
}

async function findPlayers(
  ctx: Context,
  scope: OverviewScope,
  { counts, stored, now_ms }: { counts: ReadonlyMap<string, NowCount>; stored: States; now_ms: number },
): Promise<{ found: FoundNotice[]; put: [string, PlayerState][] }> {
  const unknown = scope.namespace_ids.filter((id) => counts.has(id) && !stored.has(PLAYERS + id))
  const firsts = await firstStates(ctx, unknown)
  const found: FoundNotice[] = []
  const put: [string, PlayerState][] = []
  for (const namespace_id of scope.namespace_ids) {
    const before = stored.get(PLAYERS + namespace_id)?.value ?? firsts.get(namespace_id)
    if (before === undefined) continue
    const { player_count } = counts.get(namespace_id) ?? { player_count: 0 }
    const change = comparePlayers(placeOf(scope, namespace_id), before, { now_ms, player_count })
    found.push(...change.found)
    if (change.state !== null) put.push([PLAYERS + namespace_id, change.state])
  }
  return { found, put }
}

/** What analytics know of namespaces that had no lobby since the first target was made. */
async function firstStates(ctx: Context, namespace_ids: readonly string[]): Promise<Map<string, PlayerState>> {
  if (namespace_ids.length === 0) return new Map()
  const now_ms = ctx.now()
  const hours = await readLastHour(ctx.pool, namespace_ids, { now_ms, minutes: 60 })
  const { rows } = await ctx.pool.query<{ namespace_id: string; record: number }>(
    `select namespace_id, max(roll_up.player_count) as record
      from analytics_lines lines join analytics_roll_ups roll_up using (line_id)
      where namespace_id = any($1) and lines.region is null and lines.game_mode is null group by namespace_id`,
    [namespace_ids],
  )
  const records = new Map(rows.map(({ namespace_id, record }) => [namespace_id, record]))
  return new Map(
    namespace_ids.map((namespace_id) => {
      // The last minutes are those of the players who are there now.
      const earlier = hours.get(namespace_id)?.player_counts.slice(0, -2) ?? []
      const had_players = earlier.some((count) => count > 0)
      return [namespace_id, { last_ms: had_players ? now_ms : 0, record: records.get(namespace_id) ?? 0, record_ms: 0 }]
    }),
  )
}

async function findDeploys(ctx: Context, scope: OverviewScope): Promise<FoundNotice[]> {
  const deploys = await readLastDeploys(ctx, scope, DEPLOYS_MAX)
  return deploys.flatMap(({ deploy_id, namespace_id, version_display_name, outcome, first_ready_ts, deploy_ts }) => {
    const since_ms = Date.parse(deploy_ts)
    if (outcome === 'unknown' || ctx.now() - since_ms > DEPLOY_MS_MAX) return []
    const is_live = outcome === 'ready'
    return {
      source: `deploy ${outcome} ${deploy_id}`,
      event: is_live ? 'deploy_live' : 'deploy_failed',
      severity: is_live ? 'info' : 'error',
      title: is_live ? `${version_display_name} is live` : `The deploy of ${version_display_name} failed`,
      text: is_live ? 'Its first server is ready.' : 'A server of it failed, and none was ready.',
      ts_ms: first_ready_ts === undefined ? ctx.now() : Date.parse(first_ready_ts),
      since_ms,
      ...placeOf(scope, namespace_id),
    } satisfies FoundNotice
  })
}

async function findBackups({ pool }: Context, begin_ts: Date): Promise<FoundNotice[]> {
  const { rows } = await pool.query<{ backup_id: string; folder: string; end_ts: Date; object_count: number }>(
    `select backup_id, folder, end_ts, object_count from backups where end_ts >= $1
      order by end_ts desc limit ${BACKUPS_MAX}`,
    [begin_ts],
  )
  return rows.map(({ backup_id, folder, end_ts, object_count }) => ({
    source: `backup ${backup_id}`,
    event: 'backup_done',
    severity: 'info',
    title: 'A backup was made',
    text: `In ${folder}, with ${object_count} objects.`,
    ts_ms: end_ts.getTime(),
  }))
}
