import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import {
  allocateLobby,
  type BodyOf,
  changeOwnLobby,
  createCloudToken,
  createGameNamespaceTokenDevelopment,
  createLobby,
  findLobby,
  joinLobby,
  listOwnSeats,
  playerConnected,
  setupIdentity,
  watchEvents,
} from '@musterhost/contract'
import { MODES, outcomesOf, TRUSTING, UNKNOWN_ID } from '../http/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'

const ALLOCATE_EXAMPLE = join(import.meta.dirname, '../../../examples/allocate/allocate.mjs')
const CODE = 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE'

async function backendOf(platform: Platform, { game_id }: TestGame) {
  const { token } = await platform.client.call(createCloudToken, { params: { game_id } })
  return platform.as(token)
}

/** As the README of examples/allocate runs it. */
async function exampleAllocation(platform: Platform, { game_id, namespace_id }: TestGame, addresses: string[]) {
  const { token } = await platform.client.call(createCloudToken, { params: { game_id } })
  const settings = { MUSTER_URL: platform.matchmaker_url, MUSTER_CLOUD_TOKEN: token, MUSTER_NAMESPACE: namespace_id }
  const env = { ...process.env, ...settings, MATCH_ID: 'match-1' }
  const { stdout } = await promisify(execFile)(process.execPath, [ALLOCATE_EXAMPLE, ...addresses], { env })
  return JSON.parse(stdout) as { lobby_id: string; tokens: string[] }
}

/** What a backend says of a player there. */
const on = ({ namespace_id }: TestGame, address = '192.0.2.1') => ({ namespace_id, clients: [{ address }] })
const WISH = { game_modes: ['default'] }

test("a game's backend finds, joins and creates for its players, whose addresses are what counts", async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES }, limits: { max_players_per_client: 2 } })
  const backend = await backendOf(platform, game)
  const first = await backend.call(findLobby, { body: { ...WISH, ...on(game) } })
  await backend.call(joinLobby, { body: { lobby_id: first.lobby.lobby_id, ...on(game) } })
  // Other spellings of the address are the same client.
  for (const address of ['192.0.2.1', '::ffff:192.0.2.1', '::FFFF:C000:201']) {
    const error = await platform.refuses(CODE, () =>
      backend.call(findLobby, { body: { ...WISH, ...on(game, address) } }),
    )
    assert.deepEqual(error.metadata, { limit: 'max_players_per_client', players_max: 2 })
  }
  const body = { game_mode: 'custom', namespace_id: game.namespace_id }
  const player = { address: '2001:db8::1', user_agent: 'Arena/1.0' }
  const created = await backend.call(createLobby, { body: { ...body, clients: [player] } })
  assert.equal(created.lobby.ports.game !== undefined, true)
  // A /64 is one client.
  await backend.call(findLobby, { body: { ...WISH, ...on(game, '2001:db8::2') } })
  await platform.refuses(CODE, () => backend.call(findLobby, { body: { ...WISH, ...on(game, '2001:db8::3') } }))
  // A find by the player counts for the very same address; the backend's own address counts for nobody.
  await game.find()
  await game.find()
  assert.equal(await game.seatsTaken(), 6)
})

test('of fifty finds of a backend for one player at one below the limit exactly one gets a seat', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ limits: { max_players_per_client: 3 } })
  const backend = await backendOf(platform, game)
  const seat = () => backend.call(findLobby, { body: { ...WISH, ...on(game) } })
  await Promise.all([seat(), seat()])
  assert.deepEqual(await outcomesOf(Array.from({ length: 50 }, seat)), { answered: 1, [CODE]: 49 })
})

