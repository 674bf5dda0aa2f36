import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join as joinPath } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  createGameNamespaceTokenDevelopment,
  createLobby,
  joinLobby,
  revokeToken,
  type VersionConfig,
} from '@muster/contract'
import { sql } from 'kysely'
import { sweepCaptchas } from '../../src/captcha/claims.ts'
import { newId } from '../../src/ids.ts'
import { createDatabase } from '../database.ts'
import {
  create,
  failureOf,
  find,
  from,
  LONG_MS,
  outcomesOf,
  refused,
  setLimits,
  TRUSTING,
  withKey,
} from '../http/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../platform.ts'
import { until } from '../until.ts'
import {
  type CaptchaServer,
  HCAPTCHA_KEYS,
  HCAPTCHA_TEST,
  SECRET,
  SITE_KEY,
  startCaptchaServer,
  startHcaptchaServer,
} from './captcha-server.ts'

const KEYS = { site_key: SITE_KEY, secret_key: SECRET }
type Captcha = NonNullable<NonNullable<VersionConfig['matchmaker']>['captcha']>
const CAPTCHA: Captcha = { requests_before_reverify: 2, verification_ttl: 240_000, turnstile: KEYS }
const MANY = { max_players_per_client: 1_000, lobby_count_max: 1_000 }

const settings = (server: CaptchaServer) => ({
  ...TRUSTING,
  MUSTER_TURNSTILE_URL: server.url,
  MUSTER_HCAPTCHA_URL: server.url,
})

async function startWithCaptcha(t: TestContext): Promise<{ platform: Platform; server: CaptchaServer }> {
  const server = await startCaptchaServer(t)
  const platform = await startPlatform(t, { env: settings(server) })
  platform.playServers()
  return { platform, server }
}

function gameWith(platform: Platform, captcha: Partial<Captcha> = {}): Promise<TestGame> {
  const actions = { create: { enabled: true, enable_public: true } }
  const game_modes = { default: { max_players: 256, idle_grace_ms: LONG_MS, actions } }
  return platform.game({ matchmaker: { game_modes, captcha: { ...CAPTCHA, ...captcha } }, limits: MANY })
}

const turnstile = (client_response: string) => ({ captcha: { turnstile: { client_response } } })

test('without a captcha nothing is reserved or created, and the refusal says which captcha to show', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform)
  const seat = await find(game, turnstile(server.solve()), from('192.0.2.99'))
  const calls = [
    () => find(game),
    () => find(game, { captcha: {} }),
    () => create(game),
    () => game.player.call(joinLobby, { body: { lobby_id: seat.lobby.lobby_id } }),
  ]
  for (const call of calls) {
    const error = await refused(platform, 'CAPTCHA_CAPTCHA_REQUIRED', call)
    assert.equal(error.status, 403)
    assert.deepEqual(error.metadata, { turnstile: { site_key: SITE_KEY } })
  }
  const both = await gameWith(platform, { hcaptcha: KEYS })
  const error = await refused(platform, 'CAPTCHA_CAPTCHA_REQUIRED', () => find(both))
  assert.deepEqual(error.metadata, { hcaptcha: { site_id: SITE_KEY, site_key: SITE_KEY } })
  const asked = server.asked.length
  const stranger = { captcha: { hcaptcha: { client_response: 'x' } } }
  const invalid = await refused(platform, 'CAPTCHA_CAPTCHA_INVALID', () => find(game, stranger))
  assert.deepEqual([invalid.status, server.asked.length], [403, asked])
})

test('a solved captcha lets exactly the configured number of requests follow, with whatever user agent', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform)
  await find(game, turnstile(server.solve()), from('192.0.2.7'))
  assert.deepEqual(server.asked, [{ secret: SECRET, response: 'response-1', remoteip: '192.0.2.7', sitekey: SITE_KEY }])
  await find(game, {}, { headers: { ...from('192.0.2.7').headers, 'user-agent': 'another' } })
  await game.player.call(createLobby, { body: { game_mode: 'default' }, ...from('192.0.2.7') })
  await refused(platform, 'CAPTCHA_CAPTCHA_REQUIRED', () => find(game, {}, from('192.0.2.7')))
  await refused(platform, 'CAPTCHA_CAPTCHA_REQUIRED', () => find(game, {}, from('192.0.2.8')))
  // A namespace of its own: the other one's captcha counts for nothing here.
  const other = await gameWith(platform)
  await refused(platform, 'CAPTCHA_CAPTCHA_REQUIRED', () => find(other, {}, from('192.0.2.7')))
  await find(game, turnstile(server.solve()), from('192.0.2.7'))
  platform.advance(CAPTCHA.verification_ttl)
  assert.equal((await failureOf(find(game, {}, from('192.0.2.7')))).code, 'CAPTCHA_CAPTCHA_REQUIRED')
})

