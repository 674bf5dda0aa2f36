import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { BodyOf, updateGameNamespaceMatchmakerConfig } from '@musterhost/contract'
import { mmdbFile } from '../addresses/mmdb-file.ts'
import { from, outcomesOf, TRUSTING } from '../http/steps.ts'
import { startPlatform } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'
import { SECRET, SITE_KEY, startCaptchaServer } from './captcha-server.ts'

type Limits = BodyOf<typeof updateGameNamespaceMatchmakerConfig>

const CODE = 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE'
const CITIES = mmdbFile({
  '81.2.69.0/24': { location: { latitude: 51.51, longitude: -0.13 } },
  '203.0.113.0/24': { location: { latitude: -33.9, longitude: 151.1 } },
  '2a02:da00::/32': { location: { latitude: 35.7, longitude: 139.7 } },
})
const FILES = {
  'hosting.txt': '198.51.100.1\n198.51.100.9\n',
  'proxy.txt': '198.51.100.2\n',
  'tor.txt': '198.51.100.3\n198.51.100.9\n2001:db8:7::1\n',
  'vpn.txt': '198.51.100.4\n198.51.100.9\n',
  'city.mmdb': CITIES,
}
const REGIONS = `
[[regions]]
name = "atl"
display_name = "Atlanta"
latitude = 33.75
longitude = -84.39
[[regions]]
name = "fra"
display_name = "Frankfurt"
latitude = 50.11
longitude = 8.68
[[regions]]
name = "syd"
display_name = "Sydney"
latitude = -33.87
longitude = 151.21
`
/** Each class has a limit of its own; with `regions`, `default` runs everywhere and `west` in Atlanta and Frankfurt only. */
async function start(t: TestContext, limits: Limits, env: Record<string, string> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'muster-ip-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  for (const [name, content] of Object.entries(FILES)) await writeFile(join(folder, name), content)
  const regions = join(folder, 'muster.toml')
  await writeFile(regions, REGIONS)
  const platform = await startPlatform(t, {
    env: { ...TRUSTING, MUSTER_IP_DATA: folder, MUSTER_CONFIG: regions, ...env },
  })
  platform.playServers()
  const actions = { create: { enabled: true, enable_public: true } }
  const game_modes = { default: { actions, max_players: 200 }, west: { regions: { atl: {}, fra: {} }, actions } }
  return { platform, folder, game: await platform.game({ matchmaker: { game_modes }, limits }) }
}

const LIMITS = {
  max_players_per_client: 5,
  max_players_per_client_hosting: 1,
  max_players_per_client_proxy: 2,
  max_players_per_client_tor: 3,
  max_players_per_client_vpn: 9,
}

test('the strictest limit of all classes that an address is in holds, for find, join and create', async (t) => {
  const { platform, game } = await start(t, LIMITS)
  const { lobby } = await game.find({}, from('203.0.113.77'))
  const places = [
    ['192.0.2.1', 5],
    ['198.51.100.1', 1],
    ['198.51.100.2', 2],
    ['198.51.100.3', 3],
    // A class is never a way to more seats.
    ['198.51.100.4', 5],
    ['198.51.100.9', 1],
  ] as const
  for (const [address, seats] of places) {
    for (let seat = 0; seat < seats; seat++) await game.find({}, from(address))
    const error = await platform.refuses(CODE, () => game.find({}, from(address)))
    // A player must not learn what is known of an address, or they would try others until one is not known.
    assert.deepEqual(error.metadata, {})
    await platform.refuses(CODE, () => game.join(lobby.lobby_id, from(address)))
    await platform.refuses(CODE, () => game.create({}, from(address)))
  }
})

test('0 lets nobody of a class in, and nobody at all when it is the limit of everybody', async (t) => {
  const { platform, game } = await start(t, { ...LIMITS, max_players_per_client_tor: 0 })
  await platform.refuses(CODE, () => game.find({}, from('198.51.100.3')))
  await platform.refuses(CODE, () => game.find({}, from('198.51.100.9')))
  await game.find({}, from('198.51.100.1'))
  await game.find({}, from('192.0.2.1'))
  await platform.setLimits(game, { max_players_per_client: 0 })
  await platform.refuses(CODE, () => game.find({}, from('192.0.2.1')))
})

