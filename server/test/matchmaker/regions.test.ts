import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  type ApiError,
  type BodyOf,
  createGameNamespaceTokenDevelopment,
  createLobby,
  findLobby,
  getPlayerStatistics,
  listLobbies,
  listRegions,
} from '@musterhost/contract'
import { measureRegions } from '../../../sdk/src/regions.ts'
import { CHANNELS } from '../../src/wire/channels.ts'
import { mmdbFile } from '../addresses/mmdb-file.ts'
import { from, LONG_MS, TRUSTING } from '../http/steps.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'

const region = (name: string, latitude: number, longitude: number) =>
  `[[regions]]\nname = "${name}"\ndisplay_name = "In ${name}"\nprovider_display_name = "Someone"\nlatitude = ${latitude}\nlongitude = ${longitude}\n`
const REGIONS =
  region('syd', -33.87, 151.21) + region('fra', 50.11, 8.68) + region('atl', 33.75, -84.39) + region('mars', 0, 0)
const LONDON = '81.2.69.142'
const GAME_MODES = {
  default: {
    regions: { syd: {}, fra: {}, atl: {} },
    idle_grace_ms: LONG_MS,
    actions: { create: { enabled: true, enable_public: true } },
  },
  east: { regions: { syd: {} }, idle_grace_ms: LONG_MS, max_players: 1 },
}

/** Regions of which the game's modes run in three, and a city. */
async function start(t: TestContext, { roles = 'api,matchmaker', ...more }: Record<string, string> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'muster-regions-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const city = mmdbFile({ '81.2.69.0/24': { location: { latitude: 51.51, longitude: -0.13 } } })
  await writeFile(join(folder, 'city.mmdb'), city)
  await writeFile(join(folder, 'muster.toml'), REGIONS)
  const env = { ...TRUSTING, MUSTER_IP_DATA: folder, MUSTER_CONFIG: join(folder, 'muster.toml'), ...more }
  const platform = await startPlatform(t, { roles, env })
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: GAME_MODES } })
  const { token } = await platform.client.call(createGameNamespaceTokenDevelopment, {
    params: { game_id: game.game_id, namespace_id: game.namespace_id },
    body: { hostname: 'localhost' },
  })
  return { platform, game, developer: platform.as(token) }
}

test('regions come nearest first with their distance, in the list of lobbies too, and find goes to the first', async (t) => {
  const { game, developer } = await start(t)
  const { regions } = await game.player.call(listRegions, from(LONDON))
  assert.deepEqual(
    regions.map(({ region_id }) => region_id),
    ['fra', 'atl', 'syd'],
  )
  const [nearest] = regions
  const { kilometers, miles } = nearest!.datacenter_distance_from_client
  assert.ok(Math.abs(kilometers - 638) < 5 && Math.abs(miles - 396.5) < 4, `${kilometers} km, ${miles} miles`)
  assert.deepEqual(nearest!.datacenter_coord, { latitude: 50.11, longitude: 8.68 })
  assert.deepEqual([nearest!.region_display_name, nearest!.provider_display_name], ['In fra', 'Someone'])
  assert.deepEqual(
    (await game.player.call(listLobbies, from(LONDON))).regions,
    regions.map(({ ping_addresses, ...region }) => region),
  )
  assert.equal((await game.find({}, from(LONDON))).lobby.region.region_id, 'fra')

  const unknown = (await game.player.call(listRegions, {})).regions
  assert.deepEqual(
    unknown.map(({ region_id, datacenter_distance_from_client: { kilometers, miles } }) => [
      region_id,
      kilometers,
      miles,
    ]),
    [
      ['atl', 0, 0],
      ['fra', 0, 0],
      ['syd', 0, 0],
    ],
  )
  const local = (await developer.call(listRegions, from(LONDON))).regions
  assert.deepEqual(
    local.map(({ region_id, datacenter_distance_from_client: { kilometers } }) => [region_id, kilometers]),
    [['dev-lcl', 0]],
  )
})

test('each region names the edges that stand in it, which a page measures', async (t) => {
  const { platform, game, developer } = await start(t, {
    roles: 'api,matchmaker,edge',
    MUSTER_RUNNER_REGIONS: 'fra,syd',
  })
  const pings = async (client = game.player) => {
    const { regions } = await client.call(listRegions, {})
    return Object.fromEntries(regions.map(({ region_id, ping_addresses }) => [region_id, ping_addresses]))
  }
  await until('the edge is known', async () => (await pings()).fra?.length === 1)
  const own = { url: `http://localhost:${new URL(platform.edge_url).port}/ping` }
  assert.deepEqual(await pings(), { atl: [], fra: [own], syd: [own] })
  assert.deepEqual(await pings(developer), { 'dev-lcl': [] })

  // A busy machine may not respond within the two seconds of a measurement.
  const measured = await until('a measurement in time', async () => {
    const latencies = await measureRegions({ matchmaker_url: platform.edge_url, token: game.public_token })
    return Object.keys(latencies).length > 0 ? latencies : null
  })
  assert.deepEqual(Object.keys(measured), ['fra', 'syd'])
  assert.ok(measured.fra === measured.syd && measured.fra! >= 0 && measured.fra! < 2_000, JSON.stringify(measured))

  const columns = 'edge_id, node_id, public_host, http_port, https_port, regions, ping_port'
  await platform.ctx.pool.query(
    `insert into edges (${columns}) values (gen_random_uuid(), 'attic', 'attic.example.com', 80, null, '{atl,fra}', 25999),
      (gen_random_uuid(), 'before', 'old.example.com', 80, null, null, null)`,
  )
  await platform.ctx.listener.notify(CHANNELS.edge_ports)
  await until('the other edge is known', async () => (await pings()).atl?.length === 1)
  const attic = { url: 'http://attic.example.com/ping', udp: 'attic.example.com:25999' }
  assert.deepEqual(await pings(), { atl: [attic], fra: [own, attic], syd: [own] })
})

