import assert from 'node:assert/strict'
import test from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import {
  completeAccessTokenVerification,
  completeEmailVerification,
  createGroup,
  getBootstrap,
  inspectAuth,
  listGroups,
  refreshIdentityToken,
  revokeToken,
  startEmailVerification,
} from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { pino } from 'pino'
import { startEmailLogin } from '../../src/identity/email-login.ts'
import { warningOf } from '../../src/supervisor/role-log.ts'
import { refused } from '../cloud/steps.ts'
import { SECRET, SITE_KEY, startCaptchaServer } from '../matchmaker/captcha-server.ts'
import { audited } from '../support/audited.ts'
import { createDatabase } from '../support/database.ts'
import { startPlatform } from '../support/platform.ts'
import { startMailServer } from './mail-server.ts'
import { codeIn, hub, logIn, refresh, say } from './people.ts'

const MINUTE_MS = 60_000
const POLL_MS = 10
const POLLS_MAX = 1_000

test('logging in by e-mail', async (t) => {
  const mail = await startMailServer(t)
  const platform = await startPlatform(t, {
    roles: 'api',
    env: { MUSTER_SMTP_URL: mail.url, MUSTER_RATE_LIMIT_LOGIN: '0' },
  })
  const anyone = createClient({ url: platform.api_url })
  const start = (email: string) => anyone.call(startEmailVerification, { body: { email } })
  const complete = async (verification_id: string, code: string) => {
    const said = await say(platform, completeEmailVerification, { verification_id, code })
    return { status: said.body.status, logged_in: said.cookie !== null }
  }
  const users = async () => (await platform.ctx.db.selectFrom('users').select('email').execute()).length

  await t.test('the code of the mail logs in once, in upper or lower case, with or without spaces', async () => {
    const { verification_id } = await start('Ada.Lovelace@Example.com')
    const code = codeIn(mail, 'ada.lovelace@example.com')
    assert.match(code, /^[A-NP-Z1-9]{8}$/)
    const typed = ` ${code.slice(0, 4).toLowerCase()}-${code.slice(4)} `
    assert.deepEqual(await complete(verification_id, typed), { status: 'switch_identity', logged_in: true })
    assert.deepEqual(await complete(verification_id, code), { status: 'already_complete', logged_in: false })
  })

  await t.test('the same address in any case is the same user, and another address is another user', async () => {
    const before = await users()
    const first = await logIn(platform, mail, 'grace@example.com')
    const { verification_id } = await start('GRACE@example.com')
    const said = await say(platform, completeEmailVerification, {
      verification_id,
      code: codeIn(mail, 'grace@example.com'),
    })
    assert.equal((await refresh(platform, said.cookie)).body.identity_id, first.user_id)
    assert.notEqual((await logIn(platform, mail, 'grace@example.org')).user_id, first.user_id)
    assert.equal(await users(), before + 2)
  })

  await t.test('four wrong guesses close a code, even for the right one', async () => {
    const before = await users()
    const { verification_id } = await start('guess@example.com')
    for (let guess = 0; guess < 4; guess++) {
      assert.deepEqual(await complete(verification_id, 'OOOOOOOO'), { status: 'incorrect', logged_in: false })
    }
    const code = codeIn(mail, 'guess@example.com')
    assert.deepEqual(await complete(verification_id, code), { status: 'too_many_attempts', logged_in: false })
    assert.equal(await users(), before)
  })

  await t.test('of many guesses at once only four count', async () => {
    const { verification_id } = await start('race@example.com')
    const answers = await Promise.all(Array.from({ length: 20 }, () => complete(verification_id, 'OOOOOOOO')))
    assert.equal(answers.filter(({ status }) => status === 'incorrect').length, 4)
  })

  await t.test('of two requests with the same code at once, one is logged in', async () => {
    const { verification_id } = await start('twice@example.com')
    const code = codeIn(mail, 'twice@example.com')
    const answers = await Promise.all([complete(verification_id, code), complete(verification_id, code)])
    assert.deepEqual(answers.map(({ status }) => status).sort(), ['already_complete', 'switch_identity'])
    assert.equal(answers.filter(({ logged_in }) => logged_in).length, 1)
  })

  await t.test('a code is valid for its own verification only, and an unknown verification has expired', async () => {
    const first = await start('own@example.com')
    const code = codeIn(mail, 'own@example.com')
    const second = await start('own@example.com')
    assert.equal((await complete(second.verification_id, code)).status, 'incorrect')
    const unknown = first.verification_id.replace(/.{4}$/, '0000')
    assert.deepEqual(await complete(unknown, code), { status: 'expired', logged_in: false })
    assert.equal((await complete(first.verification_id, code)).status, 'switch_identity')
  })

  await t.test('after a quarter of an hour a code has expired', async () => {
    const { verification_id } = await start('late@example.com')
    platform.advance(15 * MINUTE_MS)
    const code = codeIn(mail, 'late@example.com')
    assert.deepEqual(await complete(verification_id, code), { status: 'expired', logged_in: false })
  })

  await t.test(
    'an address gets five codes in a quarter of an hour, known or not, and the answers are alike',
    async () => {
      await logIn(platform, mail, 'known@example.com')
      platform.advance(15 * MINUTE_MS)
      const told = async (email: string) => {
        const starts = await Promise.allSettled(Array.from({ length: 8 }, () => start(email)))
        assert.equal(starts.filter(({ status }) => status === 'fulfilled').length, 5)
        const error = await refused('API_RATE_LIMIT', start(email))
        assert.ok(error.retry_after_s !== undefined && error.retry_after_s > 800 && error.retry_after_s <= 900)
        return { status: error.status, message: error.message, metadata: error.metadata }
      }
      assert.deepEqual(await told('known@example.com'), await told('unknown@example.com'))
      platform.advance(15 * MINUTE_MS)
      await start('known@example.com')
    },
  )

  await t.test('an invalid address is refused, and no mail is sent', async () => {
    const before = mail.letters.length
    const bad = [
      '',
      'a',
      '@b',
      'a@',
      'a b@c.d',
      'a@b\r\nBcc: x@y.z',
      'a@b,c@d.e',
      '"a"@b.c',
      'ü@b.c',
      'a@-b',
      '<a@b.c>',
    ]
    for (const email of [...bad, `${'a'.repeat(65)}@b.c`, `a@${'b.'.repeat(130)}c`]) {
      const error = await refused('VALIDATION_ERROR', start(email))
      assert.deepEqual((error.metadata.errors as { path: string[] }[])[0]?.path, ['email'], email)
    }
    assert.equal(mail.letters.length, before)
  })

  await t.test('when the mail server refuses, or too many mails are under way, the client must retry', async () => {
    mail.refuses = true
    await refused('API_NOT_AVAILABLE', start('refused@example.com'))
    mail.refuses = false
    mail.is_silent = true
    const stuck = Array.from({ length: 8 }, (_, index) => start(`stuck${index}@example.com`))
    const settled = Promise.allSettled(stuck)
    // Each of the eight connections waits before the text of its mail.
    for (let tries = 0; mail.waiting < 8; tries++) {
      assert.ok(tries < POLLS_MAX, `${mail.waiting} mails are under way.`)
      await delay(POLL_MS)
    }
    const error = await refused('API_NOT_AVAILABLE', start('crowd@example.com'))
    assert.ok(error.retry_after_s !== undefined)
    // Further requests do not wait for the mail server.
    assert.ok((await platform.client.call(listGroups, {})).groups.length >= 0)
    mail.is_silent = false
    mail.hangUp()
    for (const { status } of await settled) assert.equal(status, 'rejected')
    await logIn(platform, mail, 'after@example.com')
  })
})

