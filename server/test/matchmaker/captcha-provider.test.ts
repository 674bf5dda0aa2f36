// The captcha provider: what happens when it fails, and for which page, action and keys its response is accepted.
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { createGameNamespaceTokenDevelopment, revokeToken } from '@musterhost/contract'
import { newId } from '../../src/ids.ts'
import { from, TRUSTING, withKey } from '../http/steps.ts'
import { startPlatform, type TestGame } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { gameWith, KEYS, MANY, settings, startWithCaptcha, turnstile } from './captcha-games.ts'
import { HCAPTCHA_KEYS, HCAPTCHA_TEST, SITE_KEY, startCaptchaServer, startHcaptchaServer } from './captcha-server.ts'

const failures: [string, (res: ServerResponse) => void][] = [
  ['500', (res) => res.writeHead(500).end('{"success":true}')],
  ['a page', (res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<h1>success</h1>')],
  ['a word', (res) => res.end('{"success":"true"}')],
  ['nothing', (res) => res.end('null')],
  ['a redirect', (res) => res.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()],
  ['10 MB', (res) => res.end(`{"success":true,"x":"${'x'.repeat(10_000_000)}"}`)],
  ['a hang-up', (res) => res.destroy()],
  ['an error of its own', (res) => res.end('{"success":false,"error-codes":["internal-error"]}')],
]

test('a provider that fails lets nobody in and takes nobody out, and is left alone after a while', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform, { requests_before_reverify: 100 })
  await game.find(turnstile(server.solve()), from('192.0.2.1'))
  const refusedWith = async (what: string) => {
    const error = await platform.refuses('CAPTCHA_PROVIDER_FAILED', () =>
      game.find(turnstile(`x${server.asked.length}`)),
    )
    assert.equal(error.status, 503, what)
    assert.ok(error.retry_after_s! >= 1 && error.retry_after_s! <= 10, what)
  }
  for (const [what, misbehave] of failures) {
    server.misbehave(misbehave)
    await refusedWith(what)
    // An answer in between: it is not yet left alone.
    server.misbehave(null)
    await failureOf(game.find(turnstile(`y${server.asked.length}`)))
  }
  await game.find({}, from('192.0.2.1'))
  server.misbehave((res) => res.writeHead(500).end())
  for (let count = 0; count < 5; count++) await refusedWith('five in a row')
  const asked = server.asked.length
  await refusedWith('left alone')
  assert.equal(server.asked.length, asked)
  server.misbehave(null)
  platform.advance(10_000)
  await game.find(turnstile(server.solve()))
  assert.equal(server.asked.length, asked + 1)
})

test('a provider that says nothing, or a byte a second, is waited for for five seconds', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform)
  const timers: NodeJS.Timeout[] = []
  t.after(() => timers.forEach(clearInterval))
  let asked = 0
  server.misbehave((res) => {
    if (asked++ === 0) return
    res.writeHead(200)
    timers.push(setInterval(() => res.write(' '), 200))
  })
  const begin = performance.now()
  const key = withKey()
  const response = server.solve()
  const errors = await Promise.all([
    failureOf(game.find(turnstile(response), key)),
    failureOf(game.find(turnstile('b'))),
  ])
  assert.deepEqual(
    errors.map((error) => error.code),
    ['CAPTCHA_PROVIDER_FAILED', 'CAPTCHA_PROVIDER_FAILED'],
  )
  assert.ok(performance.now() - begin < 8_000)
  // The provider did not check the response: the same request may come with it again, and no other.
  server.misbehave(null)
  await platform.refuses('CAPTCHA_CAPTCHA_FAILED', () => game.find(turnstile(response)))
  await game.find(turnstile(response), key)
})

test('a secret that the provider does not accept lets nobody in, and leaves the provider to the other games', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const wrong = await gameWith(platform, { turnstile: { site_key: SITE_KEY, secret_key: 'wrong' } })
  for (let count = 0; count < 6; count++) {
    const error = await platform.refuses('CAPTCHA_PROVIDER_FAILED', () => wrong.find(turnstile(`z${count}`)))
    assert.equal(error.retry_after_s, 60)
  }
  await (await gameWith(platform)).find(turnstile(server.solve()))
})

