import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join as joinPath } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  type BodyOf,
  type ErrorCode,
  findLobby,
  listLobbies,
  playerConnected,
  playerDisconnected,
} from '@musterhost/contract'
import { from, LONG_MS, MODES, outcomesOf, TRUSTING, tooManyTags, UNKNOWN_ID, unshown, withKey } from '../http/steps.ts'
import { createDatabase } from '../support/database.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import type { Seat } from '../support/platform-verbs.ts'
import { failureOf } from '../support/refusal.ts'

const MANY = { max_players_per_client: 1_000_000, lobby_count_max: 1_000 }

test('every refusal of find has its code, and changes nothing', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  await platform.closeRegion(game)
  const cases: [ErrorCode, Partial<BodyOf<typeof findLobby>>][] = [
    ['MATCHMAKER_NO_GAME_MODE_PROVIDED', { game_modes: [] }],
    ['MATCHMAKER_GAME_MODE_NOT_FOUND', { game_modes: ['default', 'nothing'] }],
    ['MATCHMAKER_GAME_MODE_NOT_FOUND', { game_modes: ['constructor'] }],
    ['MATCHMAKER_REGION_NOT_FOUND', { regions: ['local', 'mars'] }],
    ['MATCHMAKER_TAGS_DISABLED', { tags: { a: 'b' } }],
    ['MATCHMAKER_TAGS_DISABLED', { game_modes: ['tagged', 'default'], tags: { a: 'b' } }],
    ['MATCHMAKER_TOO_MANY_TAGS', { game_modes: ['tagged'], tags: tooManyTags() }],
    ['MATCHMAKER_TAG_NAME_TOO_LONG', { game_modes: ['tagged'], tags: { ['ä'.repeat(65)]: 'x' } }],
    ['MATCHMAKER_TAG_TOO_LONG', { game_modes: ['tagged'], tags: { a: 'ä'.repeat(257) } }],
    ['MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED', { max_players: 4 }],
    ['MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID', { game_modes: ['sized'], max_players: 9 }],
    ['MATCHMAKER_FIND_DISABLED', { game_modes: ['unfindable'] }],
    ['MATCHMAKER_SPECTATORS_DISABLED', { role: 'spectator' }],
    ['MATCHMAKER_NO_AVAILABLE_LOBBIES', { prevent_auto_create_lobby: true }],
    ['MATCHMAKER_AUTO_CREATE_FAILED', { game_modes: ['nowhere'] }],
  ]
  for (const [code, body] of cases) {
    const error = await platform.refuses(code, () => game.find(body))
    assert.equal(error.status, 400)
  }
  await platform.setLimits(game, { max_players_per_client: 0 })
  await platform.refuses('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', () => game.find())
  await platform.setLimits(game, { max_players_per_client: 8, lobby_count_max: 0 })
  await platform.refuses('MATCHMAKER_TOO_MANY_LOBBIES', () => game.find())
  assert.deepEqual(await game.listedLobbies(), [])

  const shown = cases.map(([code]) => code as string)
  shown.push('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', 'MATCHMAKER_TOO_MANY_LOBBIES')
  // Shown below: they take a lobby that does not start.
  const later = ['MATCHMAKER_LOBBY_STOPPED', 'MATCHMAKER_LOBBY_NOT_STARTED']
  // matching.test.ts shows the last one: it needs rules.
  assert.deepEqual(unshown(findLobby, shown), [...later, 'MATCHMAKER_WAITING'])
})

test('the same key gets the same answer word for word, also from a matchmaker that was restarted', async (t) => {
  const options = {
    database_url: await createDatabase(t),
    data_dir: await folder(t),
    env: { MUSTER_ADVERTISED_HTTP_PORT: '80' },
  }
  const platform = await startPlatform(t, options)
  platform.playServers()
  const game = await platform.game()
  const { headers } = withKey()
  const first = await answerTo(platform, game, headers)
  assert.equal(await answerTo(platform, game, headers), first)
  await platform.close()

  const restarted = await startPlatform(t, options)
  assert.equal(await answerTo(restarted, game, headers), first)
  const { player, lobby } = JSON.parse(first) as Seat
  const server = restarted.serverOf(game, lobby.lobby_id)
  await server.call(playerConnected, { body: { player_token: player.token } })
  assert.equal(await answerTo(restarted, game, headers), first)
})

test('a key is good for its client and its action alone, and for ten minutes', async (t) => {
  const platform = await startPlatform(t, { env: TRUSTING })
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const headers = { ...withKey().headers, ...from('203.0.113.1').headers }
  const mine = await game.find({}, { headers })
  const foreign = await game.find({}, { headers: { ...headers, ...from('203.0.113.2').headers } })
  const joined = await game.join(mine.lobby.lobby_id, { headers })
  assert.equal(new Set([mine, foreign, joined].map((seat) => seat.player.token)).size, 3)
  platform.advance(10 * 60_000 - 5_000)
  assert.deepEqual(await game.find({}, { headers }), mine)
  platform.advance(5_001)
  const later = await game.find({}, { headers })
  assert.notEqual(later.player.token, mine.player.token)
})

