// Lobbies that run ahead of players: as many as a version wants, never more than may be, through deploys, restarts and
// servers that end at once.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import {
  deleteMatchmakerLobby,
  listMatchmakerLobbyPlayers,
  playerConnected,
  playerDisconnected,
  setMatchmakerVersionDraining,
  validateGameVersion,
} from '@musterhost/contract'
import { PAUSE_MS_FIRST } from '../../src/matchmaker/watch/start-pauses.ts'
import { LONG_MS } from '../http/steps.ts'
import { createDatabase } from '../support/database.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import type { GameModes } from '../support/platform-verbs.ts'
import { until } from '../support/until.ts'

const idle = (min: number, max: number): GameModes => ({
  default: { idle_grace_ms: 1_000, idle_lobbies: { min, max } },
})

/** The lobbies of a game that are not stopped, the oldest first. */
async function live(platform: Platform, game: TestGame) {
  const rows = await platform.ctx.db
    .selectFrom('lobbies')
    .where('namespace_id', '=', game.namespace_id)
    .where('stop_ts', 'is', null)
    .orderBy('create_ts')
    .orderBy('lobby_id')
    .select(['lobby_id', 'player_count', 'ready_ts', 'create_ts', 'version_id'])
    .execute()
  return rows
}

/** Waits until so many lobbies run, all of them ready. */
const running = (platform: Platform, game: TestGame, count: number) =>
  until(`${count} ready lobbies`, async () => {
    const rows = await live(platform, game)
    return rows.length === count && rows.every(({ ready_ts }) => ready_ts !== null) && rows
  })

async function stopTime(platform: Platform, lobby_id: string): Promise<number> {
  const { db } = platform.ctx
  const row = await db
    .selectFrom('lobbies')
    .where('lobby_id', '=', lobby_id)
    .select('stop_ts')
    .executeTakeFirstOrThrow()
  return row.stop_ts!.getTime()
}

async function lobbiesEver(platform: Platform, game: TestGame): Promise<number> {
  const rows = await platform.ctx.db
    .selectFrom('lobbies')
    .where('namespace_id', '=', game.namespace_id)
    .select('lobby_id')
    .execute()
  return rows.length
}

test('idle lobbies are started ahead, replaced when players take them, kept, and stopped where they are too many', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  await platform.deploy(game, idle(1, 2))
  const [ahead] = await running(platform, game, 1)
  const seat = await game.find()
  assert.equal(seat.lobby.lobby_id, ahead!.lobby_id, 'a player gets the lobby that waits for one')
  await running(platform, game, 2)

  // Nobody plays in either now: two may stay, however long.
  const server = platform.serverOf(game, ahead!.lobby_id)
  const body = { player_token: seat.player.token }
  await server.call(playerConnected, { body })
  await server.call(playerDisconnected, { body })
  platform.advance(LONG_MS)
  const two = await running(platform, game, 2)
  assert.ok(two.some(({ lobby_id }) => lobby_id === ahead!.lobby_id))

  // A third is one too many, and the one that has stood empty longest goes.
  await platform.deploy(game, idle(3, 3))
  const three = await running(platform, game, 3)
  for (const { lobby_id } of two) assert.equal(await platform.stopReasonOf(lobby_id), 'outdated')
  const version_id = await platform.deploy(game, idle(0, 1))
  for (const { lobby_id } of three) assert.equal(await platform.stopReasonOf(lobby_id), 'outdated')
  const seats = [await game.find()]
  const first_id = seats[0]!.lobby.lobby_id
  const other = platform.serverOf(game, first_id)
  await other.call(playerConnected, { body: { player_token: seats[0]!.player.token } })
  assert.equal((await live(platform, game)).length, 1, 'min 0 starts none')
  await other.call(playerDisconnected, { body: { player_token: seats[0]!.player.token } })
  platform.advance(LONG_MS)
  const [kept] = await running(platform, game, 1)
  assert.equal(kept!.lobby_id, first_id)

  // A version that drains keeps none.
  const params = { game_id: game.game_id, namespace_id: game.namespace_id, version_id }
  await platform.client.call(setMatchmakerVersionDraining, { params, body: { is_draining: true } })
  assert.equal(await platform.stopReasonOf(first_id), 'idle')
})