test('published test keys pass in development, with a response that is always the same', async (t) => {
  const { platform } = await startWithCaptcha(t)
  const secret_key = '1x0000000000000000000000000000000AA'
  const game = await gameWith(platform, { requests_before_reverify: 0, turnstile: { site_key: SITE_KEY, secret_key } })
  for (let count = 0; count < 3; count++) await game.find(turnstile('XXXX.DUMMY.TOKEN.XXXX'))
  await platform.refuses('CAPTCHA_CAPTCHA_REQUIRED', () => game.find())
})

/** In production, where no page is on this machine. */
const PRODUCTION = {
  MUSTER_DOMAIN_MAIN: 'muster.example',
  MUSTER_DOMAIN_CDN: 'sites.test',
  MUSTER_DOMAIN_JOB: 'lobbies.invalid',
}

test('a captcha that was solved on a page of somebody else is refused, and is spent', async (t) => {
  const server = await startCaptchaServer(t)
  const platform = await startPlatform(t, { env: { ...settings(server), ...PRODUCTION } })
  platform.playServers()
  const [game, other] = [await gameWith(platform), await gameWith(platform)]
  const { ctx, client } = platform
  const addDomain = (namespace_id: string, domain: string, verification_status: 'active' | 'pending') =>
    ctx.db
      .insertInto('domains')
      .values({
        ...{ domain_id: newId(ctx.now()), namespace_id, domain, txt_value: domain, cname_label: domain },
        ...{ verification_status, verification_errors: '[]' },
      })
      .execute()
  await addDomain(game.namespace_id, 'play.example.com', 'active')
  await addDomain(game.namespace_id, 'soon.example.com', 'pending')
  await addDomain(other.namespace_id, 'other.example.com', 'active')
  const params = { game_id: game.game_id, namespace_id: game.namespace_id }
  const body = { hostname: 'Dev.example.com', ports: {} }
  const { token } = await client.call(createGameNamespaceTokenDevelopment, { params, body })
  const solvedOn = (hostname?: string) => turnstile(server.solve(hostname === undefined ? {} : { hostname }))

  const strangers = [
    ...['evil.example', 'localhost', '127.0.0.1', 'game.localhost', 'sites.test', 'muster.example', ''],
    ...['soon.example.com', 'other.example.com', 'x.play.example.com', 'example.com', 'not-provided'],
    ...[`${other.name_id}.sites.test`, `${game.name_id}--staging.sites.test`, `x.${game.name_id}.sites.test`],
  ]
  for (const hostname of [...strangers, undefined]) {
    const wish = solvedOn(hostname)
    const error = await platform.refuses('CAPTCHA_CAPTCHA_FAILED', () => game.find(wish))
    assert.deepEqual(error.metadata, { turnstile: { site_key: SITE_KEY }, reason: 'hostname' }, String(hostname))
    const again = await platform.refuses('CAPTCHA_CAPTCHA_FAILED', () => game.find(wish))
    assert.equal(again.metadata.reason, 'response', String(hostname))
  }

  const own = [
    ...[`${game.name_id}.sites.test`, `${game.name_id}--prod.sites.test`, 'play.example.com', 'PLAY.example.com'],
    'dev.example.com',
  ]
  for (const [index, hostname] of own.entries()) await game.find(solvedOn(hostname), from(`192.0.2.${index}`))

  await client.call(revokeToken, { params: { token_id: ctx.keys.verify(token, ctx.now()).token_id } })
  await platform.refuses('CAPTCHA_CAPTCHA_FAILED', () => game.find(solvedOn('dev.example.com'), from('192.0.2.99')))
})

test('on a laptop a captcha may be solved on its own pages, and on no others', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform)
  const local = ['localhost', '127.0.0.1', `${game.name_id}.cdn.localhost`, 'app.localhost']
  for (const [index, hostname] of local.entries())
    await game.find(turnstile(server.solve({ hostname })), from(`192.0.2.${index}`))
  for (const hostname of ['evil.example', 'localhost.evil.example', '127.0.0.2', 'xlocalhost']) {
    const wish = turnstile(server.solve({ hostname }))
    await platform.refuses('CAPTCHA_CAPTCHA_FAILED', () => game.find(wish, from('192.0.2.99')))
  }
})