test('a key that is not one is refused, and takes no seat', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  for (const key of ['', 'two words', 'x'.repeat(129), 'ümlaut']) {
    const error = await platform.refuses('VALIDATION_ERROR', () =>
      game.find({}, { headers: { 'idempotency-key': Buffer.from(key).toString('latin1') } }),
    )
    assert.deepEqual((error.metadata.errors as { path: string[] }[])[0]?.path, ['headers', 'idempotency_key'])
  }
})

test('the limit of players per client is exact under concurrent finds, and counts each client alone', async (t) => {
  const platform = await startPlatform(t, { env: TRUSTING })
  platform.playServers()
  const game = await platform.game({ limits: { max_players_per_client: 5 } })
  const burst = (address: string) => outcomesOf(Array.from({ length: 50 }, () => game.find({}, from(address))))
  const expected = { answered: 5, MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE: 45 }
  assert.deepEqual(await Promise.all([burst('203.0.113.1'), burst('203.0.113.2')]), [expected, expected])
  assert.equal(await game.seatsTaken(), 10)
})

test('limits that are lowered remove nobody, and are in force from the next call on', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const seats = [await game.find(), await game.find(), await game.find()]
  const { lobby_id } = seats[0]!.lobby
  const server = platform.serverOf(game, lobby_id)
  await platform.setLimits(game, { max_players_per_client: 2, lobby_count_max: 0 })
  assert.deepEqual(await game.listedLobbies(), [{ lobby_id, total_player_count: 3 }])
  await server.call(playerConnected, { body: { player_token: seats[0]!.player.token } })
  await platform.refuses('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', () => game.find())
  for (const seat of seats.slice(1)) {
    await server.call(playerDisconnected, { body: { player_token: seat.player.token } })
  }
  // One place below the limit, in the lobby that is there: a new one may not be made.
  assert.equal((await game.find()).lobby.lobby_id, lobby_id)
  await platform.refuses('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', () => game.find())
  await platform.setLimits(game, { max_players_per_client: 0 })
  await platform.refuses('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', () => game.find())
  await platform.setLimits(game, { max_players_per_client: 4_294_967_295 })
  assert.equal((await game.find()).lobby.lobby_id, lobby_id)
  assert.equal(await game.seatsTaken(), 3)
})

test('a find by tags gets a lobby that has all of them, and a lobby that it starts has them', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES }, limits: MANY })
  const lobbyOf = async (tags: Record<string, string>) =>
    (await game.find({ game_modes: ['tagged'], tags })).lobby.lobby_id
  const both = await lobbyOf({ map: 'moon', mood: 'calm' })
  assert.equal(await lobbyOf({ map: 'moon' }), both)
  assert.equal(await lobbyOf({ mood: 'calm', map: 'moon' }), both)
  assert.equal(await lobbyOf({}), both)
  const other = await lobbyOf({ map: 'moon', mood: 'wild' })
  assert.notEqual(other, both)
  assert.equal(await lobbyOf({ mood: 'wild' }), other)
  // A name that objects have by nature is a tag like any other.
  const odd = await lobbyOf({ constructor: 'x' })
  assert.ok(odd !== both && odd !== other)
  assert.equal(await lobbyOf({ constructor: 'x' }), odd)
  for (const tags of [{ 'a\nb': 5 }, { 'a\u2028b': {} }, { a: 5 }, { a: null }]) {
    const body = { game_modes: ['tagged'], tags: tags as unknown as Record<string, string> }
    await platform.refuses('VALIDATION_ERROR', () => game.find(body))
  }
  const longest = { ['ä'.repeat(64)]: 'ä'.repeat(256) }
  assert.equal(await lobbyOf(longest), await lobbyOf(longest))
})

test('max_players of a find is the limit of the lobby it starts', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const lobbyOf = async () => (await game.find({ game_modes: ['sized'], max_players: 2 })).lobby.lobby_id
  const lobbies = [await lobbyOf(), await lobbyOf(), await lobbyOf()]
  assert.equal(lobbies[1], lobbies[0])
  assert.notEqual(lobbies[2], lobbies[0])
  const { lobbies: infos } = await game.player.call(listLobbies, {})
  assert.deepEqual(
    infos.map((info) => [info.max_players_normal, info.max_players_direct, info.total_player_count]),
    [
      [2, 2, 2],
      [2, 2, 1],
    ],
  )
  await platform.refuses('MATCHMAKER_LOBBY_FULL', () => game.join(lobbies[0]!))
})