test('lobbies of a version that was replaced are joined by id, not found, and end when they are empty', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: { default: { idle_grace_ms: LONG_MS } } } })
  const seat = await game.find()
  const { lobby_id } = seat.lobby
  await platform.deploy(game, idle(1, 1))
  const [, current] = await running(platform, game, 2)
  assert.equal((await game.find()).lobby.lobby_id, current!.lobby_id)
  assert.equal((await game.join(lobby_id)).lobby.lobby_id, lobby_id)
  const params = { game_id: game.game_id, lobby_id }
  assert.equal((await platform.client.call(listMatchmakerLobbyPlayers, { params })).players.length, 2)
  // Neither connects in time.
  platform.advance(121_000)
  assert.equal(await platform.stopReasonOf(lobby_id), 'outdated')
  assert.deepEqual(await platform.client.call(deleteMatchmakerLobby, { params }), { did_remove: false })
})

test('idle lobbies stay within lobby_count_max, start when it is raised, and a restart starts no more of them', async (t) => {
  const database_url = await createDatabase(t)
  const platform = await startPlatform(t, { database_url })
  platform.playServers()
  const game = await platform.game({ limits: { lobby_count_max: 1 } })
  await platform.deploy(game, idle(3, 3))
  await running(platform, game, 1)
  const before = await platform.journalEnds()
  platform.advance(10_000)
  await platform.setLimits(game, { lobby_count_max: 1 })
  assert.equal(await platform.journalEnds(), before, 'what may not be started is not tried in the journal')
  await platform.setLimits(game, { lobby_count_max: 128 })
  const lobbies = await running(platform, game, 3)

  await platform.close()
  const next = await startPlatform(t, { database_url, data_dir: platform.data_dir })
  next.playServers()
  next.advance(LONG_MS)
  const after = await running(next, game, 3)
  assert.deepEqual(
    after.map(({ lobby_id }) => lobby_id),
    lobbies.map(({ lobby_id }) => lobby_id),
  )
  assert.equal(await lobbiesEver(next, game), 3)
  // One that is stopped has its place filled again.
  const params = { game_id: game.game_id, lobby_id: after[0]!.lobby_id }
  await next.client.call(deleteMatchmakerLobby, { params })
  await until('a fourth lobby', async () => (await lobbiesEver(next, game)) === 4)
  await running(next, game, 3)
})

test('a game mode whose servers end at once is given longer and longer rests', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  await platform.deploy(game, idle(1, 1))
  let rest_ms = PAUSE_MS_FIRST
  let rested_ms = 0
  for (let count = 1; count <= 6; count++) {
    const [lobby_id] = await platform.startingLobbies(game)
    const [row] = await live(platform, game)
    assert.ok(row!.create_ts.getTime() >= rested_ms, 'not before the rest is over')
    await platform.endRun(lobby_id!)
    assert.equal(await platform.stopReasonOf(lobby_id!), 'exited')
    assert.equal(await lobbiesEver(platform, game), count)
    rested_ms = (await stopTime(platform, lobby_id!)) + rest_ms
    platform.advance(rest_ms)
    rest_ms *= 2
  }
})

test('min above max is refused where it is said', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const wrong = { min: 2, max: 1 }
  const { errors } = await platform.client.call(validateGameVersion, {
    params: { game_id: game.game_id },
    body: {
      display_name: randomUUID(),
      config: {
        matchmaker: {
          idle_lobbies: wrong,
          regions: { local: { idle_lobbies: wrong } },
          game_modes: { default: { idle_lobbies: wrong, regions: { local: { idle_lobbies: wrong } } } },
        },
      },
    },
  })
  const paths = errors
    .filter(({ reason }: { reason: string }) => reason === 'too_high')
    .map(({ path }) => path.join('.'))
  assert.deepEqual(paths.sort(), [
    'matchmaker.game_modes.default.idle_lobbies.min',
    'matchmaker.game_modes.default.regions.local.idle_lobbies.min',
    'matchmaker.idle_lobbies.min',
    'matchmaker.regions.local.idle_lobbies.min',
  ])
})

test('another lobby is started in the place of one that stands ready and does not answer, which has its grace to come back', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  await platform.deploy(game, idle(1, 1))
  const [ahead] = await running(platform, game, 1)
  platform.advance(60_000)
  await platform.stallRun(ahead!.lobby_id)
  const [, other] = await running(platform, game, 2)
  assert.equal((await game.find()).lobby.lobby_id, other!.lobby_id, 'no player is sent to it')
  platform.advance(1_000)
  assert.equal(await platform.stopReasonOf(ahead!.lobby_id), 'idle')
})
