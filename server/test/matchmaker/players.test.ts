import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ErrorCode, playerConnected, playerDisconnected } from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { LONG_MS, MODES, outcomesOf, UNKNOWN_ID, unshown, withKey } from '../http/steps.ts'
import { startPlatform } from '../support/platform.ts'
import type { Seat } from '../support/platform-verbs.ts'

type How = { headers?: Record<string, string> }

const connect = (server: Client, seat: Seat, how: How = {}) =>
  server.call(playerConnected, { body: { player_token: seat.player.token }, ...how })
const disconnect = (server: Client, seat: Seat, how: How = {}) =>
  server.call(playerDisconnected, { body: { player_token: seat.player.token }, ...how })

test('every refusal of connected and disconnected has its code, and changes nothing', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const stranger = await platform.game()
  const [seat, elsewhere] = [await game.find(), await game.find({ game_modes: ['tagged'] })]
  const foreign = await stranger.find()
  const { lobby_id } = seat.lobby
  const server = platform.serverOf(game, lobby_id)
  const both = [playerConnected, playerDisconnected]

  const issued = { now_ms: platform.ctx.now(), lifetime_ms: 60_000 }
  const subject = { lobby_id, namespace_id: game.namespace_id }
  const invalid = [
    'nonsense',
    '.',
    `${seat.player.token.slice(0, -2)}AA`,
    platform.token,
    game.public_token,
    platform.lobbyToken({ lobby_id, namespace_id: game.namespace_id }),
    platform.ctx.keys.issue(
      { kind: 'player', player_id: UNKNOWN_ID, ...subject },
      { now_ms: issued.now_ms - 120_000, lifetime_ms: 60_000 },
    ),
  ]
  for (const player_token of invalid) {
    for (const operation of both) {
      const call = () => server.call(operation, { body: { player_token } })
      assert.equal((await platform.refuses('PLAYER_TOKEN_INVALID', call)).status, 400)
    }
  }
  for (const other of [elsewhere, foreign]) {
    for (const operation of both) {
      const body = { player_token: other.player.token }
      await platform.refuses('MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY', () => server.call(operation, { body }))
    }
  }
  // Signed by us for this lobby, but of nobody: as if it had left long ago.
  const unknown = platform.ctx.keys.issue({ kind: 'player', player_id: UNKNOWN_ID, ...subject }, issued)
  await platform.refuses('MATCHMAKER_PLAYER_REMOVED', () =>
    server.call(playerConnected, { body: { player_token: unknown } }),
  )
  assert.deepEqual(await server.call(playerDisconnected, { body: { player_token: unknown } }), {})

  await connect(server, seat)
  await platform.refuses('MATCHMAKER_PLAYER_ALREADY_CONNECTED', () => connect(server, seat))
  await platform.refuses('MATCHMAKER_PLAYER_ALREADY_CONNECTED', () => connect(server, seat, withKey()))
  await disconnect(server, seat)
  await platform.refuses('MATCHMAKER_PLAYER_REMOVED', () => connect(server, seat))
  await platform.refuses('MATCHMAKER_PLAYER_REMOVED', () => connect(server, seat, withKey()))

  const late = await game.find()
  platform.advance(120_000)
  assert.equal(await platform.removeReasonOf(platform.playerIdOf(late)), 'expired')
  await platform.refuses('MATCHMAKER_PLAYER_REGISTRATION_EXPIRED', () => connect(server, late))
  const shown: ErrorCode[] = [
    'PLAYER_TOKEN_INVALID',
    'MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY',
    'MATCHMAKER_PLAYER_ALREADY_CONNECTED',
    'MATCHMAKER_PLAYER_REGISTRATION_EXPIRED',
    'MATCHMAKER_PLAYER_REMOVED',
    // Shown below.
    'MATCHMAKER_LOBBY_NOT_STARTED',
  ]
  assert.deepEqual(unshown(playerConnected, shown), [])
  assert.deepEqual(unshown(playerDisconnected, shown), [])
})

