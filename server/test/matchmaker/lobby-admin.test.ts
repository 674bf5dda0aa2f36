// What developers do to what runs, over HTTP; and seats that are kept over a dropped connection.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type BodyOf,
  checkMatchmakerVersion,
  deleteMatchmakerLobby,
  deleteMatchmakerLobbyPlayer,
  getGameNamespaceVersionHistoryList,
  listMatchmakerLobbyPlayers,
  playerConnected,
  playerDisconnected,
  setMatchmakerVersionDraining,
} from '@musterhost/contract'
import { LONG_MS, MODES, UNKNOWN_ID, withKey } from '../http/steps.ts'
import { createDatabase } from '../support/database.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import type { Seat } from '../support/platform-verbs.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'

const SEAT_HOLD_MS = 30_000

const lobbyOf = ({ game_id }: TestGame, { lobby }: Seat) => ({ game_id, lobby_id: lobby.lobby_id })
const drain = ({ client }: Platform, game: TestGame, version_id: string, is_draining: boolean) =>
  client.call(setMatchmakerVersionDraining, {
    params: { game_id: game.game_id, namespace_id: game.namespace_id, version_id },
    body: { is_draining },
  })

test('a developer stops a lobby: it is over when the answer comes, and once is as good as twice', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const seat = await game.find()
  const stop = { params: lobbyOf(game, seat) }
  assert.deepEqual(await platform.client.call(deleteMatchmakerLobby, stop), { did_remove: true })
  await platform.refuses('MATCHMAKER_LOBBY_STOPPED', () => game.join(seat.lobby.lobby_id))
  assert.deepEqual(await platform.client.call(deleteMatchmakerLobby, stop), { did_remove: false })
  assert.equal(await platform.stopReasonOf(seat.lobby.lobby_id), 'requested')
  assert.equal(await platform.removeReasonOf(platform.playerIdOf(seat)), 'lobby_stopped')
  assert.notEqual((await game.find()).lobby.lobby_id, seat.lobby.lobby_id)
  const nowhere = { params: { game_id: game.game_id, lobby_id: UNKNOWN_ID } }
  await platform.refuses('LOBBY_NOT_FOUND', () => platform.client.call(deleteMatchmakerLobby, nowhere))
})

test('a developer sees the players of a lobby and removes one: the seat is free, the token is refused', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const [seat, other] = [await game.find(), await game.find()]
  const elsewhere = await game.find({ game_modes: ['tagged'] })
  const server = platform.serverOf(game, seat.lobby.lobby_id)
  await server.call(playerConnected, { body: { player_token: other.player.token } })
  const params = lobbyOf(game, seat)
  const listedPlayers = async () => (await platform.client.call(listMatchmakerLobbyPlayers, { params })).players
  const [reserved, connected] = await listedPlayers()
  assert.deepEqual([reserved?.player_id, connected?.player_id], [platform.playerIdOf(seat), platform.playerIdOf(other)])
  assert.deepEqual([reserved?.connect_ts === undefined, connected?.connect_ts === undefined], [true, false])

  const remove = (player: Seat) =>
    platform.client.call(deleteMatchmakerLobbyPlayer, { params: { ...params, player_id: platform.playerIdOf(player) } })
  assert.deepEqual(await remove(seat), { did_remove: true })
  assert.deepEqual(await remove(other), { did_remove: true })
  assert.deepEqual(await listedPlayers(), [])
  const before = await platform.journalEnds()
  assert.deepEqual(await remove(other), { did_remove: false })
  // Of another lobby of the same game.
  assert.deepEqual(await remove(elsewhere), { did_remove: false })
  assert.equal(await platform.journalEnds(), before)
  const connect = () => server.call(playerConnected, { body: { player_token: seat.player.token } })
  await platform.refuses('MATCHMAKER_PLAYER_REMOVED', connect)
  await server.call(playerDisconnected, { body: { player_token: other.player.token } })
  assert.equal(await platform.removeReasonOf(platform.playerIdOf(other)), 'requested')
})