test('what a backend must say, and what nobody else may say, is refused by name', async (t) => {
  const platform = await startPlatform(t, { env: TRUSTING })
  const game = await platform.game()
  const backend = await backendOf(platform, game)
  const { namespace_id, game_id } = game
  const clients = [{ address: '192.0.2.1' }]
  const faults = async (call: Promise<unknown>) => {
    const { code, metadata } = await failureOf(call)
    assert.equal(code, 'VALIDATION_ERROR')
    return (metadata.errors as { path: string[]; reason: string }[]).map(
      ({ path, reason }) => `${path.join('.')} ${reason}`,
    )
  }
  const asked = (body: object) => faults(backend.call(findLobby, { body: { ...WISH, ...body } }))
  assert.deepEqual(await asked({}), ['namespace_id required', 'clients required'])
  assert.deepEqual(await asked({ clients }), ['namespace_id required'])
  assert.deepEqual(await asked({ namespace_id }), ['clients required'])
  assert.deepEqual(await asked({ namespace_id, clients: [] }), ['clients too_few'])
  assert.deepEqual(await asked({ namespace_id, clients: [...clients, ...clients] }), ['clients too_many'])
  assert.deepEqual(await asked({ namespace_id, clients: [{}] }), ['clients.0.address required'])
  for (const address of [
    '192.0.2.01',
    '192.0.2.1:80',
    '192.0.2',
    '[2001:db8::1]',
    'fe80::1%eth0',
    '192.0.2.0/24',
    'a.b',
    '::1.2.3.4',
    ' 192.0.2.1',
  ]) {
    assert.deepEqual(await asked({ namespace_id, clients: [{ address }] }), ['clients.0.address invalid'], address)
  }
  const params = { game_id, namespace_id }
  const { token } = await platform.client.call(createGameNamespaceTokenDevelopment, {
    params,
    body: { hostname: 'localhost' },
  })
  for (const client of [game.player, platform.as(token)]) {
    assert.deepEqual(await faults(client.call(findLobby, { body: { ...WISH, clients } })), ['clients not_allowed'])
    const body = { lobby_id: UNKNOWN_ID, clients, namespace_id }
    assert.deepEqual(await faults(client.call(joinLobby, { body })), [
      'namespace_id not_allowed',
      'clients not_allowed',
    ])
    assert.deepEqual(await faults(client.call(createLobby, { body: { game_mode: 'default', namespace_id } })), [
      'namespace_id not_allowed',
    ])
  }
})

test('an allocation gives each of its players a seat in one new lobby, or does nothing', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const limits = { max_players_per_client: 1 }
  const game = await platform.game({ matchmaker: { game_modes: MODES }, limits })
  const backend = await backendOf(platform, game)
  const { identity, identity_token } = await game.player.call(setupIdentity, { body: {} })
  const { identity_id } = identity
  const players = [{ address: '192.0.2.1' }, { identity_id }, {}, { address: '2001:db8::1', identity_id: UNKNOWN_ID }]
  const { namespace_id } = game
  type AllocateBody = Partial<BodyOf<typeof allocateLobby>>
  const allocate = (wish: AllocateBody = {}, how = {}) =>
    backend.call(allocateLobby, { body: { namespace_id, game_mode: 'sized', players, ...wish }, ...how })
  const key = { headers: { 'idempotency-key': randomUUID() } }
  const lobbyCount = async () => (await platform.ctx.db.selectFrom('lobbies').select('lobby_id').execute()).length

  const first = await allocate({ with_code: true, lobby_config: { round: 1 }, keep_ms: 3_600_000 }, key)
  await platform.ctx.db
    .selectFrom('lobbies')
    .select(['lobby_config', 'publicity'])
    .where('lobby_id', '=', first.lobby.lobby_id)
    .executeTakeFirstOrThrow()
    .then((row) => assert.deepEqual(row, { lobby_config: '{"round":1}', publicity: 'private' }))
  assert.deepEqual(
    first.players.map((player) => player.identity_id),
    [undefined, identity_id, undefined, UNKNOWN_ID],
  )
  assert.match(first.lobby.code!, /^[A-Z]{6}$/)
  const server = platform.serverOf(game, first.lobby.lobby_id)
  for (const { token: player_token } of first.players) await server.call(playerConnected, { body: { player_token } })
  const { keep_until_ts } = await server.call(changeOwnLobby, { body: {} })
  assert.ok(Date.parse(keep_until_ts!) > Date.now() + 3_000_000)
  const page = platform.as(identity_token)
  const { seats } = await page.call(listOwnSeats, { body: {} })
  assert.deepEqual(
    seats.map(({ player }) => player.token),
    [first.players[1]?.token],
  )
  const { events } = await page.call(watchEvents, { query: { watch_index: '0' } })
  assert.equal(events[0]?.kind.matchmaker_lobby_join?.player.token, first.players[1]?.token)

  assert.deepEqual(await allocate({ with_code: true, lobby_config: { round: 1 } }, key), first, 'the same key')
  await platform.refuses(CODE, () => allocate())
  assert.equal(await lobbyCount(), 1)
  for (const [wish, path] of [
    [{ players: Array.from({ length: 9 }, () => ({})) }, 'players'],
    [{ players: [{}, {}, {}], max_players: 2 }, 'players'],
    [{ players: [{}, { address: 'example.com' }] }, 'players.1.address'],
    [{ players: [{}, { role: 'spectator' }] }, 'players.1.role'],
  ] as const) {
    const { code, metadata } = await failureOf(allocate(wish as unknown as AllocateBody))
    assert.equal(code, 'VALIDATION_ERROR')
    assert.equal((metadata.errors as { path: string[] }[])[0]?.path.join('.'), path)
  }
  assert.equal(await lobbyCount(), 1)
  const open = await allocate({ players: [{}], publicity: 'public' })
  const by_example = await exampleAllocation(platform, game, ['192.0.2.7', '192.0.2.8'])
  assert.equal(by_example.tokens.length, 2)
  const found = await backend.call(findLobby, { body: { game_modes: ['sized'], ...on(game, '192.0.2.9') } })
  assert.equal(found.lobby.lobby_id, open.lobby.lobby_id, 'find fills a public one, and no private one')
})

