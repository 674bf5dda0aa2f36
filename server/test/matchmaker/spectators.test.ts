// Spectators over HTTP: who is named one, what counts them, and what a restart keeps.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type BodyOf,
  findLobby,
  getPlayerStatistics,
  joinLobby,
  listLobbies,
  listMatchmakerLobbyPlayers,
  listOwnSeats,
  playerConnected,
} from '@musterhost/contract'
import { checkSeats } from '../../src/backup/verify/seats.ts'
import { LONG_MS } from '../http/steps.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'

const MODES = {
  default: { max_players: 1, max_spectators: 2, idle_grace_ms: LONG_MS },
  alone: { max_players: 1, idle_grace_ms: LONG_MS },
}

test('a spectator is named one in its token and to the server, and counts nowhere as a player', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const spectate = (body: Partial<BodyOf<typeof findLobby>> = {}) =>
    game.player.call(findLobby, { body: { game_modes: ['default'], role: 'spectator', ...body } })
  const join = (lobby_id: string, more: Partial<BodyOf<typeof joinLobby>> = {}) =>
    game.player.call(joinLobby, { body: { lobby_id, role: 'spectator', ...more } })

  await platform.refuses('MATCHMAKER_NO_AVAILABLE_LOBBIES', () => spectate())
  const player = await game.find()
  const { lobby_id } = player.lobby
  assert.equal('role' in player.player, false)
  const [first, second] = [await spectate(), await join(lobby_id)]
  await platform.refuses('MATCHMAKER_LOBBY_FULL', () => join(lobby_id))
  await platform.refuses('MATCHMAKER_NO_AVAILABLE_LOBBIES', () => spectate())

  const server = platform.serverOf(game, lobby_id)
  const connect = ({ player: { token } }: typeof player) =>
    server.call(playerConnected, { body: { player_token: token } })
  for (const seat of [first, second]) {
    assert.equal(seat.lobby.lobby_id, lobby_id)
    assert.equal(seat.player.role, 'spectator')
    assert.equal(
      (platform.ctx.keys.verify(seat.player.token, platform.ctx.now()) as { role?: string }).role,
      'spectator',
    )
    assert.deepEqual(await connect(seat), { role: 'spectator' })
  }
  assert.deepEqual(await connect(player), {})

  const [listed] = (await game.player.call(listLobbies, {})).lobbies
  assert.deepEqual([listed!.total_player_count, listed!.max_spectators, listed!.spectator_count], [1, 2, 2])
  assert.equal((await game.player.call(getPlayerStatistics, {})).player_count, 1)
  const params = { game_id: game.game_id, lobby_id }
  const { players } = await platform.client.call(listMatchmakerLobbyPlayers, { params })
  assert.deepEqual(
    players.map(({ role }) => role),
    [undefined, 'spectator', 'spectator'],
  )

  const alone = await game.find({ game_modes: ['alone'] })
  await platform.refuses('MATCHMAKER_SPECTATORS_DISABLED', () => spectate({ game_modes: ['alone'] }))
  await platform.refuses('MATCHMAKER_SPECTATORS_DISABLED', () => join(alone.lobby.lobby_id))
  const { metadata } = await platform.refuses('VALIDATION_ERROR', () => join(lobby_id, { party: true }))
  assert.deepEqual((metadata!.errors as { path: string[] }[])[0]!.path, ['party'])

  const body = { player_token: first.player.token }
  const { seats } = await game.player.call(listOwnSeats, { body })
  assert.deepEqual(
    seats.map(({ player, is_connected }) => [player, is_connected]),
    [[first.player, true]],
  )

  const { ctx } = platform
  const rows = () =>
    ctx.db.selectFrom('players').select(['player_id', 'is_spectator']).where('lobby_id', '=', lobby_id).execute()
  await until('the tables have the seats', async () => (await rows()).length === 3)
  const client = await ctx.pool.connect()
  try {
    assert.deepEqual((await checkSeats(client)).findings, [])
  } finally {
    client.release()
  }
  await platform.close()
  const later = await startPlatform(t, { database_url: ctx.config.database_url!, data_dir: platform.data_dir })
  const again = later.as(game.public_token)
  const more = { body: { lobby_id, role: 'spectator' } } as const
  await later.refuses('MATCHMAKER_LOBBY_FULL', () => again.call(joinLobby, more))
})