test('no player connects before their lobby is ready, or after it has stopped', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const waiting = game.find()
  const [lobby_id] = await platform.startingLobbies(game)
  const server = platform.serverOf(game, lobby_id!)
  const { player_id } = await platform.ctx.db.selectFrom('players').select('player_id').executeTakeFirstOrThrow()
  const player_token = platform.ctx.keys.issue(
    { kind: 'player', player_id, lobby_id: lobby_id!, namespace_id: game.namespace_id },
    { now_ms: platform.ctx.now(), lifetime_ms: 60_000 },
  )
  const connectEarly = () => server.call(playerConnected, { body: { player_token } })
  const error = await platform.refuses('MATCHMAKER_LOBBY_NOT_STARTED', connectEarly)
  assert.equal(error.status, 503)
  assert.equal(error.retry_after_s, 1)

  await platform.makeReady(game, lobby_id!)
  const seat = await waiting
  await connect(server, seat)
  const reserved = await game.find()
  await platform.endRun(lobby_id!)
  await platform.stopReasonOf(lobby_id!)
  for (const gone of [seat, reserved]) {
    await platform.refuses('MATCHMAKER_PLAYER_REMOVED', () => connect(server, gone))
    const before = await platform.journalEnds()
    assert.deepEqual(await disconnect(server, gone), {})
    assert.equal(await platform.journalEnds(), before)
  }
  assert.deepEqual(await game.listedLobbies(), [])
})

test('another lobby that reports a player changes nothing for that player', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const [seat, other] = [await game.find(), await game.find({ game_modes: ['tagged'] })]
  const thief = platform.serverOf(game, other.lobby.lobby_id)
  const key = withKey()
  await platform.refuses('MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY', () => connect(thief, seat, key))
  const server = platform.serverOf(game, seat.lobby.lobby_id)
  await connect(server, seat, key)
  await platform.refuses('MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY', () => connect(thief, seat, key))
  await platform.refuses('MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY', () => disconnect(thief, seat, key))
  assert.equal(await game.seatsTaken(), 2)
  await platform.refuses('MATCHMAKER_PLAYER_ALREADY_CONNECTED', () => connect(server, seat))
})

test('a repeated connected or disconnected with its key is answered as the first was', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const seat = await game.find()
  const server = platform.serverOf(game, seat.lobby.lobby_id)
  const [key, other_key] = [withKey(), withKey()]
  const calls = Array.from({ length: 100 }, (_, index) => connect(server, seat, index % 2 === 0 ? key : other_key))
  const outcomes = await outcomesOf(calls)
  assert.deepEqual(outcomes, { answered: 50, MATCHMAKER_PLAYER_ALREADY_CONNECTED: 50 })
  const before = await platform.journalEnds()
  const again = await outcomesOf([connect(server, seat, key), connect(server, seat, other_key)])
  assert.deepEqual(again, { answered: 1, MATCHMAKER_PLAYER_ALREADY_CONNECTED: 1 })
  assert.equal(await platform.journalEnds(), before)

  const second = await game.find()
  assert.deepEqual(await outcomesOf(Array.from({ length: 50 }, () => disconnect(server, seat, key))), { answered: 50 })
  assert.deepEqual(await disconnect(server, seat), {})
  assert.deepEqual(await game.listedLobbies(), [{ lobby_id: second.lobby.lobby_id, total_player_count: 1 }])
})

test('a seat that is given up before its player connected is free, and its token worthless', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({
    matchmaker: { game_modes: { default: { max_players: 1, idle_grace_ms: LONG_MS } } },
  })
  const seat = await game.find()
  const server = platform.serverOf(game, seat.lobby.lobby_id)
  await platform.refuses('MATCHMAKER_NO_AVAILABLE_LOBBIES', () => game.find({ prevent_auto_create_lobby: true }))
  await disconnect(server, seat)
  const next = await game.find({ prevent_auto_create_lobby: true })
  assert.equal(next.lobby.lobby_id, seat.lobby.lobby_id)
  await platform.refuses('MATCHMAKER_PLAYER_REMOVED', () => connect(server, seat))
  await connect(server, next)
})

test('a connected player is taken out after eight hours, if no server has reported them gone', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const seat = await game.find()
  const server = platform.serverOf(game, seat.lobby.lobby_id)
  await connect(server, seat)
  platform.advance(8 * LONG_MS - 5_000)
  const { lobby_id } = seat.lobby
  assert.deepEqual(await game.listedLobbies(), [{ lobby_id, total_player_count: 1 }])
  await platform.refuses('MATCHMAKER_PLAYER_ALREADY_CONNECTED', () => connect(server, seat))
  platform.advance(5_000)
  assert.equal(await platform.removeReasonOf(platform.playerIdOf(seat)), 'too_long')
  assert.deepEqual(await game.listedLobbies(), [{ lobby_id, total_player_count: 0 }])
  const before = await platform.journalEnds()
  assert.deepEqual(await disconnect(server, seat), {})
  assert.equal(await platform.journalEnds(), before)
})
