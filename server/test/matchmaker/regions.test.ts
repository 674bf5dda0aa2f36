import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  createGameNamespaceTokenDevelopment,
  getPlayerStatistics,
  listLobbies,
  listRegions,
} from '@musterhost/contract'
import { mmdbFile } from '../addresses/mmdb-file.ts'
import { from, LONG_MS, TRUSTING } from '../http/steps.ts'
import { startPlatform } from '../support/platform.ts'

const region = (name: string, latitude: number, longitude: number) =>
  `[[regions]]\nname = "${name}"\ndisplay_name = "In ${name}"\nprovider_display_name = "Someone"\nlatitude = ${latitude}\nlongitude = ${longitude}\n`
const REGIONS =
  region('syd', -33.87, 151.21) + region('fra', 50.11, 8.68) + region('atl', 33.75, -84.39) + region('mars', 0, 0)
const LONDON = '81.2.69.142'
const GAME_MODES = {
  default: { regions: { syd: {}, fra: {}, atl: {} }, idle_grace_ms: LONG_MS },
  east: { regions: { syd: {} }, idle_grace_ms: LONG_MS, max_players: 1 },
}

/** Regions of which the game's modes run in three, and a city. */
async function start(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'muster-regions-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const city = mmdbFile({ '81.2.69.0/24': { location: { latitude: 51.51, longitude: -0.13 } } })
  await writeFile(join(folder, 'city.mmdb'), city)
  await writeFile(join(folder, 'muster.toml'), REGIONS)
  const env = { ...TRUSTING, MUSTER_IP_DATA: folder, MUSTER_CONFIG: join(folder, 'muster.toml') }
  const platform = await startPlatform(t, { env })
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
  assert.deepEqual((await game.player.call(listLobbies, from(LONDON))).regions, regions)
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
