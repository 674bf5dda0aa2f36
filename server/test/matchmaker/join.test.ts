import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ErrorCode, joinLobby, setLobbyClosed } from '@musterhost/contract'
import { from, LONG_MS, MODES, outcomesOf, TRUSTING, UNKNOWN_ID, unshown, withKey } from '../http/steps.ts'
import { startPlatform } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'

test('every refusal of join has its code, and changes nothing', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const stranger = await platform.game()
  const foreign = await stranger.find()
  const unjoinable = await game.find({ game_modes: ['unjoinable'] })
  const full = await game.find({ game_modes: ['sized'], max_players: 1 })
  const stopped = await game.find({ game_modes: ['tagged'] })
  await platform.endRun(stopped.lobby.lobby_id)
  await platform.stopReasonOf(stopped.lobby.lobby_id)
  const stalled = await game.find({ game_modes: ['tagged'], tags: { map: 'dune' } })
  await platform.stallRun(stalled.lobby.lobby_id)
  const { lobby } = await game.find()

  const cases: [ErrorCode, string][] = [
    ['MATCHMAKER_LOBBY_NOT_FOUND', UNKNOWN_ID],
    ['MATCHMAKER_LOBBY_NOT_FOUND', foreign.lobby.lobby_id],
    ['MATCHMAKER_JOIN_DISABLED', unjoinable.lobby.lobby_id],
    ['MATCHMAKER_LOBBY_STOPPED', stopped.lobby.lobby_id],
    ['MATCHMAKER_LOBBY_CLOSED', stalled.lobby.lobby_id],
    ['MATCHMAKER_LOBBY_FULL', full.lobby.lobby_id],
  ]
  const byCode = () => game.player.call(joinLobby, { body: { code: 'BCDFGH' } })
  assert.equal((await platform.refuses('MATCHMAKER_LOBBY_CODE_INVALID', byCode)).status, 404)
  const spectate = { body: { lobby_id: lobby.lobby_id, role: 'spectator' } } as const
  await platform.refuses('MATCHMAKER_SPECTATORS_DISABLED', () => game.player.call(joinLobby, spectate))
  const answers: unknown[] = []
  for (const [code, lobby_id] of cases) {
    const { status, message, metadata } = await platform.refuses(code, () => game.join(lobby_id))
    assert.equal(status, 400)
    answers.push({ message, metadata })
  }
  assert.deepEqual(answers[1], answers[0], "another namespace's lobby differs from none")
  await platform.setLimits(game, { max_players_per_client: 3 })
  await platform.refuses('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', () => game.join(lobby.lobby_id))
  assert.equal(await stranger.seatsTaken(), 1)

  const others = [
    ...['MATCHMAKER_LOBBY_CODE_INVALID', 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', 'MATCHMAKER_SPECTATORS_DISABLED'],
  ]
  const shown = [...cases.map(([code]) => code), ...others]
  assert.deepEqual(unshown(joinLobby, shown), ['MATCHMAKER_LOBBY_NOT_STARTED'])
})

test('a join waits for the start of its lobby, and is refused when that dies or takes too long', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const found = failureOf(game.find())
  const [slow] = await platform.startingLobbies(game)
  const impatient = failureOf(game.join(slow!))
  await until('both to have a seat', async () => (await game.seatsTaken()) === 2)
  platform.advance(50_000)
  for (const error of [await impatient, await found]) {
    assert.equal(error.code, 'MATCHMAKER_LOBBY_NOT_STARTED')
    assert.equal(error.retry_after_s, 1)
  }
  assert.deepEqual(await game.listedLobbies(), [{ lobby_id: slow, total_player_count: 0 }])

  const other = failureOf(game.join(slow!))
  await until('the seat', async () => (await game.seatsTaken()) === 1)
  await platform.endRun(slow!)
  assert.equal((await other).code, 'MATCHMAKER_LOBBY_STOPPED')
  await platform.stopReasonOf(slow!)

  const finder = game.find()
  const [started] = await platform.startingLobbies(game)
  const joiner = game.join(started!)
  await until('both to have a seat', async () => (await game.seatsTaken()) === 2)
  await platform.makeReady(game, started!)
  assert.equal((await joiner).lobby.lobby_id, (await finder).lobby.lobby_id)
})