test('a version that drains gets no player more, its players play on, and a restart does not forget it', async (t) => {
  const database_url = await createDatabase(t)
  const platform = await startPlatform(t, { database_url })
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const seat = await game.find()
  const { lobby_id } = seat.lobby
  await drain(platform, game, game.version_id, true)
  await platform.refuses('MATCHMAKER_VERSION_DRAINING', () => game.find())
  await platform.refuses('MATCHMAKER_VERSION_DRAINING', () => game.join(lobby_id))
  await platform.refuses('MATCHMAKER_VERSION_DRAINING', () => game.create({ game_mode: 'custom' }))
  const before = await platform.journalEnds()
  await drain(platform, game, game.version_id, true)
  assert.equal(await platform.journalEnds(), before, 'repeating it changes nothing')

  // The next version plays, and the lobbies of the old one take nobody, by id neither.
  await platform.deploy(game, MODES)
  assert.notEqual((await game.find()).lobby.lobby_id, lobby_id)
  await platform.refuses('MATCHMAKER_VERSION_DRAINING', () => game.join(lobby_id))
  await platform.serverOf(game, lobby_id).call(playerConnected, { body: { player_token: seat.player.token } })

  await platform.close()
  const next = await startPlatform(t, { database_url, data_dir: platform.data_dir })
  const player = next.as(game.public_token)
  const later = { ...game, player }
  await next.refuses('MATCHMAKER_VERSION_DRAINING', () => later.join(lobby_id))
  await drain(next, game, game.version_id, false)
  assert.equal((await later.join(lobby_id)).lobby.lobby_id, lobby_id)
  const foreign = await next.game()
  assert.equal((await failureOf(drain(next, game, foreign.version_id, true))).code, 'VERSION_NOT_FOUND')
  assert.equal(
    (await failureOf(drain(next, { ...game, namespace_id: foreign.namespace_id }, game.version_id, true))).code,
    'NAMESPACE_NOT_FOUND',
  )
})

test('hold_ms keeps the seat for the same token, counted like any other, and frees it when the time is over', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({
    matchmaker: { game_modes: { default: { max_players: 1, idle_grace_ms: LONG_MS } } },
    limits: { lobby_count_max: 1 },
  })
  const seat = await game.find()
  const { lobby_id } = seat.lobby
  const server = platform.serverOf(game, lobby_id)
  const body = { player_token: seat.player.token }
  const connect = (how: ReturnType<typeof withKey>) => server.call(playerConnected, { body, ...how })
  const hold = (how: ReturnType<typeof withKey>) =>
    server.call(playerDisconnected, { body: { ...body, hold_ms: SEAT_HOLD_MS }, ...how })

  const [first, dropped] = [withKey(), withKey()]
  await connect(first)
  await hold(dropped)
  await platform.refuses('MATCHMAKER_LOBBY_FULL', () => game.join(lobby_id))
  assert.equal(await game.seatsTaken(), 1)
  // The server asks again for the answer that got lost: that connects no player.
  await connect(first)
  await connect(withKey())
  await platform.refuses('MATCHMAKER_PLAYER_ALREADY_CONNECTED', () => connect(withKey()))
  // A drop that was reported already must not throw out who is back.
  const before = await platform.journalEnds()
  await hold(dropped)
  assert.equal(await platform.journalEnds(), before)

  await hold(withKey())
  platform.advance(SEAT_HOLD_MS)
  assert.equal(await platform.removeReasonOf(platform.playerIdOf(seat)), 'expired')
  await platform.refuses('MATCHMAKER_PLAYER_REGISTRATION_EXPIRED', () => connect(withKey()))
  assert.equal((await game.join(lobby_id)).lobby.lobby_id, lobby_id)
  for (const hold_ms of [-1, 300_001, 0.5]) {
    const call = server.call(playerDisconnected, { body: { ...body, hold_ms } })
    assert.equal((await failureOf(call)).code, 'VALIDATION_ERROR')
  }
})