test('find and create take the region with the least measured latency, and say what to expect there', async (t) => {
  const { game } = await start(t)
  const find = async (body: Partial<BodyOf<typeof findLobby>>, address = LONDON) =>
    (await game.player.call(findLobby, { body: { game_modes: ['default'], ...body }, ...from(address) })).lobby.region
  const inAtlanta = { region_id: 'atl', display_name: 'In atl' }
  const inFrankfurt = { region_id: 'fra', display_name: 'In fra' }
  assert.deepEqual(await find({ latencies_ms: { fra: 90, atl: 81.5, mars: 1 } }), { ...inAtlanta, expected_ms: 81.5 })
  assert.deepEqual(await find({}), inFrankfurt, 'to a request without measurements nothing has changed')
  assert.deepEqual(await find({ regions: ['atl'] }), inAtlanta, 'the response of another player of the lobby has none')
  assert.deepEqual(await find({ latencies_ms: {} }), inFrankfurt, 'nothing was measured: distance decides')
  assert.deepEqual(await find({ latencies_ms: { mars: 1 } }), inFrankfurt, 'the game mode does not run there')
  assert.deepEqual(
    await find({ regions: ['fra'], latencies_ms: { atl: 1, fra: 2 } }),
    { ...inFrankfurt, expected_ms: 2 },
    'regions of the request decide first',
  )
  const body = { game_mode: 'default', latencies_ms: { fra: 8, syd: 7 } }
  const created = await game.player.call(createLobby, { body, ...from(LONDON) })
  assert.deepEqual(created.lobby.region, { region_id: 'syd', display_name: 'In syd', expected_ms: 7 })

  const many = Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`r${index}`, 1]))
  for (const [latencies_ms, path] of [
    [{ fra: -1 }, ['latencies_ms', 'fra']],
    [{ fra: 10_001 }, ['latencies_ms', 'fra']],
    [many, ['latencies_ms']],
  ] as const) {
    await assert.rejects(find({ latencies_ms }), (error: ApiError) => {
      assert.equal(error.code, 'VALIDATION_ERROR')
      assert.deepEqual((error.metadata as { errors: { path: string[] }[] }).errors[0]?.path, path)
      return true
    })
  }
})

test('statistics count taken seats by mode and region, over all versions unless one asks otherwise', async (t) => {
  const { platform, game, developer } = await start(t)
  const zero = { player_count: 0 }
  const none = {
    player_count: 0,
    game_modes: {
      default: { player_count: 0, regions: { syd: zero, fra: zero, atl: zero } },
      east: { player_count: 0, regions: { syd: zero } },
    },
  }
  const statistics = (query = {}) => game.player.call(getPlayerStatistics, { query })
  assert.deepEqual(await statistics(), none)
  for (const address of ['192.0.2.1', '192.0.2.2', LONDON]) await game.find({}, from(address))
  for (const address of ['192.0.2.1', '192.0.2.2']) await game.find({ game_modes: ['east'] }, from(address))
  const some = {
    player_count: 5,
    game_modes: {
      default: { player_count: 3, regions: { syd: zero, fra: { player_count: 1 }, atl: { player_count: 2 } } },
      east: { player_count: 2, regions: { syd: { player_count: 2 } } },
    },
  }
  assert.deepEqual(await statistics(), some)

  await platform.deploy(game, { default: { regions: { fra: {} } } })
  const current = { default: { player_count: 0, regions: { fra: zero } } }
  assert.deepEqual(await statistics({ exclude_outdated: true }), { player_count: 0, game_modes: current })
  const { player_count, game_modes } = await statistics()
  assert.equal(player_count, 5)
  assert.deepEqual(game_modes.east, some.game_modes.east)
  assert.deepEqual(game_modes.default?.regions, { fra: { player_count: 1 }, atl: { player_count: 2 } })
  assert.deepEqual(await developer.call(getPlayerStatistics, {}), {
    player_count: 0,
    game_modes: { default: { player_count: 0, regions: { 'dev-lcl': zero } } },
  })
})