test('of many requests at once exactly as many pass as are left', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform, { requests_before_reverify: 10 })
  await find(game, turnstile(server.solve()))
  for (let count = 0; count < 9; count++) await find(game)
  const finds = Array.from({ length: 10 }, () => find(game))
  assert.deepEqual(await outcomesOf(finds), { answered: 1, CAPTCHA_CAPTCHA_REQUIRED: 9 })
})

test('players behind one address share its captcha, each with an own browser, and are counted together', async (t) => {
  const PLAYERS = 500
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform, { requests_before_reverify: PLAYERS })
  const [nat, prefix] = ['192.0.2.7', '2001:db8:7:7:']
  await find(game, turnstile(server.solve()), from(nat))
  await find(game, turnstile(server.solve()), from(`${prefix}:1`))
  const finds = (addressOf: (player: number) => string) =>
    Array.from({ length: PLAYERS + 10 }, (_, player) => {
      const headers = { ...from(addressOf(player)).headers, 'user-agent': `Browser/${player}` }
      return find(game, {}, { headers })
    })
  const expected = { answered: PLAYERS, CAPTCHA_CAPTCHA_REQUIRED: 10 }
  assert.deepEqual(await outcomesOf(finds(() => nat)), expected)
  assert.deepEqual(await outcomesOf(finds((player) => `${prefix}:${(player + 2).toString(16)}`)), expected)
  await refused(platform, 'CAPTCHA_CAPTCHA_REQUIRED', () => find(game, {}, from('192.0.2.8')))
})

test('a clock that is set back by an hour neither forgets a captcha nor prolongs it', async (t) => {
  const HOUR_MS = 3_600_000
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform, { requests_before_reverify: 3 })
  await find(game, turnstile(server.solve()))
  platform.stepWallClock(-HOUR_MS)
  await find(game)
  platform.stepWallClock(HOUR_MS)
  await find(game)
  platform.advance(CAPTCHA.verification_ttl)
  assert.equal((await failureOf(find(game))).code, 'CAPTCHA_CAPTCHA_REQUIRED')
  platform.stepWallClock(-HOUR_MS)
  assert.equal((await failureOf(find(game))).code, 'CAPTCHA_CAPTCHA_REQUIRED')
})

test('a request counts also when there is no seat for it, and a captcha is solved with or without one', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform)
  await setLimits(platform, game, { max_players_per_client: 0 })
  const outcomes = await outcomesOf([find(game, turnstile(server.solve()))])
  for (let count = 0; count < 3; count++) Object.assign(outcomes, { [count]: (await failureOf(find(game))).code })
  assert.deepEqual(outcomes, {
    MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE: 1,
    0: 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE',
    1: 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE',
    2: 'CAPTCHA_CAPTCHA_REQUIRED',
  })
})

test('a counted find is one row of the journal, as one without a captcha is', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform)
  await find(game, turnstile(server.solve()))
  const rows = async () => {
    const found = await sql<{ rows: number }>`select count(*)::int as rows from journal`.execute(platform.ctx.db)
    return found.rows[0]!.rows
  }
  const before = await rows()
  await find(game)
  assert.equal(await rows(), before + 1)
})

test('a response is good once: in turn, at once, and in two namespaces', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const [game, other] = [await gameWith(platform), await gameWith(platform)]
  const first = server.solve()
  await find(game, turnstile(first))
  const again = await refused(platform, 'CAPTCHA_CAPTCHA_FAILED', () => find(game, turnstile(first)))
  assert.equal(again.status, 400)
  const second = server.solve()
  const calls = Array.from({ length: 100 }, (_, index) => find(index % 2 === 0 ? game : other, turnstile(second)))
  assert.deepEqual(await outcomesOf(calls), { answered: 1, CAPTCHA_CAPTCHA_FAILED: 99 })
  assert.equal(server.asked.length, 2, 'what is claimed is not asked for')
  await refused(platform, 'CAPTCHA_CAPTCHA_FAILED', () => find(game, turnstile('made up')))
  await refused(platform, 'CAPTCHA_CAPTCHA_FAILED', () => find(game, turnstile('made up')))
  assert.equal(server.asked.length, 3, 'neither is what was refused')
})

test('a find that is repeated with its key gets its seat again, though its response is spent', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform)
  const key = withKey()
  const response = turnstile(server.solve())
  const seats = await Promise.all(Array.from({ length: 5 }, () => find(game, response, key)))
  seats.push(await find(game, response, key))
  assert.equal(new Set(seats.map((seat) => seat.player.token)).size, 1)
  assert.equal(server.asked.length, 1)
  await find(game)
  await find(game)
  await refused(platform, 'CAPTCHA_CAPTCHA_REQUIRED', () => find(game))
})

