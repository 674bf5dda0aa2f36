// Analytics, told of an hour that was played: each number against one that was counted plainly.
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import {
  ANALYTICS_IDS_MAX,
  ANALYTICS_VARIANTS,
  type AnalyticsDataSet,
  type AnalyticsVariant,
  createCloudToken,
  findLobby,
  getAdminFinds,
  getAnalytics,
  getGameById,
} from '@musterhost/contract'
import { aggregate } from '../../src/analytics/aggregate.ts'
import { GAUGES } from '../../src/analytics/facts.ts'
import { addUpSql } from '../../src/analytics/roll-ups.ts'
import { newGame } from '../cloud/steps.ts'
import { UNKNOWN_ID } from '../http/steps.ts'
import { openDatabase } from '../matchmaker/writers.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { HOUR_START_MS, type Hour, playHour } from './hour.ts'
import { countPlainly } from './plain.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** Its clock stands still: what waits for another time would wait for ever. */
const TEST_MS_MAX = 300_000
const FOLDS_MAX = 1_000
/** The times of finds and matches are measured, so nothing can count them plainly: other tests have them. */
const COUNTED_VARIANTS = ANALYTICS_VARIANTS.filter((variant) => variant !== 'find_duration' && variant !== 'match_wait')

/** From, to (after the beginning of the hour), and the width of the buckets in seconds. */
const WINDOWS: readonly (readonly [string, number, number, number])[] = [
  ['the hour', 0, HOUR_MS, 60],
  ['the hour and more', -10 * MINUTE_MS, 80 * MINUTE_MS, 60],
  ['ten minutes', 0, 10 * MINUTE_MS, 10],
  ['ten minutes that begin somewhere', 3 * MINUTE_MS + 37_123, 13 * MINUTE_MS + 37_123, 10],
  ['half an hour, from the quiet on', 25 * MINUTE_MS, 55 * MINUTE_MS, 30],
  ['a minute', 30 * MINUTE_MS, 31 * MINUTE_MS, 1],
  ['quiet minutes', 12 * MINUTE_MS, 28 * MINUTE_MS, 10],
  ['three hours', -HOUR_MS, 2 * HOUR_MS, 120],
  ['a day', -12 * HOUR_MS, 12 * HOUR_MS, 1_200],
  ['two days', -DAY_MS, DAY_MS, 1_800],
  ['a week', -3 * DAY_MS, 4 * DAY_MS, 7_200],
  ['a month', -29 * DAY_MS, DAY_MS, 43_200],
  ['a year', -364 * DAY_MS, DAY_MS, 7 * 86_400],
  ['a hundred years', -50 * 365 * DAY_MS, 50 * 365 * DAY_MS, 365 * 86_400],
  ['a day before anything was', -3 * DAY_MS, -2 * DAY_MS, 1_200],
  ['a day that is to come', DAY_MS, 2 * DAY_MS, 1_200],
]

async function ask(
  platform: Platform,
  games: readonly TestGame[],
  start_ms: number,
  end_ms: number,
  variants: AnalyticsVariant[] = COUNTED_VARIANTS,
) {
  const { data_sets } = await platform.client.call(getAnalytics, {
    query: {
      query_start: new Date(start_ms).toISOString(),
      query_end: new Date(end_ms).toISOString(),
      game_ids: games.map(({ game_id }) => game_id),
      namespace_ids: games.map(({ namespace_id }) => namespace_id),
      variants,
    },
  })
  assert.deepEqual(
    data_sets.map((data_set) => Object.keys(data_set)),
    variants.map((variant) => [variant]),
  )
  return Object.assign({}, ...data_sets) as Record<AnalyticsVariant, Record<string, unknown>>
}

/** Who counts plainly does not know the columns of nothing. */
function withoutEmpty(columns: Record<string, unknown>): Record<string, unknown> {
  return Object.values(columns).every((column) => Array.isArray(column) && column.length === 0) ? {} : columns
}

/** Every data set of every window, of all games and of two alone. */
async function requireNumbers({ platform, games, lobbies, players }: Hour, when: string): Promise<void> {
  for (const asked of [games, [games[1]!], [games[2]!]]) {
    const counted = {
      lobbies: lobbies.filter(({ game }) => asked.includes(game)),
      players: players.filter(({ lobby }) => asked.includes(lobby.game)),
    }
    for (const [what, from, to, width_s] of WINDOWS) {
      const window = { start_ms: HOUR_START_MS + from, end_ms: HOUR_START_MS + to }
      const told = await ask(platform, asked, window.start_ms, window.end_ms)
      const plain = countPlainly(counted, { ...window, width_s, now_ms: platform.ctx.now() })
      for (const variant of COUNTED_VARIANTS) {
        assert.deepEqual(withoutEmpty(told[variant]), plain[variant], `${variant} of ${what}, ${when}`)
      }
    }
  }
}