test('an IPv6 network is one client, and in each class that one of its addresses is in', async (t) => {
  const { platform, game } = await start(t, LIMITS)
  for (let host = 1; host <= 3; host++) await game.find({}, from(`2001:db8:7::${host}00`))
  await platform.refuses(CODE, () => game.find({}, from('2001:db8:7::ffff')))
  await game.find({}, from('2001:db8:7:1::1'))
  const many = Array.from({ length: 200 }, (_, host) => game.find({}, from(`2001:db8:8::${(host * 31).toString(16)}`)))
  assert.deepEqual(await outcomesOf(many), { answered: 5, [CODE]: 195 })
})

test('of a hundred finds at one below the limit exactly one gets a seat', async (t) => {
  const { game } = await start(t, LIMITS)
  for (let seat = 0; seat < 2; seat++) await game.find({}, from('198.51.100.3'))
  const finds = Array.from({ length: 100 }, () => game.find({}, from('198.51.100.3')))
  assert.deepEqual(await outcomesOf(finds), { answered: 1, [CODE]: 99 })
})

test('class data that change count for the next seat, and take none away', async (t) => {
  const { platform, game, folder } = await start(t, {
    ...LIMITS,
    max_players_per_client: 1_000,
    max_players_per_client_tor: 0,
  })
  const [player, probe] = ['192.0.2.1', '192.0.2.2']
  for (let seat = 0; seat < 3; seat++) await game.find({}, from(player))
  await writeFile(join(folder, 'proxy.txt'), `${player}\n`)
  await writeFile(join(folder, 'tor.txt'), `${probe}\n`)
  // In the order of their names: when the second is in force, the first is.
  await until('the new data', () => isRefused(game.find({}, from(probe))))
  const taken = await game.seatsTaken()
  await platform.refuses(CODE, () => game.find({}, from(player)))
  assert.equal(await game.seatsTaken(), taken)
  // Nor is anybody in a class who is in no list any more.
  await game.find({}, from('198.51.100.3'))
})

test('what becomes known of an address while its captcha is checked counts', async (t) => {
  const server = await startCaptchaServer(t)
  const env = { MUSTER_TURNSTILE_URL: server.url }
  const limits = { max_players_per_client: 1_000, max_players_per_client_tor: 0 }
  const { platform, game, folder } = await start(t, limits, env)
  const turnstile = { site_key: SITE_KEY, secret_key: SECRET }
  const captcha = { requests_before_reverify: 10, verification_ttl: 240_000, turnstile }
  const guarded = await platform.game({ matchmaker: { game_modes: { default: {} }, captcha }, limits })
  let pass = () => {}
  const asked = new Promise<void>((resolve) => {
    server.misbehave((res) => {
      pass = () =>
        void res.setHeader('content-type', 'application/json').end('{"success": true, "hostname": "localhost"}')
      resolve()
    })
  })
  const client_response = server.solve()
  const seat = failureOf(guarded.find({ captcha: { turnstile: { client_response } } }, from('192.0.2.3')))
  await asked
  await writeFile(join(folder, 'tor.txt'), '192.0.2.3\n')
  await until('the new data', () => isRefused(game.find({}, from('192.0.2.3'))))
  pass()
  assert.equal((await seat).code, CODE)
})

/** Whether the client has too many players. */
function isRefused(call: Promise<unknown>): Promise<boolean> {
  return call.then(
    () => false,
    (error: { code: string }) => error.code === CODE,
  )
}

test('a seat is in the nearest region that the game mode runs in', async (t) => {
  const { platform, game } = await start(t, LIMITS)
  const regionFor = async (address: string, game_mode = 'default') =>
    (await game.find({ game_modes: [game_mode] }, from(address))).lobby.region.region_id
  assert.equal(await regionFor('81.2.69.142'), 'fra')
  assert.equal(await regionFor('203.0.113.7'), 'syd')
  assert.equal(await regionFor('203.0.113.7', 'west'), 'atl')
  assert.equal(await regionFor('2a02:da00::1'), 'syd')
  // The place of that address is unknown.
  assert.equal(await regionFor('1.1.1.1'), 'atl')
  const created = await game.create({}, from('81.2.69.142'))
  assert.equal(created.lobby.region.region_id, 'fra')
  assert.notEqual(platform.playerIdOf(created), '')
  // What the game says decides.
  const seat = await game.find({ regions: ['syd'] }, from('81.2.69.9'))
  assert.equal(seat.lobby.region.region_id, 'syd')
})