test('where the version names an action, a captcha that was solved for another one is refused', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform, { turnstile: { ...KEYS, action: 'find-seat' } })
  const required = await platform.refuses('CAPTCHA_CAPTCHA_REQUIRED', () => game.find())
  assert.deepEqual(required.metadata, { turnstile: { site_key: SITE_KEY, action: 'find-seat' } })
  for (const action of ['login', 'Find-Seat', '', undefined]) {
    const wish = turnstile(server.solve({ hostname: 'localhost', ...(action !== undefined && { action }) }))
    const error = await platform.refuses('CAPTCHA_CAPTCHA_FAILED', () => game.find(wish))
    assert.equal(error.metadata.reason, 'action')
  }
  await game.find(turnstile(server.solve({ hostname: 'localhost', action: 'find-seat' })))
  const any = await gameWith(platform)
  await any.find(turnstile(server.solve({ hostname: 'localhost', action: 'login' })))
  const invalid = await failureOf(gameWith(platform, { turnstile: { ...KEYS, action: 'find seat' } }))
  assert.equal(invalid.code, 'VALIDATION_ERROR')
})

test('a response of more than 2,048 characters is refused, and its provider is not asked', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform)
  for (const provider of ['turnstile', 'hcaptcha']) {
    const wish = { captcha: { [provider]: { client_response: 'x'.repeat(2_049) } } }
    await platform.refuses('VALIDATION_ERROR', () => game.find(wish))
  }
  assert.equal(server.asked.length, 0)
  await platform.refuses('CAPTCHA_CAPTCHA_FAILED', () => game.find(turnstile('x'.repeat(2_048))))
  assert.equal(server.asked.length, 1)
})

test('an hCaptcha lets in who solved it on a page of the namespace, and nobody else', async (t) => {
  const server = await startHcaptchaServer(t)
  const platform = await startPlatform(t, { env: { ...TRUSTING, MUSTER_HCAPTCHA_URL: server.url } })
  platform.playServers()
  const gameOf = (hcaptcha: { site_key: string; secret_key: string }) => {
    const captcha = { requests_before_reverify: 1, verification_ttl: 240_000, hcaptcha }
    return platform.game({ matchmaker: { game_modes: { default: { max_players: 256 } }, captcha }, limits: MANY })
  }
  const hcaptcha = (client_response: string) => ({ captcha: { hcaptcha: { client_response } } })
  const reasonOf = async (game: TestGame, response: string) => {
    const error = await platform.refuses('CAPTCHA_CAPTCHA_FAILED', () => game.find(hcaptcha(response)))
    return error.metadata.reason
  }

  await t.test("the provider's test keys take its test response", async () => {
    const { site_key, secret_key, response } = HCAPTCHA_TEST
    const game = await gameOf({ site_key, secret_key })
    const required = await platform.refuses('CAPTCHA_CAPTCHA_REQUIRED', () => game.find())
    assert.deepEqual(required.metadata, { hcaptcha: { site_id: site_key, site_key } })
    assert.equal(await reasonOf(game, 'of-a-robot'), 'response')
    await game.find(hcaptcha(response), from('192.0.2.7'))
    const form = { secret: secret_key, response, remoteip: '192.0.2.7', sitekey: site_key }
    assert.deepEqual(server.received.at(-1), form)
  })

  await t.test('a response of keys of its own counts once, before it expires, for its page', async () => {
    const game = await gameOf(HCAPTCHA_KEYS)
    const solved = server.solve('localhost')
    await game.find(hcaptcha(solved), from('192.0.2.8'))
    const count = server.received.length
    assert.equal(await reasonOf(game, solved), 'response', 'it is used up')
    assert.equal(server.received.length, count, 'a used response is not sent again')
    const late = server.solve('localhost')
    server.expire(late)
    assert.equal(await reasonOf(game, late), 'response')
    assert.equal(await reasonOf(game, 'P1_unknown'), 'response')
    assert.equal(await reasonOf(game, server.solve('game.example')), 'hostname')
    await game.find(hcaptcha(server.solve('localhost')))
  })

  await t.test('keys that do not belong together are the fault of the game, not of the player', async () => {
    const game = await gameOf({ ...HCAPTCHA_KEYS, site_key: HCAPTCHA_TEST.site_key })
    const error = await platform.refuses('CAPTCHA_PROVIDER_FAILED', () =>
      game.find(hcaptcha(server.solve('localhost'))),
    )
    assert.equal(error.status, 503)
  })
})