test('max_players is a whole number from 1 to what the game mode has, and else a refusal that starts nothing', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES }, limits: MANY })
  const ask = (max_players: unknown) => game.find({ game_modes: ['sized'], max_players: max_players as number })
  const open = (max_players: unknown) => game.create({ game_mode: 'custom', max_players: max_players as number })
  const codes = ['VALIDATION_ERROR', 'MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID']
  for (const value of [0, -1, 9, 1.5, 2 ** 32 - 1, 2 ** 32, 2 ** 53, '5', [5], true]) {
    const before = await platform.journalEnds()
    for (const call of [ask, open]) {
      const { code, status } = await failureOf(call(value))
      assert.ok(codes.includes(code) && status === 400, `${String(value)}: ${code}`)
    }
    assert.equal(await platform.journalEnds(), before)
  }
  const [one, eight] = [await ask(1), await ask(8)]
  assert.notEqual(one.lobby.lobby_id, eight.lobby.lobby_id)
  assert.equal((await failureOf(game.join(one.lobby.lobby_id))).code, 'MATCHMAKER_LOBBY_FULL')
})

test('of several game modes and regions the fullest lobby is found, and the first is started', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  await platform.closeRegion(game)
  const tagged = await game.find({ game_modes: ['tagged', 'default'], regions: ['local'] })
  const [info] = (await game.player.call(listLobbies, {})).lobbies
  assert.deepEqual(
    [info?.game_mode_name_id, info?.region_id, info?.lobby_id],
    ['tagged', 'local', tagged.lobby.lobby_id],
  )
  const found = await game.find({ game_modes: ['nowhere', 'default', 'tagged', 'tagged'] })
  assert.equal(found.lobby.lobby_id, tagged.lobby.lobby_id)
  assert.equal(found.lobby.version_id, game.version_id)
  assert.deepEqual(found.lobby.region, { region_id: 'local', display_name: 'Local' })
})

test('after a deploy lobbies of the version before are joined, but not found or listed', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({
    matchmaker: { game_modes: { default: { idle_grace_ms: LONG_MS }, retired: { idle_grace_ms: LONG_MS } } },
  })
  const [old, retired] = [await game.find(), await game.find({ game_modes: ['retired'] })]
  await platform.deploy(game, { default: { idle_grace_ms: LONG_MS } })
  await platform.refuses('MATCHMAKER_GAME_MODE_NOT_FOUND', () => game.find({ game_modes: ['retired'] }))
  const fresh = await game.find()
  assert.notEqual(fresh.lobby.lobby_id, old.lobby.lobby_id)
  assert.deepEqual(await game.listedLobbies(), [{ lobby_id: fresh.lobby.lobby_id, total_player_count: 1 }])
  for (const before of [old, retired]) {
    const seat = await game.join(before.lobby.lobby_id)
    assert.equal(seat.lobby.lobby_id, before.lobby.lobby_id)
    assert.deepEqual(Object.keys(seat.ports), ['game'])
  }
})

test('a reservation that nobody uses is free again after its time, which counts from ready', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game({
    matchmaker: { game_modes: { default: { player_deadline_ms: 60_000, idle_grace_ms: LONG_MS } } },
  })
  const answer = game.find()
  const [lobby_id] = await platform.startingLobbies(game)
  platform.advance(40_000)
  await platform.makeReady(game, lobby_id!)
  const seat = await answer
  platform.advance(50_000)
  assert.deepEqual(await game.listedLobbies(), [{ lobby_id, total_player_count: 1 }])
  platform.advance(10_000)
  assert.equal(await platform.removeReasonOf(platform.playerIdOf(seat)), 'expired')
  assert.deepEqual(await game.listedLobbies(), [{ lobby_id, total_player_count: 0 }])
  const server = platform.serverOf(game, lobby_id!)
  await platform.refuses('MATCHMAKER_PLAYER_REGISTRATION_EXPIRED', () =>
    server.call(playerConnected, { body: { player_token: seat.player.token } }),
  )
})

test('a lobby without players is stopped after its grace', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const seat = await game.find()
  const { lobby_id } = seat.lobby
  const body = { player_token: seat.player.token }
  const server = platform.serverOf(game, lobby_id)
  await server.call(playerConnected, { body })
  platform.advance(LONG_MS)
  await server.call(playerDisconnected, { body })
  platform.advance(14_000)
  assert.deepEqual(await game.listedLobbies(), [{ lobby_id, total_player_count: 0 }])
  platform.advance(1_000)
  assert.equal(await platform.stopReasonOf(lobby_id), 'idle')
  assert.deepEqual(await game.listedLobbies(), [])
  assert.notEqual((await game.find()).lobby.lobby_id, lobby_id)
})

test('ids that are nobody’s are not found', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  await platform.refuses('MATCHMAKER_LOBBY_NOT_FOUND', () => game.join(UNKNOWN_ID))
})

async function answerTo(platform: Platform, game: TestGame, headers: Record<string, string>): Promise<string> {
  const response = await fetch(`${platform.matchmaker_url}${findLobby.path}`, {
    method: 'POST',
    headers: { ...headers, authorization: `Bearer ${game.public_token}`, 'content-type': 'application/json' },
    body: '{"game_modes":["default"]}',
  })
  const text = await response.text()
  assert.equal(response.status, 200, text)
  return text
}

async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(joinPath(tmpdir(), 'muster-test-'))
  t.after(() => rm(path, { recursive: true, force: true }))
  return path
}
