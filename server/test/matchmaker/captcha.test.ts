// When a captcha is required, and how many requests a solved one allows.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join as joinPath } from 'node:path'
import { test } from 'node:test'
import { createLobby, joinLobby } from '@musterhost/contract'
import { sql } from 'kysely'
import { sweepCaptchas } from '../../src/captcha/claims.ts'
import { from, outcomesOf, withKey } from '../http/steps.ts'
import { createDatabase } from '../support/database.ts'
import { startPlatform } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'
import { CAPTCHA, gameWith, KEYS, settings, startWithCaptcha, turnstile } from './captcha-games.ts'
import { SECRET, SITE_KEY, startCaptchaServer } from './captcha-server.ts'

test('without a captcha nothing is reserved or created, and the refusal says which captcha to show', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform)
  const seat = await game.find(turnstile(server.solve()), from('192.0.2.99'))
  const calls = [
    () => game.find(),
    () => game.find({ captcha: {} }),
    () => game.create(),
    () => game.player.call(joinLobby, { body: { lobby_id: seat.lobby.lobby_id } }),
  ]
  for (const call of calls) {
    const error = await platform.refuses('CAPTCHA_CAPTCHA_REQUIRED', call)
    assert.equal(error.status, 403)
    assert.deepEqual(error.metadata, { turnstile: { site_key: SITE_KEY } })
  }
  const both = await gameWith(platform, { hcaptcha: KEYS })
  const error = await platform.refuses('CAPTCHA_CAPTCHA_REQUIRED', () => both.find())
  assert.deepEqual(error.metadata, { hcaptcha: { site_id: SITE_KEY, site_key: SITE_KEY } })
  const asked = server.asked.length
  const stranger = { captcha: { hcaptcha: { client_response: 'x' } } }
  const invalid = await platform.refuses('CAPTCHA_CAPTCHA_INVALID', () => game.find(stranger))
  assert.deepEqual([invalid.status, server.asked.length], [403, asked])
})

test('a solved captcha lets exactly the configured number of requests follow, with whatever user agent', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform)
  await game.find(turnstile(server.solve()), from('192.0.2.7'))
  assert.deepEqual(server.asked, [{ secret: SECRET, response: 'response-1', remoteip: '192.0.2.7', sitekey: SITE_KEY }])
  await game.find({}, { headers: { ...from('192.0.2.7').headers, 'user-agent': 'another' } })
  await game.player.call(createLobby, { body: { game_mode: 'default' }, ...from('192.0.2.7') })
  await platform.refuses('CAPTCHA_CAPTCHA_REQUIRED', () => game.find({}, from('192.0.2.7')))
  await platform.refuses('CAPTCHA_CAPTCHA_REQUIRED', () => game.find({}, from('192.0.2.8')))
  // A namespace of its own: the other one's captcha counts for nothing here.
  const other = await gameWith(platform)
  await platform.refuses('CAPTCHA_CAPTCHA_REQUIRED', () => other.find({}, from('192.0.2.7')))
  await game.find(turnstile(server.solve()), from('192.0.2.7'))
  platform.advance(CAPTCHA.verification_ttl)
  assert.equal((await failureOf(game.find({}, from('192.0.2.7')))).code, 'CAPTCHA_CAPTCHA_REQUIRED')
})

test('of many requests at once exactly as many pass as are left', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform, { requests_before_reverify: 10 })
  await game.find(turnstile(server.solve()))
  for (let count = 0; count < 9; count++) await game.find()
  const finds = Array.from({ length: 10 }, () => game.find())
  assert.deepEqual(await outcomesOf(finds), { answered: 1, CAPTCHA_CAPTCHA_REQUIRED: 9 })
})