test('a solved captcha is remembered over a restart, with the requests that are left', async (t) => {
  const server = await startCaptchaServer(t)
  const database_url = await createDatabase(t)
  const data_dir = await mkdtemp(joinPath(tmpdir(), 'muster-test-'))
  t.after(() => rm(data_dir, { recursive: true, force: true }))
  const options = { env: settings(server), database_url, data_dir }
  const before = await startPlatform(t, options)
  before.playServers()
  const game = await gameWith(before)
  await find(game, turnstile(server.solve()))
  await find(game)
  await before.close()

  const after = await startPlatform(t, options)
  after.playServers()
  const player = after.as(game.public_token)
  await find({ ...game, player })
  await refused(after, 'CAPTCHA_CAPTCHA_REQUIRED', () => find({ ...game, player }))
})

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
  await find(game, turnstile(server.solve()), from('192.0.2.1'))
  const refusedWith = async (what: string) => {
    const error = await refused(platform, 'CAPTCHA_PROVIDER_FAILED', () =>
      find(game, turnstile(`x${server.asked.length}`)),
    )
    assert.equal(error.status, 503, what)
    assert.ok(error.retry_after_s! >= 1 && error.retry_after_s! <= 10, what)
  }
  for (const [what, misbehave] of failures) {
    server.misbehave(misbehave)
    await refusedWith(what)
    // An answer in between: it is not yet left alone.
    server.misbehave(null)
    await failureOf(find(game, turnstile(`y${server.asked.length}`)))
  }
  await find(game, {}, from('192.0.2.1'))
  server.misbehave((res) => res.writeHead(500).end())
  for (let count = 0; count < 5; count++) await refusedWith('five in a row')
  const asked = server.asked.length
  await refusedWith('left alone')
  assert.equal(server.asked.length, asked)
  server.misbehave(null)
  platform.advance(10_000)
  await find(game, turnstile(server.solve()))
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
    failureOf(find(game, turnstile(response), key)),
    failureOf(find(game, turnstile('b'))),
  ])
  assert.deepEqual(
    errors.map((error) => error.code),
    ['CAPTCHA_PROVIDER_FAILED', 'CAPTCHA_PROVIDER_FAILED'],
  )
  assert.ok(performance.now() - begin < 8_000)
  // The provider did not check the response: the same request may come with it again, and no other.
  server.misbehave(null)
  await refused(platform, 'CAPTCHA_CAPTCHA_FAILED', () => find(game, turnstile(response)))
  await find(game, turnstile(response), key)
})

test('a secret that the provider does not accept lets nobody in, and leaves the provider to the other games', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const wrong = await gameWith(platform, { turnstile: { site_key: SITE_KEY, secret_key: 'wrong' } })
  for (let count = 0; count < 6; count++) {
    const error = await refused(platform, 'CAPTCHA_PROVIDER_FAILED', () => find(wrong, turnstile(`z${count}`)))
    assert.equal(error.retry_after_s, 60)
  }
  await find(await gameWith(platform), turnstile(server.solve()))
})

test('published test keys pass in development, with a response that is always the same', async (t) => {
  const { platform } = await startWithCaptcha(t)
  const secret_key = '1x0000000000000000000000000000000AA'
  const game = await gameWith(platform, { requests_before_reverify: 0, turnstile: { site_key: SITE_KEY, secret_key } })
  for (let count = 0; count < 3; count++) await find(game, turnstile('XXXX.DUMMY.TOKEN.XXXX'))
  await refused(platform, 'CAPTCHA_CAPTCHA_REQUIRED', () => find(game))
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
    const error = await refused(platform, 'CAPTCHA_CAPTCHA_FAILED', () => find(game, wish))
    assert.deepEqual(error.metadata, { turnstile: { site_key: SITE_KEY }, reason: 'hostname' }, String(hostname))
    const again = await refused(platform, 'CAPTCHA_CAPTCHA_FAILED', () => find(game, wish))
    assert.equal(again.metadata.reason, 'response', String(hostname))
  }

  const own = [
    ...[`${game.name_id}.sites.test`, `${game.name_id}--prod.sites.test`, 'play.example.com', 'PLAY.example.com'],
    'dev.example.com',
  ]
  for (const [index, hostname] of own.entries()) await find(game, solvedOn(hostname), from(`192.0.2.${index}`))

  await client.call(revokeToken, { params: { token_id: ctx.keys.verify(token, ctx.now()).token_id } })
  await refused(platform, 'CAPTCHA_CAPTCHA_FAILED', () => find(game, solvedOn('dev.example.com'), from('192.0.2.99')))
})

