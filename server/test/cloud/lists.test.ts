// Lists that are full say so: no response is shorter than what there is without a word.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type ApiError,
  deleteGroup,
  getGameById,
  getGameNamespaceVersionHistoryList,
  getGames,
  getRayPerfLogs,
  getUsage,
  listGameBuilds,
  listGameCdnSites,
  listGameCloudTokens,
  listGroups,
  listNamespaceLobbies,
} from '@musterhost/contract'
import { isCut } from '../../src/analytics/data-sets.ts'
import { LIST_MAX } from '../../src/cloud/lists.ts'
import { lobbyCsv } from '../../src/cloud/lobbies/csv.ts'
import { startPlatform } from '../support/platform.ts'
import { newGame, refused } from './steps.ts'

const DAY_MS = 24 * 60 * 60_000
const HISTORY_MAX = 100
const PERF_LISTS_MAX = 64
const LOBBIES_PAGE = 64

test('a list that is cut says so, and one that is just full does not', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { client, ctx } = platform
  const { group_id, game_id, prod_id: namespace_id, version_id } = await newGame(platform)
  const params = { game_id, namespace_id }
  /** `rows` as SQL, in which n counts from 1 to `count`. */
  const insert = (into: string, rows: string, count: number) =>
    ctx.pool.query(`insert into ${into} select ${rows} from generate_series(1, ${count}) n`)
  const upload = `(select upload_id from uploads where game_id = '${game_id}' limit 1)`
  await insert('uploads (upload_id, game_id, kind, content_length)', `gen_random_uuid(), '${game_id}', 'build', 1`, 1)

  type Case = {
    name: string
    /** How many there are already. */
    there: number
    max: number
    into: string
    rows: string
    list: () => Promise<{ count: number; is_cut: boolean }>
  }
  const cases: Case[] = [
    {
      ...{ name: 'builds', there: 0, max: LIST_MAX },
      into: 'builds (build_id, game_id, upload_id, display_name, image_tag, kind, compression)',
      rows: `gen_random_uuid(), '${game_id}', ${upload}, 'b', gen_random_uuid(), 'archive', 'none'`,
      list: async () => {
        const { builds, is_cut } = await client.call(listGameBuilds, { params: { game_id } })
        return { count: builds.length, is_cut }
      },
    },
    {
      ...{ name: 'sites', there: 0, max: LIST_MAX },
      into: 'sites (site_id, game_id, upload_id, display_name)',
      rows: `gen_random_uuid(), '${game_id}', ${upload}, 's'`,
      list: async () => {
        const { sites, is_cut } = await client.call(listGameCdnSites, { params: { game_id } })
        return { count: sites.length, is_cut }
      },
    },
    {
      ...{ name: 'tokens', there: 1, max: LIST_MAX },
      into: 'tokens (token_id, kind, game_id, create_ts)',
      rows: `gen_random_uuid(), 'cloud', '${game_id}', now()`,
      list: async () => {
        const { tokens, is_cut } = await client.call(listGameCloudTokens, { params: { game_id } })
        return { count: tokens.length, is_cut }
      },
    },
    {
      ...{ name: 'versions', there: 1, max: LIST_MAX },
      into: 'versions (version_id, game_id, display_name, config)',
      rows: `gen_random_uuid(), '${game_id}', gen_random_uuid(), '{}'`,
      list: async () => {
        const { game } = await client.call(getGameById, { params: { game_id } })
        return { count: game.versions.length, is_cut: game.is_cut }
      },
    },
    {
      ...{ name: 'deploys', there: 1, max: HISTORY_MAX },
      into: 'namespace_versions (deploy_id, namespace_id, version_id, caller_kind)',
      rows: `gen_random_uuid(), '${namespace_id}', '${version_id}', 'admin'`,
      list: async () => {
        const { versions, is_cut } = await client.call(getGameNamespaceVersionHistoryList, { params })
        return { count: versions.length, is_cut }
      },
    },
    {
      ...{ name: 'lobbies', there: 0, max: LOBBIES_PAGE },
      into: `lobbies (lobby_id, namespace_id, shard, version_id, game_mode, region, publicity, is_custom, is_closed,
        max_players_normal, max_players_direct, max_players_party, tags, player_count, player_deadline_ms, idle_grace_ms,
        create_ts, ready_deadline_ts, stop_ts, stop_reason)`,
      rows: `gen_random_uuid(), '${namespace_id}', 0, '${version_id}', 'default', 'local', 'public', false, false, 1, 1,
        1, '{}', 0, 1, 1, now() + random() * interval '1 h', now(), now(), 'idle'`,
      list: async () => {
        const { lobbies, is_cut } = await client.call(listNamespaceLobbies, { params })
        return { count: lobbies.length, is_cut }
      },
    },
    {
      ...{ name: 'services of a ray', there: 0, max: PERF_LISTS_MAX },
      into: 'ray_spans (ray_id, service, operation, owner_id, ts, duration_us, spans, marks)',
      rows: `'${game_id}', 'api', 'x', '${game_id}', now() - interval '1 h', 1, '[]', '[]'`,
      list: async () => {
        const { perf_lists, is_cut } = await client.call(getRayPerfLogs, { params: { ray_id: game_id } })
        return { count: perf_lists.length, is_cut }
      },
    },
    {
      ...{ name: 'games', there: 1, max: LIST_MAX },
      into: 'games (game_id, developer_group_id, name_id, display_name)',
      rows: `gen_random_uuid(), '${group_id}', gen_random_uuid(), 'g'`,
      list: async () => {
        const { games, is_cut } = await client.call(getGames, {})
        return { count: games.length, is_cut }
      },
    },
    {
      ...{ name: 'groups', there: 1, max: LIST_MAX },
      into: 'groups (group_id, display_name)',
      rows: `gen_random_uuid(), 'g'`,
      list: async () => {
        const { groups, is_cut } = await client.call(listGroups, {})
        return { count: groups.length, is_cut }
      },
    },
  ]
  for (const { name, there, max, into, rows, list } of cases) {
    await insert(into, rows, max - there)
    assert.deepEqual(await list(), { count: max, is_cut: false }, `${name}, just full`)
    await insert(into, rows, 1)
    assert.deepEqual(await list(), { count: max, is_cut: true }, name)
  }
  // Of the two lists in a response either is cut.
  assert.equal((await client.call(getGames, {})).is_cut, true)

  const error: ApiError = await refused('IN_USE', client.call(deleteGroup, { params: { group_id } }))
  assert.equal((error.metadata.held_by as unknown[]).length, 32)
  assert.equal(error.metadata.is_cut, true)
  assert.match(error.message, / and others\.$/)

  const window = { game_id, query_start: 0, query_end: Date.now() + DAY_MS }
  const whole = (await Array.fromAsync(lobbyCsv(ctx, window))).join('').split('\r\n')
  assert.equal(whole.length, 1 + LOBBIES_PAGE + 1 + 1, 'names, lobbies, and the end of the last row')
  const cut = (await Array.fromAsync(lobbyCsv(ctx, window, 3))).join('').split('\r\n')
  assert.deepEqual(cut.slice(0, 4), whole.slice(0, 4))
  assert.match(cut[4]!, /^"is_cut: there are more lobbies than these 3\./)
  assert.equal(cut[4]!.split(',').length, whole[0]!.split(',').length)
  assert.deepEqual(cut.slice(5), [''])
})