test('players behind one address share its captcha, each with an own browser, and are counted together', async (t) => {
  const PLAYERS = 500
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform, { requests_before_reverify: PLAYERS })
  const [nat, prefix] = ['192.0.2.7', '2001:db8:7:7:']
  await game.find(turnstile(server.solve()), from(nat))
  await game.find(turnstile(server.solve()), from(`${prefix}:1`))
  const finds = (addressOf: (player: number) => string) =>
    Array.from({ length: PLAYERS + 10 }, (_, player) => {
      const headers = { ...from(addressOf(player)).headers, 'user-agent': `Browser/${player}` }
      return game.find({}, { headers })
    })
  const expected = { answered: PLAYERS, CAPTCHA_CAPTCHA_REQUIRED: 10 }
  assert.deepEqual(await outcomesOf(finds(() => nat)), expected)
  assert.deepEqual(await outcomesOf(finds((player) => `${prefix}:${(player + 2).toString(16)}`)), expected)
  await platform.refuses('CAPTCHA_CAPTCHA_REQUIRED', () => game.find({}, from('192.0.2.8')))
})

test('a clock that is set back by an hour neither forgets a captcha nor prolongs it', async (t) => {
  const HOUR_MS = 3_600_000
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform, { requests_before_reverify: 3 })
  await game.find(turnstile(server.solve()))
  platform.stepWallClock(-HOUR_MS)
  await game.find()
  platform.stepWallClock(HOUR_MS)
  await game.find()
  platform.advance(CAPTCHA.verification_ttl)
  assert.equal((await failureOf(game.find())).code, 'CAPTCHA_CAPTCHA_REQUIRED')
  platform.stepWallClock(-HOUR_MS)
  assert.equal((await failureOf(game.find())).code, 'CAPTCHA_CAPTCHA_REQUIRED')
})

test('a request counts also when there is no seat for it, and a captcha is solved with or without one', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform)
  await platform.setLimits(game, { max_players_per_client: 0 })
  const outcomes = await outcomesOf([game.find(turnstile(server.solve()))])
  for (let count = 0; count < 3; count++) Object.assign(outcomes, { [count]: (await failureOf(game.find())).code })
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
  await game.find(turnstile(server.solve()))
  const rows = async () => {
    const found = await sql<{ rows: number }>`select count(*)::int as rows from journal`.execute(platform.ctx.db)
    return found.rows[0]!.rows
  }
  const before = await rows()
  await game.find()
  assert.equal(await rows(), before + 1)
})

test('a response is good once: in turn, at once, and in two namespaces', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const [game, other] = [await gameWith(platform), await gameWith(platform)]
  const first = server.solve()
  await game.find(turnstile(first))
  const again = await platform.refuses('CAPTCHA_CAPTCHA_FAILED', () => game.find(turnstile(first)))
  assert.equal(again.status, 400)
  const second = server.solve()
  const calls = Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? game : other).find(turnstile(second)))
  assert.deepEqual(await outcomesOf(calls), { answered: 1, CAPTCHA_CAPTCHA_FAILED: 99 })
  assert.equal(server.asked.length, 2, 'what is claimed is not asked for')
  await platform.refuses('CAPTCHA_CAPTCHA_FAILED', () => game.find(turnstile('made up')))
  await platform.refuses('CAPTCHA_CAPTCHA_FAILED', () => game.find(turnstile('made up')))
  assert.equal(server.asked.length, 3, 'neither is what was refused')
})

test('a find that is repeated with its key gets its seat again, though its response is spent', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform)
  const key = withKey()
  const response = turnstile(server.solve())
  const seats = await Promise.all(Array.from({ length: 5 }, () => game.find(response, key)))
  seats.push(await game.find(response, key))
  assert.equal(new Set(seats.map((seat) => seat.player.token)).size, 1)
  assert.equal(server.asked.length, 1)
  await game.find()
  await game.find()
  await platform.refuses('CAPTCHA_CAPTCHA_REQUIRED', () => game.find())
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
  await game.find(turnstile(server.solve()))
  await game.find()
  await before.close()

  const after = await startPlatform(t, options)
  after.playServers()
  const player = after.as(game.public_token)
  await { ...game, player }.find()
  await after.refuses('CAPTCHA_CAPTCHA_REQUIRED', () => ({ ...game, player }).find())
})

test('what is over is swept', async (t) => {
  const { platform, server } = await startWithCaptcha(t)
  const game = await gameWith(platform)
  await game.find(turnstile(server.solve()))
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