test('on a laptop a captcha may be solved on its own pages, and on no others', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform)
  const local = ['localhost', '127.0.0.1', `${game.name_id}.cdn.localhost`, 'app.localhost']
  for (const [index, hostname] of local.entries())
    await find(game, turnstile(server.solve({ hostname })), from(`192.0.2.${index}`))
  for (const hostname of ['evil.example', 'localhost.evil.example', '127.0.0.2', 'xlocalhost']) {
    const wish = turnstile(server.solve({ hostname }))
    await refused(platform, 'CAPTCHA_CAPTCHA_FAILED', () => find(game, wish, from('192.0.2.99')))
  }
})

test('where the version names an action, a captcha that was solved for another one is refused', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform, { turnstile: { ...KEYS, action: 'find-seat' } })
  const required = await refused(platform, 'CAPTCHA_CAPTCHA_REQUIRED', () => find(game))
  assert.deepEqual(required.metadata, { turnstile: { site_key: SITE_KEY, action: 'find-seat' } })
  for (const action of ['login', 'Find-Seat', '', undefined]) {
    const wish = turnstile(server.solve({ hostname: 'localhost', ...(action !== undefined && { action }) }))
    const error = await refused(platform, 'CAPTCHA_CAPTCHA_FAILED', () => find(game, wish))
    assert.equal(error.metadata.reason, 'action')
  }
  await find(game, turnstile(server.solve({ hostname: 'localhost', action: 'find-seat' })))
  const any = await gameWith(platform)
  await find(any, turnstile(server.solve({ hostname: 'localhost', action: 'login' })))
  const invalid = await failureOf(gameWith(platform, { turnstile: { ...KEYS, action: 'find seat' } }))
  assert.equal(invalid.code, 'VALIDATION_ERROR')
})

test('a response of more than 2,048 characters is refused, and its provider is not asked', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform)
  for (const provider of ['turnstile', 'hcaptcha']) {
    const wish = { captcha: { [provider]: { client_response: 'x'.repeat(2_049) } } }
    await refused(platform, 'VALIDATION_ERROR', () => find(game, wish))
  }
  assert.equal(server.asked.length, 0)
  await refused(platform, 'CAPTCHA_CAPTCHA_FAILED', () => find(game, turnstile('x'.repeat(2_048))))
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
    const error = await refused(platform, 'CAPTCHA_CAPTCHA_FAILED', () => find(game, hcaptcha(response)))
    return error.metadata.reason
  }

  await t.test("the provider's test keys take its test response", async () => {
    const { site_key, secret_key, response } = HCAPTCHA_TEST
    const game = await gameOf({ site_key, secret_key })
    const required = await refused(platform, 'CAPTCHA_CAPTCHA_REQUIRED', () => find(game))
    assert.deepEqual(required.metadata, { hcaptcha: { site_id: site_key, site_key } })
    assert.equal(await reasonOf(game, 'of-a-robot'), 'response')
    await find(game, hcaptcha(response), from('192.0.2.7'))
    const form = { secret: secret_key, response, remoteip: '192.0.2.7', sitekey: site_key }
    assert.deepEqual(server.received.at(-1), form)
  })

  await t.test('a response of keys of its own counts once, before it expires, for its page', async () => {
    const game = await gameOf(HCAPTCHA_KEYS)
    const solved = server.solve('localhost')
    await find(game, hcaptcha(solved), from('192.0.2.8'))
    const count = server.received.length
    assert.equal(await reasonOf(game, solved), 'response', 'it is used up')
    assert.equal(server.received.length, count, 'a used response is not sent again')
    const late = server.solve('localhost')
    server.expire(late)
    assert.equal(await reasonOf(game, late), 'response')
    assert.equal(await reasonOf(game, 'P1_unknown'), 'response')
    assert.equal(await reasonOf(game, server.solve('game.example')), 'hostname')
    await find(game, hcaptcha(server.solve('localhost')))
  })

  await t.test('keys that do not belong together are the fault of the game, not of the player', async () => {
    const game = await gameOf({ ...HCAPTCHA_KEYS, site_key: HCAPTCHA_TEST.site_key })
    const error = await refused(platform, 'CAPTCHA_PROVIDER_FAILED', () =>
      find(game, hcaptcha(server.solve('localhost'))),
    )
    assert.equal(error.status, 503)
  })
})

test('what is over is swept', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform)
  await find(game, turnstile(server.solve()))
  const left = async () => {
    const { rows } = await sql<{ claims: number; clients: number }>`select
      (select count(*)::int from captcha_claims) as claims, (select count(*)::int from captcha_clients) as clients
    `.execute(platform.ctx.db)
    return rows[0]
  }
  await until('the client to be projected', async () => (await left())?.clients === 1)
  await sweepCaptchas(platform.ctx)
  assert.deepEqual(await left(), { claims: 1, clients: 1 })
  platform.advance(25 * 3_600_000)
  await sweepCaptchas(platform.ctx)
  assert.deepEqual(await left(), { claims: 0, clients: 0 })
})
