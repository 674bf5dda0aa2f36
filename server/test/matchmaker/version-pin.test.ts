// Requests that name the version of their page: after a deploy they get seats of that version only, or are refused.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import {
  checkMatchmakerVersion,
  createGameVersion,
  getGameVersionById,
  joinLobby,
  playerConnected,
  setMatchmakerVersionDraining,
  type VersionConfig,
} from '@musterhost/contract'
import { LONG_MS, UNKNOWN_ID, withKey } from '../http/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { CAPTCHA, settings, turnstile } from './captcha-games.ts'
import { startCaptchaServer } from './captcha-server.ts'
import { startGameEndpoint } from './game-endpoint.ts'
import { SETTINGS, verifiedMode } from './verified-games.ts'

type Matchmaker = NonNullable<VersionConfig['matchmaker']>

const REPLACED = 'MATCHMAKER_VERSION_REPLACED'
const custom = { actions: { create: { enabled: true, enable_public: true } } }
const ONE_MODE = { game_modes: { default: { max_players: 2, idle_grace_ms: LONG_MS, ...custom } } }

/** Deploys the first version of the game with other members of `matchmaker`. Returns the version. */
async function deploy(platform: Platform, game: TestGame, changes: Partial<Matchmaker> = {}): Promise<string> {
  const version_id = await createVersion(platform, game, changes)
  await platform.putVersion(game, version_id)
  return version_id
}

async function createVersion(platform: Platform, game: TestGame, changes: Partial<Matchmaker>): Promise<string> {
  const { game_id, version_id } = game
  const { version } = await platform.client.call(getGameVersionById, { params: { game_id, version_id } })
  const config = { matchmaker: { ...version.config.matchmaker!, ...changes } }
  const body = { display_name: randomUUID(), config }
  return (await platform.client.call(createGameVersion, { params: { game_id }, body })).version_id
}

const joinFor = (game: TestGame, lobby_id: string, version_id: string) =>
  game.player.call(joinLobby, { body: { lobby_id, version_id } })

async function refusesFor(platform: Platform, version_id: string, call: () => Promise<unknown>, more: object = {}) {
  const { status, metadata } = await platform.refuses(REPLACED, call)
  assert.deepEqual([status, metadata], [400, { version_id, ...more }])
}

