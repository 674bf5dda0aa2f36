import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type ApiError,
  createCloudToken,
  createLobby,
  findLobby,
  getGameById,
  joinLobby,
  listLobbies,
  playerConnected,
  setLobbyClosed,
  setLobbyReady,
  setLobbyState,
} from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { type Ask, ask, bearer, JSON_TYPE, requireRefusal } from './ask.ts'
import { from, LONG_MS, MODES, outcomesOf, TRUSTING, UNKNOWN_ID } from './steps.ts'

const SEATS = 5
const MATCHMAKER = 7
const CLOUD = 60
const LIMITS = {
  MUSTER_RATE_LIMIT_SEATS: String(SEATS),
  MUSTER_RATE_LIMIT_MATCHMAKER: String(MATCHMAKER),
  MUSTER_RATE_LIMIT_CLOUD: String(CLOUD),
}

test('find, join and create of a client draw from one bucket, and say when it has filled up again', async (t) => {
  const platform = await startPlatform(t, { env: { ...LIMITS, ...TRUSTING } })
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const post = (path: string, body: unknown, client = '203.0.113.1') =>
    ask(`${platform.matchmaker_url}${path}`, {
      method: 'POST',
      headers: { ...JSON_TYPE, ...bearer(game.public_token), ...from(client).headers },
      body: JSON.stringify(body),
    })
  const wish = { game_modes: ['default'] }
  const calls: [string, unknown][] = [
    [findLobby.path, wish],
    [findLobby.aliases[0]!, wish],
    [joinLobby.path, { lobby_id: UNKNOWN_ID }],
    [createLobby.path, { game_mode: 'nothing' }],
    // What is refused counts too.
    [findLobby.path, {}],
  ]
  assert.equal(calls.length, SEATS)
  platform.holdClock()
  for (const [path, body] of calls) assert.notEqual((await post(path, body)).status, 429)
  const before = await platform.journalEnds()
  for (const [path, body] of calls) {
    const answer = await post(path, body)
    requireRefusal(answer, 'API_RATE_LIMIT')
    assert.equal(answer.headers['retry-after'], '12')
  }
  assert.equal(await platform.journalEnds(), before)

  assert.equal((await post(findLobby.path, wish, '203.0.113.2')).status, 200, 'another client has its own')
  assert.equal((await game.player.call(listLobbies, { ...from('203.0.113.1') })).lobbies.length, 1)
  platform.advance(12_000)
  assert.equal((await post(findLobby.path, wish)).status, 200)
  requireRefusal(await post(findLobby.path, wish), 'API_RATE_LIMIT')
})

test('a client without a credential takes nothing from the bucket of its address', async (t) => {
  const platform = await startPlatform(t, { env: LIMITS })
  platform.playServers()
  const game = await platform.game()
  const more: Ask = { method: 'POST', headers: JSON_TYPE, body: '{"game_modes":["default"]}' }
  for (let call = 0; call < 2 * SEATS; call++) {
    requireRefusal(await ask(`${platform.matchmaker_url}${findLobby.path}`, more), 'API_UNAUTHORIZED')
  }
  platform.holdClock()
  const finds = Array.from({ length: SEATS + 3 }, () => game.find())
  assert.deepEqual(await outcomesOf(finds), { answered: SEATS, API_RATE_LIMIT: 3 })
})

test('lobbies on one machine do not starve each other, nor the players there', async (t) => {
  const platform = await startPlatform(t, { env: LIMITS })
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  platform.holdClock()
  const seats = [await game.find(), await game.find({ game_modes: ['tagged'] })]
  for (const { lobby } of seats) {
    const server = platform.serverOf(game, lobby.lobby_id)
    // One call of ready was made when it started.
    const calls = Array.from({ length: MATCHMAKER + 1 }, (_, index) => {
      if (index % 3 === 0) return server.call(setLobbyReady, {})
      return index % 3 === 1
        ? server.call(setLobbyState, { body: index })
        : server.call(setLobbyClosed, { body: { is_closed: false } })
    })
    assert.deepEqual(await outcomesOf(calls), { answered: MATCHMAKER - 1, API_RATE_LIMIT: 2 })
  }
  const lists = Array.from({ length: MATCHMAKER + 2 }, () => game.player.call(listLobbies, {}))
  assert.deepEqual(await outcomesOf(lists), { answered: MATCHMAKER, API_RATE_LIMIT: 2 })
})