const check = (
  { client }: Platform,
  { game_id, namespace_id }: TestGame,
  version_id: string,
  body: BodyOf<typeof checkMatchmakerVersion> = {},
  signal?: AbortSignal,
) =>
  client.call(checkMatchmakerVersion, {
    params: { game_id, namespace_id, version_id },
    body,
    ...(signal === undefined ? {} : { signal }),
  })

test('a version is checked before its deploy: no player finds its lobby until then, and the first player gets it', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const before = await game.find()
  const next = await platform.createVersion(game, MODES)
  const checked = await check(platform, game, next)
  assert.deepEqual([checked.is_ready, checked.message], [true, ''])
  assert.deepEqual(await check(platform, game, next, { lobby_id: checked.lobby_id }), checked)
  assert.equal((await game.find()).lobby.lobby_id, before.lobby.lobby_id, 'the version of the namespace is the old one')
  await platform.putVersion(game, next)
  assert.equal((await game.find()).lobby.lobby_id, checked.lobby_id)
  // The deploy counts as one that worked, although its lobby is older.
  const { game_id, namespace_id } = game
  const history = () =>
    platform.client.call(getGameNamespaceVersionHistoryList, { params: { game_id, namespace_id }, query: {} })
  await until('the lobby of the check in the history', async () => {
    const [deployed] = (await history()).versions
    return deployed!.first_ready_ts === deployed!.deploy_ts
  })
  const foreign = await platform.game()
  assert.equal((await failureOf(check(platform, game, foreign.version_id))).code, 'VERSION_NOT_FOUND')
  assert.equal((await failureOf(check(platform, game, next, { lobby_id: UNKNOWN_ID }))).code, 'LOBBY_NOT_FOUND')
  const no_mode = check(platform, game, next, { game_mode: 'nothing' })
  assert.equal((await failureOf(no_mode)).code, 'MATCHMAKER_GAME_MODE_NOT_FOUND')
})

test('checks that fail pause no player, say why, and leave no lobby when the caller hangs up', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const next = await platform.createVersion(game, MODES)
  const hang_up = new AbortController()
  const left = check(platform, game, next, {}, hang_up.signal)
  const [left_id] = await platform.startingLobbies(game)
  hang_up.abort()
  await assert.rejects(left)
  assert.equal(await platform.stopReasonOf(left_id!), 'outdated')
  await platform.setLimits(game, { lobby_count_max: 0 })
  assert.equal((await failureOf(check(platform, game, next))).code, 'MATCHMAKER_TOO_MANY_LOBBIES')
  await platform.setLimits(game, { lobby_count_max: 128 })

  // Twice as many as may run at a time: more failures than after which starts for players pause.
  for (let round = 1; round <= 2; round++) {
    const checks = await Promise.all([1, 2, 3, 4].map(() => check(platform, game, next, { wait_ms: 0 })))
    for (const { is_ready, is_started, message } of checks) {
      assert.deepEqual([is_ready, is_started, message], [false, false, 'Its server has not been started yet.'])
    }
    assert.equal((await failureOf(check(platform, game, next))).code, 'QUOTA_REACHED')
    await platform.startingLobbies(game, 4)
    const ends = checks.map(({ lobby_id }) => failureOf(check(platform, game, next, { lobby_id })))
    for (const { lobby_id } of checks) await platform.endRun(lobby_id, { exit_code: 3, exit_reason: 'exit' })
    for (const { code, message } of await Promise.all(ends)) {
      assert.equal(code, 'MATCHMAKER_LOBBY_STOPPED')
      assert.equal(message, 'The lobby ended before it was ready: its server exited with code 3.')
    }
  }
  await platform.putVersion(game, next)
  // The first lobby of a player fails too, and the request tries another: the checks before do not count.
  const found = game.find()
  const [failing] = await platform.startingLobbies(game)
  await platform.endRun(failing!)
  const second = await until('a second lobby', async () =>
    (await platform.startingLobbies(game)).find((lobby_id) => lobby_id !== failing),
  )
  await platform.makeReady(game, second)
  assert.equal((await found).lobby.lobby_id, second)
})