test("another game's namespace is one that does not exist", async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const [game, other] = [await platform.game(), await platform.game()]
  const seat = await other.find()
  const backend = await backendOf(platform, game)
  for (const wish of [on(other), { ...on(other), namespace_id: UNKNOWN_ID }]) {
    const code = 'NAMESPACE_NOT_FOUND'
    await platform.refuses(code, () => backend.call(findLobby, { body: { ...WISH, ...wish } }))
    await platform.refuses(code, () => backend.call(createLobby, { body: { game_mode: 'default', ...wish } }))
    const body = { lobby_id: seat.lobby.lobby_id, ...wish }
    const error = await platform.refuses(code, () => backend.call(joinLobby, { body }))
    assert.equal(error.status, 404)
  }
  // Nor is its lobby one of ours.
  const body = { lobby_id: seat.lobby.lobby_id, ...on(game) }
  await platform.refuses('MATCHMAKER_LOBBY_NOT_FOUND', () => backend.call(joinLobby, { body }))
})

test("the Idempotency-Key of a backend is good for one of its players, and is not the player's own", async (t) => {
  const platform = await startPlatform(t, { env: TRUSTING })
  platform.playServers()
  const game = await platform.game()
  const backend = await backendOf(platform, game)
  const key = randomUUID()
  const headers = { 'idempotency-key': key }
  const seat = (address: string) => backend.call(findLobby, { body: { ...WISH, ...on(game, address) }, headers })
  const [first, again] = [await seat('192.0.2.1'), await seat('192.0.2.1')]
  assert.deepEqual(again, first)
  assert.notEqual((await seat('192.0.2.2')).player.token, first.player.token)
  const own = await game.find({}, { headers: { ...headers, 'x-forwarded-for': '192.0.2.1' } })
  assert.notEqual(own.player.token, first.player.token)
})

test("a backend's calls are limited like its other calls, not like those of one player", async (t) => {
  const env = { ...TRUSTING, MUSTER_RATE_LIMIT_SEATS: '2', MUSTER_RATE_LIMIT_CLOUD: '1000' }
  const platform = await startPlatform(t, { env })
  platform.playServers()
  const game = await platform.game()
  const backend = await backendOf(platform, game)
  for (let host = 1; host <= 5; host++) {
    await backend.call(findLobby, { body: { ...WISH, ...on(game, `192.0.2.${host}`) } })
  }
  const finds = [game.find(), game.find(), game.find()]
  assert.deepEqual(await outcomesOf(finds), { answered: 2, API_RATE_LIMIT: 1 })
})
