import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type BodyOf, createLobby, type ErrorCode, listLobbies } from '@musterhost/contract'
import { MODES, outcomesOf, tooManyTags, unshown, withKey } from '../http/steps.ts'
import { startPlatform } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'

const custom = { game_mode: 'custom' }

test('a game mode that only enables create gives private lobbies to those who ask for one', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({
    matchmaker: { game_modes: { default: { actions: { create: { enabled: true } } } } },
  })
  const in_region = { region: 'local' }
  const { lobby } = await game.create(in_region)
  const row = await platform.ctx.db
    .selectFrom('lobbies')
    .where('lobby_id', '=', lobby.lobby_id)
    .select('publicity')
    .executeTakeFirstOrThrow()
  assert.equal(row.publicity, 'private')
  // As clients of typed languages write what they leave out.
  const nulls = { max_players: null, tags: null } as object
  await game.create({ ...in_region, publicity: 'private', ...nulls })
  const as_public = () => game.create({ ...in_region, publicity: 'public' })
  await platform.refuses('MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID', as_public)
})

test('every refusal of create has its code, and changes nothing', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  await platform.closeRegion(game)
  const cases: [ErrorCode, Partial<BodyOf<typeof createLobby>>][] = [
    ['MATCHMAKER_GAME_MODE_NOT_FOUND', { game_mode: 'nothing' }],
    ['MATCHMAKER_CUSTOM_LOBBIES_DISABLED', { game_mode: 'default' }],
    ['MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID', { game_mode: 'secret', publicity: 'public' }],
    ['MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID', { game_mode: 'nowhere', publicity: 'private' }],
    ['MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID', { ...custom, lobby_config: 'x'.repeat(16 * 1024) }],
    ['MATCHMAKER_REGION_NOT_FOUND', { ...custom, region: 'mars' }],
    ['MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE', { game_mode: 'nowhere', region: 'local' }],
    ['MATCHMAKER_TAGS_DISABLED', { game_mode: 'secret', tags: { a: 'b' } }],
    ['MATCHMAKER_TOO_MANY_TAGS', { ...custom, tags: tooManyTags() }],
    ['MATCHMAKER_TAG_NAME_TOO_LONG', { ...custom, tags: { ['x'.repeat(129)]: 'x' } }],
    ['MATCHMAKER_TAG_TOO_LONG', { ...custom, tags: { a: 'x'.repeat(513) } }],
    ['MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED', { game_mode: 'secret', max_players: 4 }],
    ['MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID', { ...custom, max_players: 9 }],
  ]
  for (const [code, body] of cases) {
    const error = await platform.refuses(code, () => game.create(body))
    assert.equal(error.status, 400)
  }
  await platform.setLimits(game, { max_players_per_client: 0 })
  await platform.refuses('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', () => game.create(custom))
  await platform.setLimits(game, { max_players_per_client: 8, lobby_count_max: 0 })
  await platform.refuses('MATCHMAKER_TOO_MANY_LOBBIES', () => game.create(custom))
  assert.deepEqual(await game.listedLobbies(), [])

  const shown = cases.map(([code]) => code as string)
  shown.push('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', 'MATCHMAKER_TOO_MANY_LOBBIES')
  assert.deepEqual(unshown(createLobby, shown).sort(), ['MATCHMAKER_LOBBY_NOT_STARTED', 'MATCHMAKER_LOBBY_STOPPED'])
})

test('a created lobby is as it was asked for, and handed on to its server so', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const lobby_config = { map: 'moon', rounds: [1, 2.5], deep: { empty: null, text: '💡' } }
  const tags = { a: 'b' }
  const seat = await game.create({ ...custom, region: 'local', max_players: 3, tags, lobby_config })
  const row = await platform.ctx.db
    .selectFrom('lobbies')
    .where('lobby_id', '=', seat.lobby.lobby_id)
    .selectAll()
    .executeTakeFirstOrThrow()
  assert.deepEqual(
    [row.game_mode, row.region, row.publicity, row.is_custom, row.max_players_normal, row.max_players_direct],
    ['custom', 'local', 'public', true, 3, 3],
  )
  assert.deepEqual(row.tags, tags)
  assert.deepEqual(JSON.parse(row.lobby_config ?? ''), lobby_config)
  const largest = await game.create({ ...custom, lobby_config: 'x'.repeat(16 * 1024 - 2) })
  assert.notEqual(largest.lobby.lobby_id, seat.lobby.lobby_id)
})

test('a public custom lobby is found and listed, a private one is neither', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const hidden = await game.create({ ...custom, publicity: 'private' })
  const only_private = await game.create({ game_mode: 'secret' })
  assert.deepEqual(await game.listedLobbies(), [])
  const found = await game.find({ game_modes: ['custom', 'secret'] })
  assert.ok(![hidden, only_private].some((seat) => seat.lobby.lobby_id === found.lobby.lobby_id))
  const open = await game.create({ ...custom, max_players: 2 })
  assert.equal((await game.find({ game_modes: ['custom'] })).lobby.lobby_id, open.lobby.lobby_id)
  const { lobbies } = await game.player.call(listLobbies, {})
  assert.deepEqual(
    lobbies.map((lobby) => lobby.lobby_id),
    [found.lobby.lobby_id, open.lobby.lobby_id],
  )
})

test('lobby_count_max is exact under 50 concurrent creates, and a lobby that ends makes room for one', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const limits = { lobby_count_max: 7, max_players_per_client: 1_000 }
  const game = await platform.game({ matchmaker: { game_modes: MODES }, limits })
  const burst = (count: number) => outcomesOf(Array.from({ length: count }, () => game.create(custom)))
  assert.deepEqual(await burst(50), { answered: 7, MATCHMAKER_TOO_MANY_LOBBIES: 43 })
  const [first] = await game.listedLobbies()
  await platform.endRun(first!.lobby_id)
  await until('the lobby to be gone', async () => (await game.listedLobbies()).length === 6)
  assert.deepEqual(await burst(2), { answered: 1, MATCHMAKER_TOO_MANY_LOBBIES: 1 })
})

test('the creator of a lobby that dies or takes too long gets that reason, and keeps no seat', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const dead = failureOf(game.create(custom))
  const [dying] = await platform.startingLobbies(game)
  await platform.endRun(dying!)
  assert.equal((await dead).code, 'MATCHMAKER_LOBBY_STOPPED')
  await platform.stopReasonOf(dying!)
  assert.deepEqual(await game.listedLobbies(), [])

  const slow = failureOf(game.create(custom))
  const [lobby_id] = await platform.startingLobbies(game)
  platform.advance(50_000)
  const error = await slow
  assert.equal(error.code, 'MATCHMAKER_LOBBY_NOT_STARTED')
  assert.equal(error.retry_after_s, 1)
  assert.deepEqual(await game.listedLobbies(), [{ lobby_id, total_player_count: 0 }])
})

test('a repeated create with the same key makes no second lobby', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const key = withKey()
  const calls = Array.from({ length: 20 }, () => game.create(custom, key))
  const lobbies = await platform.startingLobbies(game)
  await platform.makeReady(game, lobbies[0]!)
  const [first, ...others] = await Promise.all(calls)
  for (const other of others) assert.deepEqual(other, first)
  assert.deepEqual(await game.create(custom, key), first)
  assert.equal((await game.listedLobbies()).length, 1)
  assert.equal(await game.seatsTaken(), 1)
})