test('a bill says when its window reaches back to times whose runs are removed', async (t) => {
  const platform = await startPlatform(t, { roles: 'api', env: { MUSTER_RETENTION_RUNS_DAYS: '30' } })
  const { group_id } = await newGame(platform)
  const isCutFrom = async (days: number): Promise<boolean> => {
    const query_start_ts = new Date(platform.ctx.now() - days * DAY_MS).toISOString()
    return (await platform.client.call(getUsage, { params: { group_id }, query: { query_start_ts } })).is_cut
  }
  assert.equal(await isCutFrom(31), false, 'the group is new: none of its runs is that old')
  platform.advance(40 * DAY_MS)
  assert.deepEqual(await Promise.all([29, 31, 400].map(isCutFrom)), [false, true, true])
})

test('analytics say when there are more lines than a data set has', () => {
  const lines = (count: number) => Array.from({ length: count }, () => ({ names: ['x'], of: {} })) as never[]
  const exits = (count: number) =>
    Array.from({ length: count }, (_, exit_code) => ({ bucket: 0, exit_code, lobby_count: 1 }))
  const cut = (region: number, game_mode: number, codes: number) =>
    isCut({ lines: { all: [], region: lines(region), game_mode: lines(game_mode) }, exits: exits(codes) })
  assert.equal(cut(100, 100, 100), false)
  assert.deepEqual([cut(101, 0, 0), cut(0, 101, 0), cut(0, 0, 101)], [true, true, true])
})
