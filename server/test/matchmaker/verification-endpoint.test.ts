// The endpoint that a game verifies players at: which addresses are called, and which answers count. An endpoint that
// keeps failing is left alone, and other games do not wait for it.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { explainRay, findLobby } from '@musterhost/contract'
import { ask, bearer } from '../http/ask.ts'
import { from, LONG_MS, TRUSTING } from '../http/steps.ts'
import { startNameServer } from '../outbound/name-server.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'
import { startGameEndpoint } from './game-endpoint.ts'
import { MANY, NO, SETTINGS, startVerified, verifiedMode } from './verified-games.ts'

/** Of calls.ts and endpoint-breakers.ts. */
const [FAILURES_MAX, PROBE_EVERY_MS, LANE_CALLS_MAX] = [5, 2_000, 128]
const NO_ANSWER = 'MATCHMAKER_VERIFICATION_REQUEST_FAILED'

test('a game that is being written verifies players at http://localhost, where the operator allows it', async (t) => {
  const endpoint = await startGameEndpoint(t)
  const url = endpoint.url.replace('127.0.0.1', 'localhost')
  assert.match(url, /^http:\/\/localhost:\d+/)
  const config = { matchmaker: { game_modes: { default: verifiedMode(url) } }, limits: MANY }
  const platform = await startPlatform(t, { env: { ...TRUSTING, MUSTER_FETCH_LOCALHOST: 'on' } })
  platform.playServers()
  const game = await platform.game(config)
  await game.find()
  assert.equal(endpoint.asked.length, 1)
  const strict = await startPlatform(t, { env: TRUSTING })
  await assert.rejects(strict.game(config), { code: 'VALIDATION_ERROR' })
})

const metricsOf = async ({ ctx }: Platform): Promise<string> => (await ctx.metrics.text()).text

/** As it is written, at this address of a role or of the edge. */
const findThere = (url: string, game: TestGame) =>
  ask(`${url}${findLobby.path}`, {
    method: 'POST',
    headers: { ...bearer(game.public_token), 'content-type': 'application/json', host: 'localhost' },
    body: JSON.stringify({ game_modes: ['default'] }),
  })

/** What a server sends, word for word, and what comes of it; null: a seat. */
const ANSWERS: [string, string | null][] = [
  ...['200 OK', '201 Created', '204 No Content', '206 Partial Content', '299 Fine'].map((line): [string, null] => [
    `HTTP/1.1 ${line}\r\ncontent-length: 0\r\n\r\n`,
    null,
  ]),
  ...[
    '300 Many',
    '302 Found\r\nlocation: http://127.0.0.1:1/',
    '304 Same',
    '307 There',
    '500 Oh',
    '600 X',
    '999 X',
  ].map((line): [string, string] => [`HTTP/1.1 ${line}\r\ncontent-length: 0\r\n\r\n`, NO]),
  ['HTTP/1.1 2000 OK\r\n\r\n', NO_ANSWER],
  ['HTTP/1.1 199 Nearly\r\n\r\n', NO_ANSWER],
  ['200 OK', NO_ANSWER],
  ['', NO_ANSWER],
  // The status is known: what comes after it is nobody's business.
  ['HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\nx', null],
  ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nrubbish', null],
  [`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(100_000)}\r\n\r\n`, NO_ANSWER],
  ['HTTP/1.1 103 Early\r\n\r\n'.repeat(100), NO_ANSWER],
]

test('the status decides, and nothing but the status', async (t) => {
  let answer = ''
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => (answer.includes('10000000000') ? socket.write(answer) : socket.end(answer)))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => void server.close())
  const platform = await startPlatform(t, { env: SETTINGS })
  platform.playServers()
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const matchmaker = { game_modes: { default: verifiedMode(url) } }
  const game = await platform.game({ matchmaker, limits: MANY })
  for (const [text, code] of ANSWERS) {
    answer = text
    const outcome = await game.find().then(
      () => null,
      (error: { code: string }) => error.code,
    )
    assert.equal(outcome, code, JSON.stringify(text.slice(0, 60)))
  }
})

test('an endpoint that does not answer is given up after ten seconds, and makes nobody else wait', async (t) => {
  const { endpoint, platform, game } = await startVerified(t)
  const other = await platform.game({ matchmaker: { game_modes: { default: { idle_grace_ms: LONG_MS } } } })
  const timers: NodeJS.Timeout[] = []
  t.after(() => timers.forEach(clearInterval))
  let count = 0
  endpoint.answer((res) => {
    if (count++ % 2 === 0) return
    // A byte of a head now and then.
    const { socket } = res
    socket?.write('HTTP/1.1 200 OK\r\nx: ')
    timers.push(setInterval(() => socket?.write('x'), 500))
  })
  const begin = performance.now()
  const stuck = Array.from({ length: 150 }, (_, index) => failureOf(game.find({}, from(`192.0.2.${index}`))))
  await until('the lane to be full', async () => endpoint.asked.length >= 128)
  const other_begin = performance.now()
  await other.find()
  assert.ok(performance.now() - other_begin < 2_000)
  assert.equal(endpoint.asked.length, 128, 'a lane has its calls at once, and no more')
  for (const error of await Promise.all(stuck)) assert.equal(error.code, NO_ANSWER)
  const waited_ms = performance.now() - begin
  assert.ok(waited_ms > 9_000 && waited_ms < 15_000, `${waited_ms}`)
  endpoint.answer(null)
  platform.advance(PROBE_EVERY_MS)
  await game.find()
})

