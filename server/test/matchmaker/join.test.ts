import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ErrorCode, joinLobby, setLobbyClosed } from '@musterhost/contract'
import {
  create,
  endRun,
  failureOf,
  find,
  from,
  join,
  LONG_MS,
  listed,
  MODES,
  outcomesOf,
  ready,
  refused,
  seatsTaken,
  serverOf,
  setLimits,
  stallRun,
  starting,
  stopReasonOf,
  TRUSTING,
  UNKNOWN_ID,
  unshown,
  withKey,
} from '../http/steps.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'

test('every refusal of join has its code, and changes nothing', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const stranger = await platform.game()
  const foreign = await find(stranger)
  const unjoinable = await find(game, { game_modes: ['unjoinable'] })
  const full = await find(game, { game_modes: ['sized'], max_players: 1 })
  const stopped = await find(game, { game_modes: ['tagged'] })
  await endRun(platform, stopped.lobby.lobby_id)
  await stopReasonOf(platform, stopped.lobby.lobby_id)
  const stalled = await find(game, { game_modes: ['tagged'], tags: { map: 'dune' } })
  await stallRun(platform, stalled.lobby.lobby_id)
  const { lobby } = await find(game)

  const cases: [ErrorCode, string][] = [
    ['MATCHMAKER_LOBBY_NOT_FOUND', UNKNOWN_ID],
    ['MATCHMAKER_LOBBY_NOT_FOUND', foreign.lobby.lobby_id],
    ['MATCHMAKER_JOIN_DISABLED', unjoinable.lobby.lobby_id],
    ['MATCHMAKER_LOBBY_STOPPED', stopped.lobby.lobby_id],
    ['MATCHMAKER_LOBBY_CLOSED', stalled.lobby.lobby_id],
    ['MATCHMAKER_LOBBY_FULL', full.lobby.lobby_id],
  ]
  const answers: unknown[] = []
  for (const [code, lobby_id] of cases) {
    const { status, message, metadata } = await refused(platform, code, () => join(game, lobby_id))
    assert.equal(status, 400)
    answers.push({ message, metadata })
  }
  assert.deepEqual(answers[1], answers[0], "another namespace's lobby differs from none")
  await setLimits(platform, game, { max_players_per_client: 3 })
  await refused(platform, 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', () => join(game, lobby.lobby_id))
  assert.equal(await seatsTaken(stranger), 1)

  const shown = [...cases.map(([code]) => code), 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE']
  assert.deepEqual(unshown(joinLobby, shown), ['MATCHMAKER_LOBBY_NOT_STARTED'])
})

test('a join waits for the start of its lobby, and is refused when that dies or takes too long', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const found = failureOf(find(game))
  const [slow] = await starting(platform, game)
  const impatient = failureOf(join(game, slow!))
  await until('both to have a seat', async () => (await seatsTaken(game)) === 2)
  platform.advance(50_000)
  for (const error of [await impatient, await found]) {
    assert.equal(error.code, 'MATCHMAKER_LOBBY_NOT_STARTED')
    assert.equal(error.retry_after_s, 1)
  }
  assert.deepEqual(await listed(game), [{ lobby_id: slow, total_player_count: 0 }])

  const other = failureOf(join(game, slow!))
  await until('the seat', async () => (await seatsTaken(game)) === 1)
  await endRun(platform, slow!)
  assert.equal((await other).code, 'MATCHMAKER_LOBBY_STOPPED')
  await stopReasonOf(platform, slow!)

  const finder = find(game)
  const [started] = await starting(platform, game)
  const joiner = join(game, started!)
  await until('both to have a seat', async () => (await seatsTaken(game)) === 2)
  await ready(platform, game, started!)
  assert.equal((await joiner).lobby.lobby_id, (await finder).lobby.lobby_id)
})

test('closed and private lobbies are joined by their id', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const hidden = await create(game, { game_mode: 'secret' })
  const open = await find(game)
  await serverOf(platform, game, open.lobby.lobby_id).call(setLobbyClosed, { body: { is_closed: true } })
  for (const { lobby } of [hidden, open]) {
    const seat = await join(game, lobby.lobby_id)
    assert.equal(seat.lobby.lobby_id, lobby.lobby_id)
    assert.deepEqual(seat.lobby.ports, seat.ports)
    assert.deepEqual(seat.lobby.player, seat.player)
  }
})

test('of 50 concurrent joins as many get a seat as the lobby takes directly', async (t) => {
  const platform = await startPlatform(t, { env: TRUSTING })
  platform.playServers()
  const game = await platform.game({
    matchmaker: { game_modes: { default: { max_players: 4, max_players_direct: 7, idle_grace_ms: LONG_MS } } },
  })
  const { lobby } = await find(game)
  const joins = Array.from({ length: 50 }, (_, index) => join(game, lobby.lobby_id, from(`203.0.113.${index}`)))
  assert.deepEqual(await outcomesOf(joins), { answered: 6, MATCHMAKER_LOBBY_FULL: 44 })
  assert.deepEqual(await listed(game), [{ lobby_id: lobby.lobby_id, total_player_count: 7 }])
  assert.notEqual((await find(game)).lobby.lobby_id, lobby.lobby_id)
})

test('the same key gets the same seat again, and a seat that was lost for want of a start is void', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const found = failureOf(find(game))
  const [lobby_id] = await starting(platform, game)
  const key = withKey()
  const late = failureOf(join(game, lobby_id!, key))
  await until('both to have a seat', async () => (await seatsTaken(game)) === 2)
  platform.advance(50_000)
  assert.equal((await late).code, 'MATCHMAKER_LOBBY_NOT_STARTED')
  assert.equal((await found).code, 'MATCHMAKER_LOBBY_NOT_STARTED')
  await ready(platform, game, lobby_id!)
  const seat = await join(game, lobby_id!, key)
  assert.deepEqual(await join(game, lobby_id!, key), seat)
  assert.equal(await seatsTaken(game), 1)
})