test('what a lobby says of its players is never limited', async (t) => {
  const platform = await startPlatform(t, { env: LIMITS })
  platform.playServers()
  const game = await platform.game()
  const seat = await game.find()
  const server = platform.serverOf(game, seat.lobby.lobby_id)
  const body = { player_token: seat.player.token }
  const calls = Array.from({ length: 10 * MATCHMAKER }, () => server.call(playerConnected, { body }))
  assert.deepEqual(await outcomesOf(calls), {
    answered: 1,
    MATCHMAKER_PLAYER_ALREADY_CONNECTED: 10 * MATCHMAKER - 1,
  })
  assert.notEqual(platform.playerIdOf(seat), '')
})

test('cloud calls are limited by the game that the token acts for', async (t) => {
  const platform = await startPlatform(t, { env: LIMITS })
  const [game, other] = [await platform.game(), await platform.game()]
  const clientOf = async (game_id: string) => {
    const { token } = await platform.client.call(createCloudToken, { params: { game_id } })
    return createClient({ url: platform.api_url, token })
  }
  const [first, second] = [await clientOf(game.game_id), await clientOf(game.game_id)]
  const stranger = await clientOf(other.game_id)
  const params = { game_id: game.game_id }
  const burst = (count: number) =>
    Array.from({ length: count }, (_, index) => (index % 2 ? first : second).call(getGameById, { params }))
  platform.holdClock()
  assert.deepEqual(await outcomesOf(burst(CLOUD + 5)), { answered: CLOUD, API_RATE_LIMIT: 5 })
  const { game: theirs } = await stranger.call(getGameById, { params: { game_id: other.game_id } })
  assert.equal(theirs.game_id, other.game_id)
  await platform.client.call(getGameById, { params })
  platform.advance(1_000)
  assert.deepEqual(await outcomesOf(burst(2)), { answered: 1, API_RATE_LIMIT: 1 })
})

test('one client with 200 requests a second slows no other: it is refused beyond its limit, with a retry time', async (t) => {
  const [CLIENTS, ROUNDS, ASKING_MS] = [50, 4, 5]
  const platform = await startPlatform(t, { env: { ...TRUSTING, MUSTER_RATE_LIMIT_SEATS: '120' } })
  platform.playServers()
  const game = await platform.game({
    matchmaker: { game_modes: { default: { max_players: 256, idle_grace_ms: LONG_MS } } },
    limits: { lobby_count_max: 100, max_players_per_client: 1_000_000 },
  })
  await game.find()
  /** The 99th of a hundred: how long 200 finds of normal players took. */
  const p99 = async (): Promise<number> => {
    const players = Array.from({ length: CLIENTS }, async (_, client) => {
      const times: number[] = []
      for (let count = 0; count < 4; count++) {
        const begin = performance.now()
        await game.find({}, from(`198.51.100.${client}`))
        times.push(performance.now() - begin)
      }
      return times
    })
    const times = (await Promise.all(players)).flat().sort((a, b) => a - b)
    return times[Math.floor(times.length * 0.99)]!
  }
  const hostile: Promise<ApiError | null>[] = []
  const attack = (): void => {
    hostile.push(
      game.find({}, from('203.0.113.66')).then(
        () => null,
        (error: ApiError) => error,
      ),
    )
  }
  // The attacker has used up the burst of its limit before anything is measured.
  for (let count = 0; count < 130; count++) attack()
  await Promise.all(hostile)
  const begin_ms = performance.now()
  const [quiet, loud]: [number[], number[]] = [[], []]
  // By turns, and the best of each: other load of the machine is not caused by the attacker.
  for (let round = 0; round < ROUNDS; round++) {
    quiet.push(await p99())
    const attacking = setInterval(attack, ASKING_MS)
    loud.push(await p99())
    // As long as it takes to have asked often enough.
    const wanted = hostile.length + 50
    await until("the attacker's requests", () => hostile.length >= wanted)
    clearInterval(attacking)
  }
  const outcomes = await Promise.all(hostile)
  const [best_quiet, best_loud] = [Math.min(...quiet), Math.min(...loud)]
  assert.ok(best_loud < 3 * best_quiet, `${best_loud} ms beside the attacker, ${best_quiet} ms without`)
  const regained = Math.ceil(((performance.now() - begin_ms) / 60_000) * 120) + 10
  const passed = outcomes.filter((outcome) => outcome === null).length
  assert.ok(passed >= 120 && passed <= 120 + regained, `${passed} of ${outcomes.length}`)
  for (const refusal of outcomes) {
    if (refusal === null) continue
    assert.deepEqual([refusal.code, refusal.status], ['API_RATE_LIMIT', 429])
    assert.ok(refusal.retry_after_s! >= 1)
  }
})