test('every number is what was played, however much of it is folded', { timeout: TEST_MS_MAX }, async (t) => {
  const hour = await playHour(t)
  await requireNumbers(hour, 'as it was played')
  const { platform: played, games } = hour
  for (const end_ms of [HOUR_START_MS + HOUR_MS, HOUR_START_MS + 10 * MINUTE_MS]) {
    const all = await ask(played, games, HOUR_START_MS, end_ms)
    for (const variant of COUNTED_VARIANTS) {
      const alone = await ask(played, games, HOUR_START_MS, end_ms, [variant])
      assert.deepEqual(alone, { [variant]: all[variant] }, 'a variant alone says the same')
    }
  }
  await foldAll(played)
  await requireNumbers(hour, 'when all is folded')

  // From the journal again, by folders that are killed wherever they are, and by two at once.
  await played.close()
  await foldAnew(t, hour.database_url)
  const platform = await hour.restart()
  await requireNumbers({ ...hour, platform }, 'after folders were killed')

  const { pool } = platform.ctx
  await pool.query(`truncate analytics_roll_ups, analytics_exit_codes;
    update analytics_lines set ${GAUGES.map((gauge) => `${gauge} = 0`).join(', ')}`)
  const middle = new Date(HOUR_START_MS + 40 * MINUTE_MS)
  await pool.query(addUpSql('select * from analytics_events where ts < $1', { is_new: true }), [middle])
  await pool.query(addUpSql('select * from analytics_events where ts >= $1'), [middle])
  await requireNumbers({ ...hour, platform }, 'when roll-ups were made anew of the events')
})

test('analytics of some namespaces of a game are of those alone', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker' })
  platform.playServers()
  const game = await platform.game()
  await game.player.call(findLobby, { body: { game_modes: ['default'] } })
  const { namespaces } = (await platform.client.call(getGameById, { params: { game_id: game.game_id } })).game
  const count = async (names: string[]): Promise<number> => {
    const namespace_ids = namespaces.filter(({ name_id }) => names.includes(name_id)).map((one) => one.namespace_id)
    const now_ms = platform.ctx.now()
    const { data_sets } = await platform.client.call(getAnalytics, {
      query: {
        query_start: new Date(now_ms - HOUR_MS).toISOString(),
        query_end: new Date(now_ms).toISOString(),
        game_ids: [game.game_id],
        namespace_ids,
        variants: ['matchmaker_overview'],
      },
    })
    return data_sets[0]!.matchmaker_overview!.lobby_count
  }
  assert.deepEqual(await Promise.all([['prod', 'staging'], ['prod'], ['staging']].map(count)), [1, 1, 0])

  const start_ms = platform.ctx.now() - HOUR_MS
  const finds = async () => {
    const { find_duration } = await ask(platform, [game], start_ms, start_ms + 2 * HOUR_MS, ['find_duration'])
    return find_duration as AnalyticsDataSet['find_duration'] & {}
  }
  await until('the find is counted', async () => (await finds()).find_count.length === 1)
  await game.player.call(findLobby, { body: { game_modes: ['default'] } })
  await assert.rejects(game.player.call(findLobby, { body: { game_modes: ['unknown'] } }))
  await until('two finds with a seat are counted, and no other', async () => {
    const { find_count, duration_p50, duration_p99 } = await finds()
    const of_platform = (await platform.client.call(getAdminFinds, {})).last_hour
    const counted = find_count.reduce((sum, one) => sum + one, 0)
    assert.ok(counted <= 2 && duration_p50.every((ms, at) => ms >= 0 && ms <= duration_p99[at]!))
    return counted === 2 && of_platform?.find_count === 2
  })
})