test('requests for a version', async (t: TestContext) => {
  const [captcha_server, endpoint] = [await startCaptchaServer(t), await startGameEndpoint(t)]
  const platform = await startPlatform(t, { env: { ...settings(captcha_server), ...SETTINGS } })
  platform.playServers()

  await t.test('the deployed version changes nothing', async () => {
    const game = await platform.game({ matchmaker: ONE_MODE })
    const { version_id } = game
    const found = await game.find({ version_id })
    assert.equal((await game.find()).lobby.lobby_id, found.lobby.lobby_id)
    const created = await game.create({ version_id })
    const joined = await joinFor(game, created.lobby.lobby_id, version_id)
    assert.deepEqual(
      [found, created, joined].map(({ lobby }) => lobby.version_id),
      Array(3).fill(version_id),
    )
    assert.equal((await game.find({ version_id })).lobby.version_id, version_id, 'a new lobby of it')
  })

  await t.test(
    'after a deploy an earlier version is refused with the deployed one, and without a version all is as before',
    async () => {
      const game = await platform.game({ matchmaker: ONE_MODE })
      const { version_id: old } = game
      const seat = await game.find({ version_id: old })
      const current = await deploy(platform, game)
      for (const version_id of [old, UNKNOWN_ID, (await platform.game()).version_id]) {
        await refusesFor(platform, current, () => game.find({ version_id }))
        await refusesFor(platform, current, () => game.create({ version_id }))
      }
      const fresh = await game.find()
      assert.equal(fresh.lobby.version_id, current)
      assert.equal((await game.find({ version_id: current })).lobby.lobby_id, fresh.lobby.lobby_id)
      const { lobby_id } = seat.lobby
      await refusesFor(platform, current, () => joinFor(game, lobby_id, current), { lobby_version_id: old })
      const other = { lobby_version_id: current }
      await refusesFor(platform, current, () => joinFor(game, fresh.lobby.lobby_id, old), other)
      assert.equal((await joinFor(game, lobby_id, old)).lobby.lobby_id, lobby_id)
      await platform.refuses('MATCHMAKER_LOBBY_NOT_FOUND', () => joinFor(game, UNKNOWN_ID, old))
    },
  )

  await t.test('a repeated request keeps the seat that it got before the deploy', async () => {
    const game = await platform.game({ matchmaker: ONE_MODE })
    const { version_id } = game
    const [find_key, create_key] = [withKey(), withKey()]
    const found = await game.find({ version_id }, find_key)
    const created = await game.create({ version_id }, create_key)
    const current = await deploy(platform, game)
    assert.deepEqual(await game.find({ version_id }, find_key), found)
    assert.deepEqual(await game.create({ version_id }, create_key), created)
    await refusesFor(platform, current, () => game.find({ version_id: UNKNOWN_ID }, find_key))
  })

  await t.test(
    'where the deployed version allows it, an earlier page gets the free seats of its lobbies, and no new lobby',
    async () => {
      const game_modes = { ...ONE_MODE.game_modes, retired: { max_players: 2, idle_grace_ms: LONG_MS, taggable: true } }
      const game = await platform.game({ matchmaker: { game_modes } })
      const { version_id: old } = game
      const tags = { map: 'dune' }
      const [plain, retired] = [await game.find(), await game.find({ game_modes: ['retired'], tags })]
      const current = await deploy(platform, game, { ...ONE_MODE, fill_outdated_lobbies: true })
      assert.equal((await game.find()).lobby.version_id, current, 'without a version')
      await refusesFor(platform, current, () => game.create({ version_id: old }))
      await refusesFor(platform, current, () => game.find({ version_id: UNKNOWN_ID }))
      const find_unknown = { game_modes: ['none'], version_id: old }
      await platform.refuses('MATCHMAKER_GAME_MODE_NOT_FOUND', () => game.find(find_unknown))
      const find_retired = { game_modes: ['retired'], version_id: old }
      await refusesFor(platform, current, () => game.find({ ...find_retired, tags: { map: 'moon' } }))
      for (const [lobby, body] of [
        [plain.lobby, { version_id: old }],
        [retired.lobby, { ...find_retired, tags }],
      ] as const) {
        assert.equal((await game.find(body)).lobby.lobby_id, lobby.lobby_id)
        await refusesFor(platform, current, () => game.find(body))
      }
    },
  )

  await t.test('a lobby that checks a version before its deploy is found by no page', async () => {
    const game = await platform.game({ matchmaker: ONE_MODE })
    const { game_id, namespace_id } = game
    const current = await deploy(platform, game, { fill_outdated_lobbies: true })
    const version_id = await createVersion(platform, game, {})
    const params = { game_id, namespace_id, version_id }
    const { is_ready } = await platform.client.call(checkMatchmakerVersion, { params, body: {} })
    assert.equal(is_ready, true)
    await refusesFor(platform, current, () => game.find({ version_id }))
    await platform.putVersion(game, version_id)
    assert.equal((await game.find({ version_id })).lobby.version_id, version_id)
  })

  await t.test('a find by rules for an earlier version is refused, and keeps the seat that it had', async () => {
    const matching = { size: { min: 1, max: 1 } }
    const game = await platform.game({ matchmaker: { game_modes: { default: { idle_grace_ms: LONG_MS, matching } } } })
    const { version_id } = game
    const key = withKey()
    const seat = await game.find({ version_id }, key)
    const current = await deploy(platform, game, { fill_outdated_lobbies: true })
    await refusesFor(platform, current, () => game.find({ version_id }))
    assert.deepEqual(await game.find({ version_id }, key), seat)
    assert.equal((await game.find({ version_id: current })).lobby.version_id, current)
  })

  await t.test('an earlier version that drains is refused', async () => {
    const game = await platform.game({ matchmaker: ONE_MODE })
    const { game_id, namespace_id, version_id } = game
    await game.find()
    const current = await deploy(platform, game, { fill_outdated_lobbies: true })
    const params = { game_id, namespace_id, version_id }
    await platform.client.call(setMatchmakerVersionDraining, { params, body: { is_draining: true } })
    await refusesFor(platform, current, () => game.find({ version_id }))
  })

  await t.test('a refusal comes before the captcha and the verification', async () => {
    const game_modes = { default: verifiedMode(endpoint.url, { max_players: 2 }) }
    const matchmaker = { game_modes, captcha: CAPTCHA }
    const game = await platform.game({ matchmaker })
    const { version_id } = game
    const solved = () => turnstile(captcha_server.solve())
    await game.find({ ...solved() })
    const filling = await deploy(platform, game, { ...matchmaker, fill_outdated_lobbies: true })
    const asked_before = endpoint.asked.length
    assert.equal((await game.find({ version_id, ...solved() })).lobby.version_id, version_id)
    assert.equal(endpoint.asked.length, asked_before + 1, 'a seat in an outdated lobby is verified')
    const checks = () => [endpoint.asked.length, captcha_server.asked.length]
    const before = checks()
    await refusesFor(platform, filling, () => game.find({ version_id, ...solved() }))
    const current = await deploy(platform, game, matchmaker)
    await refusesFor(platform, current, () => game.find({ version_id, ...solved() }))
    await refusesFor(platform, current, () => game.create({ version_id, ...solved() }))
    assert.deepEqual(checks(), before)
  })

  await t.test('a page that is here before the notification of its deploy gets a seat of its version', async () => {
    const game = await platform.game({ matchmaker: ONE_MODE })
    const { namespace_id, version_id: old } = game
    const current = await createVersion(platform, game, {})
    const old_seat = await game.find({ version_id: old })
    await platform.ctx.db
      .updateTable('namespaces')
      .set({ version_id: current })
      .where('namespace_id', '=', namespace_id)
      .execute()
    assert.equal((await game.find({ version_id: current })).lobby.version_id, current)
    await refusesFor(platform, current, () => game.find({ version_id: old }))
    const server = platform.serverOf(game, old_seat.lobby.lobby_id)
    await server.call(playerConnected, { body: { player_token: old_seat.player.token } })
  })
})
