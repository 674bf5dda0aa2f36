// A client makes as many parties as it can, and plays in none.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { ApiError, createParty, getParty, joinParty } from '@musterhost/contract'
import { from, TRUSTING } from '../http/steps.ts'
import { startPlatform } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'

const CLIENT_MEMBERS = 512
const MORE = 20
const AT_ONCE = 32
const DAY_MS = 24 * 60 * 60_000

test('a client that fills a namespace with parties stops at its share, and they are gone after half an hour', async (t) => {
  const platform = await startPlatform(t, { env: TRUSTING })
  const { namespace_id } = await platform.game()
  const player = () => {
    const subject = { kind: 'game_user', identity_id: randomUUID(), namespace_id } as const
    return platform.as(platform.ctx.keys.issue(subject, { now_ms: platform.ctx.now(), lifetime_ms: DAY_MS }))
  }
  const attackers = Array.from({ length: CLIENT_MEMBERS + MORE }, player)
  const codes: string[] = []
  const queue = [...attackers]
  const attack = async (): Promise<void> => {
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      await next.call(createParty, from('198.51.100.1')).catch((error: unknown) => {
        assert.ok(error instanceof ApiError)
        codes.push(error.code)
      })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, attack))
  assert.deepEqual(
    codes,
    Array.from({ length: MORE }, () => 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE'),
  )

  const [honest, friend] = [player(), player()]
  const { party } = await honest.call(createParty, from('203.0.113.7'))
  await friend.call(joinParty, { body: { code: party.code }, ...from('203.0.113.8') })
  await platform.refuses('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', () =>
    player().call(joinParty, { body: { code: party.code }, ...from('198.51.100.1') }),
  )

  // The honest players' page reads their party, the attacker reads none.
  platform.advance(20 * 60_000)
  assert.equal((await honest.call(getParty, {})).party.members.length, 2)
  platform.advance(15 * 60_000)
  await until('the unused parties to end', async () => {
    const rows = await platform.ctx.db.selectFrom('parties').select('party_id').where('end_ts', 'is', null).execute()
    return rows.length === 1
  })
  assert.equal((await failureOf(attackers[0]!.call(getParty, {}))).code, 'PARTY_NOT_FOUND')
  assert.equal((await friend.call(getParty, {})).party.party_id, party.party_id)
  await player().call(createParty, from('198.51.100.1'))
})