test('a lobby with a code is joined by it, and wrong codes are limited for each client', async (t) => {
  const platform = await startPlatform(t, { env: TRUSTING })
  platform.holdClock()
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES }, limits: { max_players_per_client: 100 } })
  const other_game = await platform.game()
  const joinBy = (code: string, how = {}) => game.player.call(joinLobby, { body: { code }, ...how })
  const key = withKey()
  const body = { game_mode: 'custom', publicity: 'private', with_code: true } as const
  const { lobby } = await game.create(body, key)
  const code = lobby.code!
  assert.match(code, /^[BCDFGHJKMNPQRSTVWXYZ]{6}$/)
  assert.equal((await game.create(body, key)).lobby.code, code, 'a repeated call has the same lobby')
  assert.notEqual((await game.create(body)).lobby.code, code)
  assert.equal((await game.create({ ...body, with_code: false })).lobby.code, undefined)

  const friend = await joinBy(` ${code.toLowerCase()} `)
  assert.deepEqual([friend.lobby.lobby_id, friend.lobby.code], [lobby.lobby_id, code])
  assert.deepEqual(await game.listedLobbies(), [], 'a code makes no lobby public')
  for (const wrong of [{}, { code, lobby_id: lobby.lobby_id }]) {
    await platform.refuses('VALIDATION_ERROR', () => game.player.call(joinLobby, { body: wrong }))
  }
  const elsewhere = () => other_game.player.call(joinLobby, { body: { code } })
  await platform.refuses('MATCHMAKER_LOBBY_CODE_INVALID', elsewhere)

  // Each /64 of this /48 has tries of its own, until those of the /56 are used up.
  for (let guess = 0; guess < 20; guess++) {
    await platform.refuses('MATCHMAKER_LOBBY_CODE_INVALID', () => joinBy('BCDFGH', from('2001:db8::1')))
  }
  const limited = await platform.refuses('API_RATE_LIMIT', () => joinBy(code, from('2001:db8::2')))
  assert.equal(limited.retry_after_s, 30)
  await joinBy(code, from('2001:db8:0:1::1'))
  platform.advance(30_000)
  await joinBy(code, from('2001:db8::1'))

  await platform.endRun(lobby.lobby_id)
  await platform.stopReasonOf(lobby.lobby_id)
  await platform.refuses('MATCHMAKER_LOBBY_STOPPED', () => joinBy(code))
})

test('closed and private lobbies are joined by their id', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const hidden = await game.create({ game_mode: 'secret' })
  const open = await game.find()
  await platform.serverOf(game, open.lobby.lobby_id).call(setLobbyClosed, { body: { is_closed: true } })
  for (const { lobby } of [hidden, open]) {
    const seat = await game.join(lobby.lobby_id)
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
  const { lobby } = await game.find()
  const joins = Array.from({ length: 50 }, (_, index) => game.join(lobby.lobby_id, from(`203.0.113.${index}`)))
  assert.deepEqual(await outcomesOf(joins), { answered: 6, MATCHMAKER_LOBBY_FULL: 44 })
  assert.deepEqual(await game.listedLobbies(), [{ lobby_id: lobby.lobby_id, total_player_count: 7 }])
  assert.notEqual((await game.find()).lobby.lobby_id, lobby.lobby_id)
})

test('the same key gets the same seat again, and a seat that was lost for want of a start is void', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const found = failureOf(game.find())
  const [lobby_id] = await platform.startingLobbies(game)
  const key = withKey()
  const late = failureOf(game.join(lobby_id!, key))
  await until('both to have a seat', async () => (await game.seatsTaken()) === 2)
  platform.advance(50_000)
  assert.equal((await late).code, 'MATCHMAKER_LOBBY_NOT_STARTED')
  assert.equal((await found).code, 'MATCHMAKER_LOBBY_NOT_STARTED')
  await platform.makeReady(game, lobby_id!)
  const seat = await game.join(lobby_id!, key)
  assert.deepEqual(await game.join(lobby_id!, key), seat)
  assert.equal(await game.seatsTaken(), 1)
})
