// An attacker requests login codes for another user's address, as many as possible, and guesses them. The user can still log
// in.
import assert from 'node:assert/strict'
import test from 'node:test'
import { ApiError, completeEmailVerification, startEmailVerification } from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { from, TRUSTING } from '../http/steps.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { startMailServer } from './mail-server.ts'
import { codeIn } from './people.ts'

const VICTIM = 'ada@example.com'

async function start(t: test.TestContext) {
  const mail = await startMailServer(t)
  const env = { ...TRUSTING, MUSTER_SMTP_URL: mail.url, MUSTER_RATE_LIMIT_LOGIN: '20' }
  const platform = await startPlatform(t, { roles: 'api', env })
  const anyone = createClient({ url: platform.api_url })
  return {
    mail,
    ask: (client_ip: string, email = VICTIM) =>
      anyone.call(startEmailVerification, { body: { email }, ...from(client_ip) }),
    complete: async (verification_id: string, code: string) =>
      (await anyone.call(completeEmailVerification, { body: { verification_id, code } })).status,
    has_code: async (email: string) =>
      (await platform.ctx.db.selectFrom('email_verifications').select('email').where('email', '=', email).execute())
        .length > 0,
    mails: () => mail.letters.filter(({ to }) => to === VICTIM).length,
  }
}

/** Returns how many calls succeeded. The others were refused by the rate limit. */
async function answeredOf(calls: readonly Promise<unknown>[]): Promise<number> {
  const outcomes = await Promise.allSettled(calls)
  for (const outcome of outcomes) {
    if (outcome.status === 'fulfilled') continue
    assert.ok(outcome.reason instanceof ApiError && outcome.reason.code === 'API_RATE_LIMIT', String(outcome.reason))
  }
  return outcomes.filter(({ status }) => status === 'fulfilled').length
}

test('requesting or guessing codes of another user does not keep that user from logging in', async (t) => {
  const { mail, ask, complete, mails } = await start(t)
  const attack = (client_ip: string, count: number) => answeredOf(Array.from({ length: count }, () => ask(client_ip)))
  const guessed = await ask('198.51.100.1')
  for (let i = 0; i < 6; i++) await complete(guessed.verification_id, 'AAAAAAAA')
  assert.equal(await attack('198.51.100.1', 8), 4)
  for (let client = 2; client <= 4; client++) assert.equal(await attack(`198.51.100.${client}`, 8), 5)
  assert.equal(mails(), 20)
  // From now on each client gets one code to this address.
  for (let client = 5; client <= 9; client++) assert.equal(await attack(`198.51.100.${client}`, 8), 1)
  assert.equal(mails(), 25)

  const { verification_id } = await ask('203.0.113.7')
  assert.equal(await complete(verification_id, codeIn(mail, VICTIM)), 'switch_identity')
})

test('an IPv6 network counts as a few clients, however many addresses it has', async (t) => {
  const { ask, mails } = await start(t)
  const attack = (addresses: string[]) => answeredOf(addresses.map((client_ip) => ask(client_ip)))
  const of_a_64 = Array.from({ length: 10 }, (_, i) => `2001:db8::${i + 1}`)
  assert.equal(await attack(of_a_64), 5)
  const of_a_56 = Array.from({ length: 40 }, (_, i) => `2001:db8:0:${(i + 1).toString(16)}::1`)
  assert.equal(await attack(of_a_56), 15)
  assert.equal(mails(), 20)
  // The address has had its twenty: sixteen more for the whole of a /48, of which twenty were used.
  const of_a_48 = Array.from({ length: 40 }, (_, i) => `2001:db8:0:${((i + 1) * 256).toString(16)}::1`)
  assert.equal(await attack(of_a_48), 0)
  assert.equal(await attack(['2001:db8:1::1', '203.0.113.7']), 2)
})

test('a few clients whose mails are slow do not keep another client from its mail', async (t) => {
  const { mail, ask, complete, has_code } = await start(t)
  mail.is_silent = true
  const slow = Array.from({ length: 16 }, (_, i) => ask(`198.51.100.${(i % 2) + 1}`, `slow${i}@example.com`))
  const settled = Promise.allSettled(slow)
  await until('the mail server to have all its connections', () => mail.waiting >= 8)
  const asked = ask('203.0.113.7')
  await until('the code of the person to be made', () => has_code(VICTIM))
  mail.is_silent = false
  mail.hangUp()
  const { verification_id } = await asked
  assert.equal(await complete(verification_id, codeIn(mail, VICTIM)), 'switch_identity')
  await settled
})