test('without a mail server the supervisor shows the code on the terminal', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
  const { verification_id } = await startEmailLogin({ ...audited(platform.ctx), log }, '127.0.0.1', 'me@example.com')
  const shown = warningOf(lines[0] ?? '') ?? ''
  const code = /^The login code for me@example\.com is ([A-NP-Z1-9]{8})\./.exec(shown)?.[1]
  const said = await say(platform, completeEmailVerification, { verification_id, code })
  assert.equal(said.body.status, 'switch_identity')
})

test('in production without a mail server there is no login by e-mail, and bootstrap reports it', async (t) => {
  const platform = await startPlatform(t, {
    roles: 'api',
    env: {
      MUSTER_DOMAIN_MAIN: 'muster.example',
      MUSTER_DOMAIN_CDN: 'pages.test',
      MUSTER_DOMAIN_JOB: 'lobbies.invalid',
      MUSTER_PUBLIC_SCHEME: 'http',
    },
  })
  const anyone = createClient({ url: platform.api_url })
  assert.deepEqual((await anyone.call(getBootstrap, {})).login_methods, { access_token: true, email: false })
  await refused('API_FORBIDDEN', anyone.call(startEmailVerification, { body: { email: 'a@b.c' } }))
  assert.deepEqual(await platform.ctx.db.selectFrom('email_verifications').selectAll().execute(), [])
})

