// The wall clock of a whole platform is stepped, as by an operator or NTP, while players take seats.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { playerConnected } from '@musterhost/contract'
import { LONG_MS } from '../http/steps.ts'
import { startPlatform } from '../support/platform.ts'
import type { Seat } from '../support/platform-verbs.ts'
import { failureOf } from '../support/refusal.ts'

const MINUTE_MS = 60_000
const STEPS_MS = [10 * MINUTE_MS, -10 * MINUTE_MS, 60 * MINUTE_MS, -60 * MINUTE_MS]

test('a step of the wall clock by ten minutes or an hour neither expires a seat nor keeps one alive', async (t) => {
  const DEADLINE_MS = 2 * MINUTE_MS
  const platform = await startPlatform(t)
  platform.playServers()
  platform.holdClock()
  const game = await platform.game({
    matchmaker: { game_modes: { default: { idle_grace_ms: LONG_MS, player_deadline_ms: DEADLINE_MS } } },
    limits: { max_players_per_client: 100 },
  })
  const connect = (seat: Seat) =>
    platform.serverOf(game, seat.lobby.lobby_id).call(playerConnected, { body: { player_token: seat.player.token } })
  for (const step_ms of STEPS_MS) {
    const [punctual, late] = [await game.find(), await game.find()]
    platform.stepWallClock(step_ms)
    platform.advance(DEADLINE_MS - 1)
    await connect(punctual)
    platform.advance(1)
    assert.equal((await failureOf(connect(late))).code, 'MATCHMAKER_PLAYER_REGISTRATION_EXPIRED')
    assert.equal(await platform.removeReasonOf(platform.playerIdOf(late)), 'expired')
  }
})

test('a step back of the wall clock by an hour does not lock out a client who had reached a rate limit', async (t) => {
  const platform = await startPlatform(t, { env: { MUSTER_RATE_LIMIT_SEATS: '1' } })
  platform.playServers()
  platform.holdClock()
  const game = await platform.game({ matchmaker: { game_modes: { default: { idle_grace_ms: LONG_MS } } } })
  await game.find()
  for (const step_ms of STEPS_MS) {
    platform.stepWallClock(step_ms)
    await platform.refuses('API_RATE_LIMIT', () => game.find())
    platform.advance(MINUTE_MS)
    await game.find()
  }
})