test('an endpoint that keeps failing is left alone: requests are refused at once, and one probe finds that it is back', async (t) => {
  const { endpoint, platform, game } = await startVerified(t)
  const game_modes = { default: verifiedMode(endpoint.url) }
  const other = await platform.game({ matchmaker: { game_modes }, limits: MANY })
  platform.holdClock()
  endpoint.answer((res) => res.destroy())
  for (let count = 0; count < FAILURES_MAX; count++) {
    assert.equal((await failureOf(game.find())).code, NO_ANSWER)
  }
  assert.equal(endpoint.asked.length, FAILURES_MAX)
  const left_alone = await failureOf(game.find())
  assert.equal(left_alone.code, NO_ANSWER)
  assert.equal(left_alone.retry_after_s, 2)
  assert.equal(endpoint.asked.length, FAILURES_MAX, 'it was not asked')
  const { headers } = await findThere(platform.matchmaker_url, game)
  const params = { ray_id: String(headers['x-ray-id']) }
  assert.equal((await platform.client.call(explainRay, { params })).explanation.verification, 'not_asked')
  assert.equal(endpoint.asked.length, FAILURES_MAX)
  assert.match(await metricsOf(platform), /^muster_verification_endpoints_left_alone 1$/m)
  assert.match(await metricsOf(platform), /^muster_verification_calls_total\{end="not_asked"\} 2$/m)

  // Another namespace has a breaker of its own for the same endpoint.
  const thinking = endpoint.think()
  const elsewhere = other.find()
  await until('the other game to be asked', () => thinking.waiting() === 1)

  // A probe that hangs keeps nobody from finding that the endpoint is back.
  platform.advance(PROBE_EVERY_MS)
  const stuck = game.find()
  await until('the probe', () => thinking.waiting() === 2)
  assert.equal((await failureOf(game.find())).code, NO_ANSWER)
  endpoint.answer(null)
  platform.advance(PROBE_EVERY_MS)
  await game.find()
  assert.match(await metricsOf(platform), /^muster_verification_endpoints_left_alone 0$/m)
  thinking.say(204)
  await Promise.all([stuck, elsewhere])
  await Promise.all(Array.from({ length: 20 }, () => game.find()))
})

test('of many requests that wait for an endpoint that hangs, none is asked about once it is left alone', async (t) => {
  const { endpoint, platform, game } = await startVerified(t)
  const thinking = endpoint.think()
  const asked = Array.from({ length: LANE_CALLS_MAX + 50 }, (_, index) =>
    failureOf(game.find({}, from(`192.0.2.${index}`))),
  )
  await until('the lane to be full', () => thinking.waiting() === LANE_CALLS_MAX)
  endpoint.answer((res) => res.destroy())
  thinking.drop(FAILURES_MAX)
  await until('the endpoint to be left alone', async () =>
    /^muster_verification_endpoints_left_alone 1$/m.test(await metricsOf(platform)),
  )
  thinking.drop(LANE_CALLS_MAX)
  for (const error of await Promise.all(asked)) assert.equal(error.code, NO_ANSWER)
  assert.ok(endpoint.asked.length < LANE_CALLS_MAX + 10, `${endpoint.asked.length}`)
})

test('what is not a public address is not called, whatever its name', async (t) => {
  const endpoint = await startGameEndpoint(t)
  const names = await startNameServer(t)
  names.zones.set('inside.example.org', { A: ['127.0.0.1'] })
  names.zones.set('mixed.example.org', { A: ['198.51.100.1', '127.0.0.1'] })
  names.zones.set('later.example.org', { A: ['10.0.0.1'] })
  const platform = await startPlatform(t, { env: { MUSTER_DNS_SERVERS: names.address } })
  for (const name of ['inside', 'mixed', 'later', 'unknown']) {
    const url = `http://${name}.example.org:${endpoint.port}/`
    const game = await platform.game({ matchmaker: { game_modes: { default: verifiedMode(url) } } })
    const error = await platform.refuses(NO_ANSWER, () => game.find())
    assert.equal(error.status, 400)
  }
  assert.equal(endpoint.asked.length, 0)
})
