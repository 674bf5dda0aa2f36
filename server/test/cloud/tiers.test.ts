import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import {
  type ApiError,
  createGameVersion,
  findLobby,
  getGameById,
  getRegionTiers,
  listLobbies,
  type VersionConfig,
  validateGameVersion,
} from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { createDatabase } from '../support/database.ts'
import { startPlatform, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { detailsOf, newBuild, newGame, refused, withoutMessages } from './steps.ts'

const TOML = `
[[tiers]]
tier_name_id = "big"
platform_cores_numerator = 2
platform_cores_denominator = 1
memory = 2048
[[tiers]]
tier_name_id = "third"
platform_cores_numerator = 1
platform_cores_denominator = 3
memory = 100
[[regions]]
name = "fra"
display_name = "Frankfurt"
latitude = 50.1
longitude = 8.7
default_tier = "third"
cores = 2
memory_mb = 10000
[[regions]]
name = "syd"
display_name = "Sydney"
latitude = -33.9
longitude = 151.2
tiers = ["third"]
cores = 0
memory_mb = 250
`
const GAMES = 4
const FINDS_EACH = 10

test('regions and tiers', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'muster-toml-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'muster.toml')
  writeFileSync(file, TOML)
  const database_url = await createDatabase(t)
  const data_dir = join(folder, 'data')
  const options = { database_url, data_dir, env: { MUSTER_CONFIG: file } }
  const platform = await startPlatform(t, options)
  const { client } = platform

  await t.test('the tiers are returned to anybody, with exactly the members of the interface', async () => {
    const { tiers } = await createClient({ url: platform.api_url }).call(getRegionTiers, {})
    assert.deepEqual(
      tiers.map((tier) => tier.tier_name_id),
      ['big', 'third'],
    )
    assert.deepEqual(Object.keys(tiers[0]!).sort(), [
      'bandwidth',
      'cpu',
      'disk',
      'memory',
      'platform_cores_denominator',
      'platform_cores_numerator',
      'tier_name_id',
    ])
  })

  await t.test('a version names tiers that its regions have', async () => {
    const { game_id } = await newGame(platform)
    const docker = { image_id: await newBuild(platform, game_id), args: ['node', 'server.js'] }
    const check = async (matchmaker: VersionConfig['matchmaker']) => {
      const body = { display_name: 'V', config: { matchmaker } }
      const { errors } = await client.call(validateGameVersion, { params: { game_id }, body })
      if (errors.length > 0) {
        const create = client.call(createGameVersion, { params: { game_id }, body: body as never })
        assert.deepEqual(detailsOf(await refused('VALIDATION_ERROR', create)), withoutMessages(errors))
      }
      return withoutMessages(errors)
    }
    const mode = ['matchmaker', 'game_modes', 'default']
    assert.deepEqual(await check({ docker, tier: 'third', game_modes: { default: {} } }), [])
    assert.deepEqual(await check({ docker, game_modes: { default: { tier: 'big', regions: { fra: {} } } } }), [])
    assert.deepEqual(
      await check({ docker, tier: 'big', game_modes: { default: { regions: { fra: {}, syd: { tier: 'third' } } } } }),
      [],
    )
    assert.deepEqual(await check({ docker, tier: 'big', game_modes: { default: {}, other: {} } }), [
      { path: ['matchmaker', 'tier'], reason: 'not_found' },
    ])
    assert.deepEqual(await check({ docker, game_modes: { default: { tier: 'huge', regions: { fra: {} } } } }), [
      { path: [...mode, 'tier'], reason: 'not_found' },
    ])
    assert.deepEqual(await check({ docker, game_modes: { default: { regions: { syd: { tier: 'big' } } } } }), [
      { path: [...mode, 'regions', 'syd', 'tier'], reason: 'not_found' },
    ])
    const shared = { docker, regions: { syd: { tier: 'big' } }, game_modes: { default: {} } }
    assert.deepEqual(await check(shared), [{ path: ['matchmaker', 'regions', 'syd', 'tier'], reason: 'not_found' }])
    const { game } = await client.call(getGameById, { params: { game_id } })
    assert.deepEqual(
      game.available_regions.map((region) => region.region_name_id),
      ['fra', 'syd'],
    )
  })

  const games: TestGame[] = []
  for (let index = 0; index < GAMES; index++) {
    const game = await platform.game({
      matchmaker: { game_modes: { default: { max_players: 1, idle_grace_ms: 3_600_000 } } },
      limits: { max_players_per_client: 1_000 },
    })
    games.push(game)
  }
  platform.playServers()
  const findIn = (region: string, player = games[0]!.player) =>
    player.call(findLobby, { body: { game_modes: ['default'], regions: [region] } })
  const rush = (region: string) =>
    Promise.allSettled(games.flatMap(({ player }) => Array.from({ length: FINDS_EACH }, () => findIn(region, player))))
  const codesOf = (outcomes: PromiseSettledResult<unknown>[]) =>
    outcomes.map((outcome) => (outcome.status === 'fulfilled' ? 'seat' : (outcome.reason as ApiError).code))
  const seats = (codes: string[]) => codes.filter((code) => code === 'seat').length

  await t.test('a region holds exactly as many lobbies as fit, over all namespaces at once', async () => {
    const codes = codesOf(await rush('fra'))
    assert.equal(seats(codes), 6, 'two cores, a third each')
    assert.deepEqual([...new Set(codes)].sort(), ['MATCHMAKER_REGION_FULL', 'seat'])
    const { message, metadata, retry_after_s } = await refused('MATCHMAKER_REGION_FULL', findIn('fra'))
    assert.deepEqual(metadata, { region: 'fra', reason: 'cores_full', setting: 'MUSTER_CAPACITY_CORES' })
    assert.match(message, /use 2 of 2 cores, and this one takes 0\.333\. MUSTER_CAPACITY_CORES, or cores of the region/)
    assert.ok((retry_after_s ?? 0) > 0)
    const rows = await platform.ctx.db
      .selectFrom('lobbies')
      .select(['tier', 'memory_mb'])
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('stop_ts', 'is', null)
      .groupBy(['tier', 'memory_mb'])
      .execute()
    assert.deepEqual(
      rows.map((row) => ({ ...row, count: Number(row.count) })),
      [{ tier: 'third', memory_mb: 100, count: 6 }],
    )
  })

  await t.test('memory bounds it as cores do, and one region does not fill another', async () => {
    assert.equal(seats(codesOf(await rush('syd'))), 2)
    const { metadata } = await refused('MATCHMAKER_REGION_FULL', findIn('syd'))
    assert.deepEqual(metadata, { region: 'syd', reason: 'memory_full', setting: 'MUSTER_CAPACITY_MEMORY_MB' })
  })

  await t.test('a lobby that ends makes room for exactly one', async () => {
    const { ctx } = platform
    const [lobby] = await ctx.db
      .selectFrom('lobbies')
      .select('lobby_id')
      .where('region', '=', 'fra')
      .where('stop_ts', 'is', null)
      .limit(1)
      .execute()
    const run = { lobby_id: lobby!.lobby_id, runner_id: 'test', driver: 'process', handle: '{}', ports: '{}' }
    await ctx.db
      .insertInto('lobby_runs')
      .values({ ...run, start_ts: null, exit_ts: new Date(), exit_code: 0, exit_reason: 'exit' })
      .execute()
    await ctx.listener.notify('lobby_runs', lobby!.lobby_id)
    await until('the lobby to be stopped', async () => {
      const row = await ctx.db
        .selectFrom('lobbies')
        .select('stop_ts')
        .where('lobby_id', '=', lobby!.lobby_id)
        .executeTakeFirst()
      return row?.stop_ts != null
    })
    assert.equal(seats(codesOf(await rush('fra'))), 1)
  })

  await t.test('after a restart the region is as full as before', async () => {
    await platform.close()
    const again = await startPlatform(t, options)
    again.playServers()
    const player = again.as(games[1]!.public_token)
    await refused('MATCHMAKER_REGION_FULL', findIn('fra', player))
    await refused('MATCHMAKER_REGION_FULL', findIn('syd', player))
    await player.call(listLobbies, {})
  })
})