test('a wrong parameter is refused by its name; ids of other groups are treated as unknown', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const [game, other] = [await newGame(platform), await newGame(platform)]
  const good = {
    query_start: '2026-01-01T00:00:00Z',
    query_end: '2026-01-02T00:00:00Z',
    game_ids: [game.game_id],
    namespace_ids: [game.prod_id],
    variants: ['lobby_count'],
  }
  const refusal = async (change: object): Promise<[string, string] | string> => {
    const query = Object.entries({ ...good, ...change }).flatMap(([name, value]) =>
      [value].flat().map((one) => [name, one]),
    )
    const url = `${platform.api_url}/cloud/games/namespaces/analytics?${new URLSearchParams(query as string[][])}`
    const answer = await fetch(url, { headers: { authorization: `Bearer ${platform.token}` } })
    const body = (await answer.json()) as {
      code?: string
      metadata?: { errors?: { path: string[]; reason: string }[] }
    }
    const [detail] = body.metadata?.errors ?? []
    return detail === undefined ? (body.code ?? 'told') : [detail.path[1]!, detail.reason]
  }
  const many = Array.from({ length: ANALYTICS_IDS_MAX + 1 }, () => UNKNOWN_ID)
  const cases: [object, [string, string] | string][] = [
    [{}, 'told'],
    [{ variants: 'lobby_count' }, 'told'],
    [{ game_ids: [game.game_id, game.game_id, other.game_id], namespace_ids: [game.prod_id, other.prod_id] }, 'told'],
    [{ game_ids: [] }, ['game_ids', 'required']],
    [{ namespace_ids: [] }, ['namespace_ids', 'required']],
    [{ game_ids: [game.game_id, other.game_id] }, ['game_ids', 'conflicts']],
    [{ query_end: good.query_start }, ['query_end', 'too_low']],
    [{ query_start: '2026-01-03T00:00:00Z' }, ['query_end', 'too_low']],
    [{ query_start: '1767225600' }, ['query_start', 'invalid']],
    [{ query_start: '2026-02-30T00:00:00Z' }, ['query_start', 'invalid']],
    [{ query_end: [] }, ['query_end', 'required']],
    [{ variants: [] }, ['variants', 'required']],
    [{ variants: ['lobby_count', 'nonsense'] }, ['variants', 'not_allowed']],
    [{ variants: ['lobby_count', 'lobby_count'] }, ['variants', 'not_unique']],
    [{ game_ids: 'nonsense' }, ['game_ids', 'invalid']],
    [{ namespace_ids: many }, ['namespace_ids', 'too_many']],
    [{ width: '1' }, ['width', 'unknown']],
    [{ game_ids: [game.game_id, UNKNOWN_ID] }, 'GAME_NOT_FOUND'],
    [{ namespace_ids: UNKNOWN_ID }, 'NAMESPACE_NOT_FOUND'],
    [{ namespace_ids: [game.prod_id, other.prod_id] }, 'NAMESPACE_NOT_FOUND'],
    [{ query_start: '0000-01-01T00:00:00Z', query_end: '9999-12-31T23:59:59Z' }, 'told'],
  ]
  for (const [change, expected] of cases) assert.deepEqual(await refusal(change), expected, JSON.stringify(change))

  // A cloud token acts for one game; what is not its game's is unknown to it, also beside what is.
  const { token } = await platform.client.call(createCloudToken, { params: { game_id: game.game_id } })
  const cloud = platform.as(token)
  const query = { ...good, variants: ['lobby_count' as const] }
  assert.equal((await cloud.call(getAnalytics, { query })).data_sets.length, 1)
  const game_ids = [game.game_id, other.game_id]
  await assert.rejects(cloud.call(getAnalytics, { query: { ...query, game_ids } }), { code: 'GAME_NOT_FOUND' })
  const namespace_ids = [other.prod_id, other.staging_id]
  const foreign = cloud.call(getAnalytics, { query: { ...query, namespace_ids } })
  await assert.rejects(foreign, { code: 'NAMESPACE_NOT_FOUND' })
})

async function foldAll({ ctx }: Platform): Promise<void> {
  for (let count = 0; await aggregate(ctx); count++) assert.ok(count < FOLDS_MAX, 'the journal has an end')
}

const GATE = 4712
const KILLS = 4

/** Forgets all that is folded, and folds it in other processes. */
async function foldAnew(t: TestContext, url: string): Promise<void> {
  const db = await openDatabase(t, url)
  await db.query(`
    truncate analytics_lines, analytics_series, analytics_lobbies, analytics_players, analytics_events, analytics_roll_ups,
      analytics_exit_codes;
    delete from journal_readers where reader = 'analytics';
    create function wait_at_gate() returns trigger language plpgsql as
      $$ begin perform pg_advisory_xact_lock_shared(${GATE}); return null; end $$;
    create trigger gate before insert on analytics_roll_ups for each statement execute function wait_at_gate()`)
  const folded = async (): Promise<number> => {
    const { rows } = await db.query(
      "select sum(read_seq)::float8 as sum from journal_readers where reader = 'analytics'",
    )
    return rows[0].sum ?? 0
  }
  for (let kills = 0; kills < KILLS; kills++) {
    // In the middle of a transaction, when its facts are written and their sums are not.
    await db.query(`select pg_advisory_lock(${GATE})`)
    const before = await folded()
    const broken = startFolder(t, url)
    const backend = await until('it stands at the gate', async () => {
      const { rows } =
        await db.query(`select pid from pg_locks where locktype = 'advisory' and objid = ${GATE} and not granted
        and database = (select oid from pg_database where datname = current_database())`)
      return rows[0]?.pid as number | undefined
    })
    await kill(broken)
    await db.query('select pg_terminate_backend($1)', [backend])
    await db.query(`select pg_advisory_unlock(${GATE})`)
    assert.ok((await folded()) === before || before === 0, 'what was not committed is not there')
    // And two at a time, wherever they are when a part of it is done.
    const pair = [startFolder(t, url), startFolder(t, url)]
    await until('some of it is folded', async () => (await folded()) > before)
    await Promise.all(pair.map(kill))
  }
  const last = startFolder(t, url)
  await until('all of it is folded', async () => {
    const { rows } =
      await db.query(`select bool_and(read_seq = (select max(seq) from journal where journal.shard = journal_readers.shard))
      as is_all from journal_readers where reader = 'analytics'`)
    return rows[0].is_all as boolean
  })
  await kill(last)
  await db.query('drop trigger gate on analytics_roll_ups')
}

function startFolder(t: TestContext, url: string): ChildProcess {
  const child = fork(new URL('../cloud/folder-program.ts', import.meta.url), [url], { execArgv: [] })
  t.after(() => kill(child))
  return child
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}