test('where the operator has configured Turnstile, a code needs an unused captcha of the main domain', async (t) => {
  const mail = await startMailServer(t)
  const provider = await startCaptchaServer(t)
  const platform = await startPlatform(t, {
    roles: 'api',
    env: {
      MUSTER_SMTP_URL: mail.url,
      MUSTER_RATE_LIMIT_LOGIN: '0',
      MUSTER_TURNSTILE_URL: provider.url,
      MUSTER_LOGIN_TURNSTILE_SITE_KEY: SITE_KEY,
      MUSTER_LOGIN_TURNSTILE_SECRET_KEY: SECRET,
    },
  })
  const anyone = createClient({ url: platform.api_url })
  const start = (captcha?: { turnstile?: { client_response: string } }) =>
    anyone.call(startEmailVerification, { body: { email: 'a@b.c', ...(captcha && { captcha }) } })
  const startWith = (client_response: string) => start({ turnstile: { client_response } })
  const told = await anyone.call(getBootstrap, {})
  assert.deepEqual(told.captcha, { turnstile: { site_key: SITE_KEY } })
  assert.deepEqual(told.login_methods, { access_token: true, email: true })

  for (const without of [undefined, {}]) {
    const { metadata } = await refused('CAPTCHA_CAPTCHA_INVALID', start(without))
    assert.deepEqual(metadata, { turnstile: { site_key: SITE_KEY } })
  }
  const { metadata } = await refused('CAPTCHA_CAPTCHA_FAILED', startWith('made up'))
  assert.equal(metadata.reason, 'response')
  const elsewhere = await refused('CAPTCHA_CAPTCHA_FAILED', startWith(provider.solve({ hostname: 'other.example' })))
  assert.equal(elsewhere.metadata.reason, 'hostname')
  provider.misbehave((res) => res.writeHead(500).end())
  await refused('CAPTCHA_PROVIDER_FAILED', startWith(provider.solve()))
  provider.misbehave(null)
  assert.equal(mail.letters.length, 0)

  const solved = provider.solve()
  const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => startWith(solved)))
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
  assert.equal(mail.letters.length, 1)
  assert.equal(provider.asked.at(-1)?.remoteip, '127.0.0.1')
})

test('the codes of one client are limited', async (t) => {
  const mail = await startMailServer(t)
  const env = { MUSTER_SMTP_URL: mail.url, MUSTER_RATE_LIMIT_LOGIN: '3' }
  const platform = await startPlatform(t, { roles: 'api', env })
  const anyone = createClient({ url: platform.api_url })
  const starts = await Promise.allSettled(
    Array.from({ length: 6 }, (_, index) => anyone.call(startEmailVerification, { body: { email: `a${index}@b.c` } })),
  )
  assert.equal(starts.filter(({ status }) => status === 'fulfilled').length, 3)
  assert.equal(mail.letters.length, 3)
  platform.advance(15 * MINUTE_MS)
  await logIn(platform, mail, 'a1@b.c')
})

