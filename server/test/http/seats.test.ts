import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { findLobby, playerConnected, playerDisconnected } from '@muster/contract'
import { startPlatform } from '../platform.ts'

test('a find starts a lobby, and the next one gets the seat beside it', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const find = () => game.player.call(findLobby, { body: { game_modes: ['default'] } })
  const first = await find()
  const second = await find()
  assert.equal(second.lobby.lobby_id, first.lobby.lobby_id)
  assert.notEqual(second.player.token, first.player.token)
  const lobby = platform.as(platform.lobbyToken({ ...first.lobby, namespace_id: game.namespace_id }))
  await lobby.call(playerConnected, { body: { player_token: first.player.token } })
  await assert.rejects(lobby.call(playerConnected, { body: { player_token: first.player.token } }), {
    code: 'MATCHMAKER_PLAYER_ALREADY_CONNECTED',
  })
  await lobby.call(playerDisconnected, { body: { player_token: first.player.token } })
})

test('of 1,000 finds for 100 seats exactly 100 get one', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({
    matchmaker: { game_modes: { default: { max_players: 100 } } },
    limits: { max_players_per_client: 1_000_000, lobby_count_max: 1 },
  })
  const body = { game_modes: ['default'], prevent_auto_create_lobby: true }
  const first = await game.player.call(findLobby, { body: { game_modes: ['default'] } })
  const outcomes = await Promise.all(
    Array.from({ length: 1_000 }, () =>
      game.player.call(findLobby, { body }).then(
        (seat) => seat.player.token,
        (error: { code: string }) => error.code,
      ),
    ),
  )
  const refused = outcomes.filter((outcome) => outcome === 'MATCHMAKER_NO_AVAILABLE_LOBBIES')
  const tokens = new Set(outcomes.filter((outcome) => outcome.startsWith('player.')))
  assert.equal(refused.length, 901)
  assert.equal(tokens.size, 99)
  assert.ok(!tokens.has(first.player.token))
})

test('of 1,000 calls with one player token exactly one consumes it', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const seat = await game.player.call(findLobby, { body: { game_modes: ['default'] } })
  const lobby = platform.as(platform.lobbyToken({ ...seat.lobby, namespace_id: game.namespace_id }))
  const key = randomUUID()
  const connect = (headers: Record<string, string>) =>
    lobby.call(playerConnected, { body: { player_token: seat.player.token }, headers }).then(
      () => 'connected',
      (error: { code: string }) => error.code,
    )
  const outcomes = await Promise.all(Array.from({ length: 1_000 }, () => connect({})))
  assert.equal(outcomes.filter((outcome) => outcome === 'connected').length, 1)
  assert.equal(outcomes.filter((outcome) => outcome === 'MATCHMAKER_PLAYER_ALREADY_CONNECTED').length, 999)
  assert.equal(await connect({ 'idempotency-key': key }), 'MATCHMAKER_PLAYER_ALREADY_CONNECTED')

  const other = await game.player.call(findLobby, { body: { game_modes: ['default'] } })
  const connectOther = () =>
    lobby.call(playerConnected, {
      body: { player_token: other.player.token },
      headers: { 'idempotency-key': key },
    })
  assert.deepEqual(await Promise.all([connectOther(), connectOther(), connectOther()]), [{}, {}, {}])
})

test('the same Idempotency-Key gets the same seat, word for word', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const headers = { 'idempotency-key': randomUUID() }
  const find = () => game.player.call(findLobby, { body: { game_modes: ['default'] }, headers })
  const [first, second] = await Promise.all([find(), find()])
  assert.deepEqual(second, first)
  assert.deepEqual(await find(), first)
})
