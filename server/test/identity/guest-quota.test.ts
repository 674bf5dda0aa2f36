import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError, findLobby, getSelfProfile, setupIdentity } from '@musterhost/contract'
import { removeOld } from '../../src/database/remove-old.ts'
import { UNUSED_GUESTS } from '../../src/database/unused-guests.ts'
import { from, LONG_MS, TRUSTING } from '../http/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'

const HOUR_MS = 60 * 60_000
const AT_ONCE = 512

const guest = (game: TestGame, client_ip: string, existing_identity_token?: string) =>
  game.player.call(setupIdentity, {
    body: existing_identity_token === undefined ? {} : { existing_identity_token },
    ...from(client_ip),
  })

/** Returns how many guests were made. The others were refused with the code. */
async function made(calls: readonly Promise<unknown>[], code: string): Promise<number> {
  const outcomes = await Promise.allSettled(calls)
  for (const outcome of outcomes) {
    if (outcome.status === 'fulfilled') continue
    assert.ok(outcome.reason instanceof ApiError && outcome.reason.code === code, String(outcome.reason))
  }
  return outcomes.filter(({ status }) => status === 'fulfilled').length
}

async function guestsOf({ ctx }: Platform): Promise<string[]> {
  const rows = await ctx.db.selectFrom('identities').select('identity_id').execute()
  return rows.map(({ identity_id }) => identity_id)
}

test('a client makes a limited number of guests, and another client is not affected', async (t) => {
  const platform = await startPlatform(t, { env: { ...TRUSTING, MUSTER_RATE_LIMIT_GUESTS: '2' } })
  const game = await platform.game()
  platform.holdClock()
  const first = await guest(game, '198.51.100.1')
  const attack = Array.from({ length: AT_ONCE + 100 }, () => guest(game, '198.51.100.1'))
  assert.equal(await made(attack, 'API_RATE_LIMIT'), AT_ONCE - 1)
  await guest(game, '203.0.113.7')
  // A returning guest does not count as a new one.
  assert.deepEqual((await guest(game, '198.51.100.1', first.identity_token)).identity, first.identity)
  platform.advance(60_000)
  assert.equal(
    await made(
      [1, 2, 3].map(() => guest(game, '198.51.100.1')),
      'API_RATE_LIMIT',
    ),
    2,
  )
})

test('a namespace full of unused guests makes room for new ones, and keeps guests that play', async (t) => {
  const GUESTS = 20
  const platform = await startPlatform(t, { env: { ...TRUSTING, MUSTER_QUOTA_GUESTS: String(GUESTS) } })
  platform.playServers()
  const game_modes = { default: { idle_grace_ms: LONG_MS } }
  const game = await platform.game({ matchmaker: { game_modes } })
  const player = await guest(game, '203.0.113.7')
  await platform.as(player.identity_token).call(findLobby, { body: { game_modes: ['default'] } })
  await until('the player to be noted', async () => {
    const { seen_ts, create_ts } = await platform.ctx.db
      .selectFrom('identities')
      .select(['seen_ts', 'create_ts'])
      .executeTakeFirstOrThrow()
    return seen_ts > create_ts
  })
  const attack = Array.from({ length: 30 }, (_, i) => guest(game, `198.51.100.${i % 3}`))
  assert.equal(await made(attack, 'QUOTA_REACHED'), GUESTS - 1)
  const refusal = await platform.refuses('QUOTA_REACHED', () => guest(game, '203.0.113.8'))
  assert.deepEqual(refusal.metadata, { quota: 'guests', limit: GUESTS, used: GUESTS })
  platform.advance(HOUR_MS + 1)
  const late = await guest(game, '203.0.113.8')
  const left = await guestsOf(platform)
  assert.deepEqual(left.sort(), [player.identity.identity_id, late.identity.identity_id].sort())
})

test('a guest that never returned and never played is removed after a day, any other is kept', async (t) => {
  const platform = await startPlatform(t, { env: TRUSTING })
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: { default: { idle_grace_ms: LONG_MS } } } })
  const [unused, playing, returning] = [
    await guest(game, '203.0.113.1'),
    await guest(game, '203.0.113.2'),
    await guest(game, '203.0.113.3'),
  ]
  await platform.as(playing.identity_token).call(findLobby, { body: { game_modes: ['default'] } })
  platform.advance(HOUR_MS)
  await guest(game, '203.0.113.3', returning.identity_token)
  const kept = [playing, returning].map(({ identity }) => identity.identity_id).sort()
  await until('the player to be noted', async () => {
    const rows = await platform.ctx.db.selectFrom('identities').selectAll().execute()
    return rows.filter(({ seen_ts, create_ts }) => seen_ts > create_ts).length === kept.length
  })
  platform.advance(23 * HOUR_MS)
  assert.equal(await removeOld(platform.ctx.pool, UNUSED_GUESTS, platform.ctx.now() - 24 * HOUR_MS), 1)
  assert.deepEqual((await guestsOf(platform)).sort(), kept)
  await platform.as(playing.identity_token).call(getSelfProfile, {})
  // Its device receives another guest.
  const again = await guest(game, '203.0.113.1', unused.identity_token)
  assert.notEqual(again.identity.identity_id, unused.identity.identity_id)
})