test('sessions', async (t) => {
  const mail = await startMailServer(t)
  const database_url = await createDatabase(t)
  const platform = await startPlatform(t, {
    roles: 'api',
    database_url,
    env: { MUSTER_SMTP_URL: mail.url, MUSTER_RATE_LIMIT_LOGIN: '0' },
  })

  await t.test(
    'a user token is good for a quarter of an hour, and its session for as long as it is refreshed',
    async () => {
      const person = await logIn(platform, mail, 'a@example.com')
      assert.ok(person.token.startsWith('usr.'))
      const { agent } = await person.client.call(inspectAuth, {})
      assert.deepEqual(agent, { identity: { identity_id: person.user_id } })
      let cookie: string | null = person.cookie
      for (let month = 0; month < 6; month++) {
        platform.advance(30 * 24 * 60 * MINUTE_MS)
        await refused('TOKEN_EXPIRED', person.client.call(inspectAuth, {}))
        const refreshed = await refresh(platform, cookie)
        assert.equal(refreshed.body.identity_id, person.user_id)
        cookie = refreshed.cookie
      }
      platform.advance(90 * 24 * 60 * MINUTE_MS)
      assert.equal((await refresh(platform, cookie)).body.code, 'TOKEN_REFRESH_NOT_FOUND')
    },
  )

  await t.test(
    'two tabs that refresh at once, or a lost answer, keep the session; a stolen token ends it',
    async () => {
      const person = await logIn(platform, mail, 'b@example.com')
      const [first, second] = await Promise.all([refresh(platform, person.cookie), refresh(platform, person.cookie)])
      assert.equal(first.cookie, second.cookie)
      assert.notEqual(first.cookie, person.cookie)
      const again = await refresh(platform, first.cookie)
      assert.equal(again.status, 200)
      platform.advance(MINUTE_MS)
      const stolen = await refresh(platform, first.cookie)
      assert.equal(stolen.status, 401)
      assert.equal(stolen.body.code, 'TOKEN_REFRESH_NOT_FOUND')
      assert.equal((await refresh(platform, again.cookie)).body.code, 'TOKEN_REFRESH_NOT_FOUND')
      const last = createClient({ url: platform.api_url, token: String(again.body.token) })
      await refused('TOKEN_REVOKED', last.call(inspectAuth, {}))
    },
  )

  await t.test('logging out ends the session and its tokens at once, and no other session', async () => {
    const here = await logIn(platform, mail, 'c@example.com')
    const there = await logIn(platform, mail, 'c@example.com')
    assert.equal(here.user_id, there.user_id)
    const out = await refresh(platform, here.cookie, { logout: true })
    assert.deepEqual(out.body, {})
    assert.match(out.set_cookie ?? '', /^muster_session=; .*Max-Age=0/)
    await refused('TOKEN_REVOKED', here.client.call(inspectAuth, {}))
    assert.equal((await refresh(platform, here.cookie)).status, 401)
    await there.client.call(inspectAuth, {})
    assert.equal((await refresh(platform, there.cookie)).status, 200)
  })

  await t.test('scripts cannot read the cookie, and only the page of the hub may use it', async () => {
    const person = await logIn(platform, mail, 'd@example.com')
    const cookie = person.cookie
    const { set_cookie } = await refresh(platform, cookie)
    assert.match(set_cookie ?? '', /^muster_session=[^;]+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=7776000$/)
    const attempts: [Record<string, string>, string][] = [
      [{ cookie }, '{}'],
      [{ cookie, origin: 'https://evil.example' }, '{}'],
      [{ cookie, origin: 'null' }, '{}'],
      [{ cookie, origin: `${hub(platform).origin}.evil.example` }, '{}'],
      [{ ...hub(platform, cookie), 'content-type': 'text/plain' }, '{}'],
      [{ ...hub(platform, cookie), 'content-type': 'application/x-www-form-urlencoded' }, 'logout=true'],
      [hub(platform, cookie), ''],
      [hub(platform, `${cookie}; ${cookie}`), '{}'],
      [hub(platform, `${cookie.slice(0, -3)}AAA`), '{}'],
      [hub(platform, 'muster_session=x'), '{}'],
      [hub(platform), '{}'],
    ]
    for (const [headers, body] of attempts) {
      const said = await say(platform, refreshIdentityToken, body, headers)
      assert.ok([400, 401, 403, 415].includes(said.status), JSON.stringify([headers, said.body]))
      assert.equal(said.cookie, null)
    }
    // No other operation reads the cookie.
    const response = await fetch(`${platform.api_url}/group/groups`, { headers: hub(platform, cookie) })
    assert.equal(response.status, 401)
    // A foreign page cannot log a user in as another user.
    const planted = await say(
      platform,
      completeAccessTokenVerification,
      { access_token: platform.token },
      { origin: 'https://evil.example' },
    )
    assert.equal(planted.body.code, 'API_FORBIDDEN')
    assert.equal(planted.cookie, null)
  })

  await t.test('the operator logs in with the access token, and calls as an administrator', async () => {
    const said = await say(platform, completeAccessTokenVerification, { access_token: platform.token })
    assert.deepEqual(said.body, {})
    const refreshed = await refresh(platform, said.cookie)
    const operator = createClient({ url: platform.api_url, token: String(refreshed.body.token) })
    const { agent } = await operator.call(inspectAuth, {})
    assert.deepEqual(agent, {
      access_token: { name: 'test' },
      identity: { identity_id: refreshed.body.identity_id },
    })
    const { group_id } = await operator.call(createGroup, { body: { display_name: 'Mine' } })
    const { groups } = await operator.call(listGroups, {})
    const mine = groups.find((group) => group.group_id === group_id)
    assert.equal(mine?.role, 'owner')
    assert.equal(mine?.owner_identity_id, refreshed.body.identity_id)

    // The session ends with the access token that opened it.
    const options = { now_ms: platform.ctx.now(), lifetime_ms: 60 * MINUTE_MS }
    const access_token = platform.ctx.keys.issue({ kind: 'access', name: 'second' }, options)
    const second = await say(platform, completeAccessTokenVerification, { access_token })
    const again = await refresh(platform, second.cookie)
    const token_id = platform.ctx.keys.verify(access_token, platform.ctx.now()).token_id
    await platform.client.call(revokeToken, { params: { token_id } })
    const ended = createClient({ url: platform.api_url, token: String(again.body.token) })
    await refused('TOKEN_REVOKED', ended.call(inspectAuth, {}))
    assert.equal((await refresh(platform, again.cookie)).status, 401)
    const late = await say(platform, completeAccessTokenVerification, { access_token })
    assert.equal(late.body.code, 'TOKEN_REVOKED')

    const person = await logIn(platform, mail, 'e@example.com')
    const wrong: [string, string][] = [
      [person.token, 'TOKEN_INVALID'],
      ['nonsense', 'TOKEN_INVALID'],
      [platform.ctx.keys.issue({ kind: 'access', name: 'x' }, { now_ms: 0, lifetime_ms: 1 }), 'TOKEN_EXPIRED'],
    ]
    for (const [access_token, code] of wrong) {
      const refusal = await say(platform, completeAccessTokenVerification, { access_token })
      assert.equal(refusal.body.code, code)
      assert.equal(refusal.cookie, null)
    }
  })

  await t.test('the fifty most recently used sessions of one user stay', async () => {
    const person = await logIn(platform, mail, 'many@example.com')
    const { ctx } = platform
    const now = ctx.now()
    const rows = Array.from({ length: 60 }, (_, index) => ({
      session_id: `00000000-0000-7000-8000-0000000000${String(index).padStart(2, '0')}`,
      user_id: person.user_id,
      create_ts: new Date(now),
      refresh_ts: new Date(now - 1_000 - index),
      expire_ts: new Date(now + MINUTE_MS),
    }))
    await ctx.db.insertInto('user_sessions').values(rows).execute()
    await logIn(platform, mail, 'many@example.com')
    const left = await ctx.db
      .selectFrom('user_sessions')
      .select('session_id')
      .where('user_id', '=', person.user_id)
      .execute()
    assert.equal(left.length, 50)
    await person.client.call(inspectAuth, {})
  })

  await t.test('a restart of the platform ends no session', async (t) => {
    const person = await logIn(platform, mail, 'f@example.com')
    await platform.close()
    const { data_dir } = platform
    // The test moved the clock of the first platform, and the second one begins at the same time.
    const ahead_ms = platform.ctx.now() - Date.now()
    const later = await startPlatform(t, {
      roles: 'api',
      database_url,
      data_dir,
      env: { MUSTER_SMTP_URL: mail.url, MUSTER_RATE_LIMIT_LOGIN: '0' },
    })
    later.advance(ahead_ms)
    await createClient({ url: later.api_url, token: person.token }).call(inspectAuth, {})
    const refreshed = await refresh(later, person.cookie)
    assert.equal(refreshed.body.identity_id, person.user_id, JSON.stringify(refreshed.body))
  })
})
