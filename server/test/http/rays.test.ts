// Rays: the id that every answer of every listener carries, and where the time of a request went. The caller of the
// request and administrators may read it.
// Runs in a process of its own: what ran before would change the processor time that it measures.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { findLobby, getGames, getRayPerfLogs, type ServicePerf } from '@musterhost/contract'
import { WebSocket } from 'ws'
import { newId } from '../../src/ids.ts'
import { LABEL_LENGTH_MAX, MARKS_MAX, mark, openRay, PHASES_MAX, phase } from '../../src/observe/ray.ts'
import { createRecorder, OWNER_PARTS_MAX, type RayPart } from '../../src/observe/recorder.ts'
import { SECRET, SITE_KEY, startCaptchaServer } from '../matchmaker/captcha-server.ts'
import { startGameEndpoint } from '../matchmaker/game-endpoint.ts'
import { cpuMsOf } from '../support/cpu-time.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { ask, bearer, JSON_TYPE, requireRefusal } from './ask.ts'
import { LONG_MS, TRUSTING, UNKNOWN_ID } from './steps.ts'
import { CALLERS, createWorld } from './world.ts'

const UUID4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const MICROTIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/

const perfOf = async ({ client }: Pick<Platform, 'client'>, ray_id: string): Promise<ServicePerf[]> =>
  (await client.call(getRayPerfLogs, { params: { ray_id } })).perf_lists

/** What each service says of the ray, once all of them have said it. */
function perfFrom(platform: Platform, ray_id: string, services: string[]): Promise<Record<string, ServicePerf>> {
  return until(`what ${services.join(', ')} say of the ray`, async () => {
    const lists = await perfOf(platform, ray_id).catch(() => [])
    const by_name = Object.fromEntries(lists.map((perf) => [perf.svc_name, perf]))
    return services.every((name) => name in by_name) && by_name
  })
}

const microseconds = (ts: string): number => Date.parse(`${ts.slice(0, 23)}Z`) * 1_000 + Number(ts.slice(23, 26))

/** Asserts that the phases follow one another, and add up to the duration. Returns their labels. */
function labelsOf(perf: ServicePerf): string[] {
  assert.match(perf.ts, MICROTIME)
  let at = microseconds(perf.ts)
  let sum = 0
  for (const { label, start_ts, finish_ts } of perf.spans) {
    assert.match(start_ts, MICROTIME)
    assert.equal(microseconds(start_ts), at, `${label} begins where the one before it ended`)
    at = microseconds(finish_ts!)
    sum += at - microseconds(start_ts)
  }
  assert.ok(Math.abs(sum - perf.duration) <= perf.duration * 0.05, `${sum} of ${perf.duration}`)
  return perf.spans.map(({ label }) => label)
}

/** A find as it is written, through the listener at `url`. */
async function findThrough(url: string, game: TestGame, body: object = {}, headers: Record<string, string> = {}) {
  return ask(`${url}${findLobby.path}`, {
    method: 'POST',
    headers: { ...bearer(game.public_token), ...JSON_TYPE, ...headers },
    body: JSON.stringify({ game_modes: ['default'], ...body }),
  })
}

const rayOf = ({ headers }: { headers: Record<string, unknown> }): string => String(headers['x-ray-id'])

const START = ['row', 'process', 'listen', 'ready']
const FIND = ['http', 'auth', 'http', 'handle', 'choose', 'commit']

test('a find that started a lobby names each phase, in the edge, the matchmaker and the runner', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge' })
  const game = await platform.game()
  const answer = await findThrough(platform.edge_url, game)
  assert.equal(answer.status, 200, answer.text)
  const ray_id = rayOf(answer)
  assert.match(ray_id, UUID4)
  const { edge, matchmaker, runner } = await perfFrom(platform, ray_id, ['edge', 'matchmaker', 'runner'])
  assert.deepEqual(labelsOf(matchmaker!), [...FIND, 'start', 'wait', 'answer'])
  assert.deepEqual(labelsOf(edge!), ['http', 'forward', 'answer'])
  assert.deepEqual(labelsOf(runner!), START)
  for (const { svc_name, req_id, spans, marks } of [edge!, matchmaker!, runner!]) {
    const req_ids = [req_id, ...[...spans, ...marks].map((part) => part.req_id)]
    assert.deepEqual([...new Set(req_ids)], [ray_id], `${svc_name} names the request on each line`)
  }
  assert.deepEqual(
    [edge!.operation, matchmaker!.operation, runner!.operation],
    ['forward', findLobby.id, 'lobby.start'],
  )
  assert.ok(edge!.duration >= matchmaker!.duration)
  // One clock: what causes something comes before it.
  const beginOf = ({ spans }: ServicePerf, of: string) =>
    microseconds(spans.find(({ label }) => label === of)!.start_ts)
  const moments = [
    microseconds(edge!.ts),
    microseconds(matchmaker!.ts),
    beginOf(matchmaker!, 'start'),
    microseconds(runner!.ts),
    beginOf(runner!, 'listen'),
    beginOf(matchmaker!, 'wait'),
    beginOf(matchmaker!, 'answer'),
  ]
  assert.deepEqual(
    moments,
    moments.toSorted((x, y) => x - y),
  )
})

test('a start names each phase also on a machine with thousands of connections', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const sockets = Array.from({ length: 2_500 }, () => connect(port, '127.0.0.1'))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge' })
  const answer = await findThrough(platform.edge_url, await platform.game())
  assert.equal(answer.status, 200, answer.text)
  const { runner } = await perfFrom(platform, rayOf(answer), ['runner'])
  assert.deepEqual(labelsOf(runner!), START)
})

test('captcha, verification and the wait for a lobby of somebody else are phases; a refusal ends with its code', async (t) => {
  const captcha_server = await startCaptchaServer(t)
  const endpoint = await startGameEndpoint(t)
  const env = {
    ...TRUSTING,
    MUSTER_FETCH_PRIVATE_NETWORKS: '127.0.0.0/8',
    MUSTER_TURNSTILE_URL: captcha_server.url,
  }
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge', env })
  const game = await platform.game({
    matchmaker: {
      captcha: {
        requests_before_reverify: 600,
        verification_ttl: LONG_MS,
        turnstile: { site_key: SITE_KEY, secret_key: SECRET },
      },
      game_modes: {
        default: {
          max_players: 2,
          actions: { find: { enabled: true, verification_config: { url: endpoint.url, headers: {} } } },
        },
        plain: { max_players: 2 },
      },
    },
  })
  const solved = () => ({ captcha: { turnstile: { client_response: captcha_server.solve() } } })
  const services = ['edge', 'matchmaker']

  const first = findThrough(platform.edge_url, game, solved())
  const [lobby_id] = await platform.startingLobbies(game)
  const second = findThrough(platform.edge_url, game)
  await until('two players who wait', () =>
    platform.ctx.db
      .selectFrom('players')
      .select('player_id')
      .execute()
      .then((rows) => rows.length === 2),
  )
  await platform.makeReady(game, lobby_id!)
  const [started, waited] = [await first, await second]
  const checked = ['http', 'auth', 'http', 'handle', 'captcha', 'choose', 'commit', 'verification', 'choose', 'commit']
  const { matchmaker: starter } = await perfFrom(platform, rayOf(started), services)
  assert.deepEqual(labelsOf(starter!), [...checked, 'start', 'wait', 'answer'])
  const { matchmaker: waiter } = await perfFrom(platform, rayOf(waited), services)
  assert.deepEqual(labelsOf(waiter!), [...checked, 'wait', 'answer'])
  assert.deepEqual(
    waiter!.marks.map(({ label, ray_id }) => [label, ray_id]),
    [['started_by', rayOf(started)]],
  )

  // Refused by the endpoint, by the captcha, by the book, and before anything of it.
  const refusals: [object, string, string[]][] = [
    [
      { game_modes: ['plain'], prevent_auto_create_lobby: true },
      'MATCHMAKER_NO_AVAILABLE_LOBBIES',
      [...FIND.slice(0, 4), 'captcha', 'choose', 'commit'],
    ],
    [{ game_modes: ['nothing'] }, 'MATCHMAKER_GAME_MODE_NOT_FOUND', ['http', 'auth', 'http', 'handle']],
    [{ game_modes: 7 }, 'VALIDATION_ERROR', ['http', 'auth', 'http']],
    [
      { captcha: { turnstile: { client_response: 'stale' } } },
      'CAPTCHA_CAPTCHA_FAILED',
      [...FIND.slice(0, 4), 'captcha'],
    ],
  ]
  for (const [body, code, phases] of refusals) {
    const answer = await findThrough(platform.edge_url, game, body)
    const { ray_id } = requireRefusal(answer, code as never)
    const { matchmaker, edge } = await perfFrom(platform, ray_id, services)
    assert.deepEqual(labelsOf(matchmaker!), phases, code)
    assert.deepEqual(labelsOf(edge!), ['http', 'forward', 'answer'])
    assert.equal(matchmaker!.marks.at(-1)!.label, code)
  }
})

test('every listener gives its answers a fresh ray id, whatever id the client sends', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  const game = await platform.game()
  const { port } = new URL(platform.edge_url)
  const own = { 'x-ray-id': UNKNOWN_ID, x_ray_id: UNKNOWN_ID, 'x-muster-edge': 'forged' }
  const doors: [string, number, Record<string, string>?][] = [
    [`${platform.api_url}/`, 302],
    [`${platform.api_url}/openapi.json`, 200],
    [`${platform.api_url}/nothing`, 404],
    [`${platform.api_url}/cloud/games`, 401],
    [`${platform.api_url}/cloud/%ff`, 400],
    [`${platform.api_url}/objects/nothing`, 404],
    [`${platform.matchmaker_url}/matchmaker/regions`, 401],
    [`${platform.matchmaker_url}/matchmaker/regions`, 200, bearer(game.public_token)],
    // The hub is at the name of the main domain.
    [`${platform.edge_url}/`, 302],
    [`${platform.edge_url}/cloud/games`, 401],
    [`${platform.edge_url}/matchmaker/regions`, 200, bearer(game.public_token)],
    [`${platform.edge_url}/lobbies/nothing`, 404],
    [`${platform.edge_url}/.well-known/muster.json`, 200, { host: `${game.name_id}--staging.cdn.localhost:${port}` }],
    [`${platform.edge_url}/index.html`, 404, { host: `${game.name_id}.cdn.localhost:${port}` }],
    [`${platform.edge_url}/`, 404, { host: 'nobody.example' }],
  ]
  const seen = new Set<string>()
  for (const [url, status, headers] of doors) {
    const answer = await ask(url, { headers: { ...own, ...headers } })
    assert.equal(answer.status, status, `${url} ${answer.text}`)
    const ray_id = rayOf(answer)
    assert.match(ray_id, UUID4, url)
    assert.ok(!seen.has(ray_id))
    seen.add(ray_id)
    assert.equal(answer.headers['x-muster-kept'], undefined, 'what is for the edge stays there')
  }
  assert.ok(!seen.has(UNKNOWN_ID))
  for (const url of [platform.matchmaker_url, platform.edge_url]) {
    const refused = await upgradeAt(t, `${url}/identity/events/live?identity_token=nothing`)
    assert.equal(refused.status, 401)
    assert.match(refused.ray_id, UUID4)
  }
})

/** The answer to a handshake. */
function upgradeAt(t: TestContext, url: string): Promise<{ status: number; ray_id: string }> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url.replace('http', 'ws'))
    t.after(() => socket.terminate())
    socket.on('error', () => {})
    const tell = (status: number, headers: NodeJS.Dict<string | string[]>) =>
      resolve({ status, ray_id: String(headers['x-ray-id']) })
    socket.on('unexpected-response', (_request, answer) => tell(answer.statusCode ?? 0, answer.headers))
    socket.on('upgrade', (answer) => tell(101, answer.headers))
    socket.on('close', () => reject(new Error('there was no answer')))
  })
}

test('a ray is shown to owners of the request and to administrators; for all others there is none', async (t) => {
  const platform = await startPlatform(t, { env: { MUSTER_RAYS_PER_SECOND: '100' } })
  const world = await createWorld(platform)
  await platform.setLimits(world.game, { max_players_per_client: 0 })
  const refused = await findThrough(platform.matchmaker_url, world.game)
  const games = await ask(`${platform.api_url}${getGames.path}`, { headers: bearer(world.tokens.owner!) })
  const strange = await ask(`${platform.api_url}/cloud/nothing`)
  const readers: [string, string[]][] = [
    [rayOf(refused), ['admin', 'cloud', 'owner', 'developer']],
    [rayOf(games), ['admin', 'owner']],
    [rayOf(strange), ['admin']],
    [UNKNOWN_ID, []],
  ]
  for (const [ray_id, told] of readers) {
    for (const caller of CALLERS) {
      const token = world.tokens[caller]
      const headers = token === null ? {} : bearer(token)
      const answer = await ask(`${platform.api_url}/cloud/rays/${ray_id}/perf`, { headers })
      if (told.includes(caller)) assert.equal(answer.status, 200, `${caller}: ${answer.text}`)
      else assert.notEqual(answer.status, 200, caller)
      if (['viewer', 'stranger', 'other_cloud'].includes(caller)) requireRefusal(answer, 'RAY_NOT_FOUND')
    }
  }
})

test('a request with ten thousand phases and endless labels is cut short and says so, and costs no more than others', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { ctx } = platform
  const told: RayPart[] = []
  t.after(ctx.recorder.onRay((part) => told.push(part)))
  const ray = openRay('api', newId(ctx.now()))
  ray.is_wanted = true
  const ms = cpuMsOf(() => {
    for (let count = 0; count < 10_000; count++) {
      phase(ray, 'x'.repeat(10_000))
      mark(ray, 'y'.repeat(10_000))
    }
  })
  assert.ok(ms < 500, `it took ${ms} ms`)
  assert.ok(ctx.recorder.end(ray, null))
  const [perf] = await perfOf(platform, ray.ray_id)
  assert.equal(labelsOf(perf!).length, PHASES_MAX)
  assert.equal(perf!.marks.length, MARKS_MAX + 1)
  assert.equal(perf!.marks.at(-1)!.label, 'truncated')
  assert.ok([...perf!.spans, ...perf!.marks].every(({ label }) => label.length <= LABEL_LENGTH_MAX))
  assert.deepEqual(
    told.filter(({ ray_id }) => ray_id === ray.ray_id).map(({ spans }) => spans.length),
    [PHASES_MAX],
    'who watches is shown the same',
  )
})

test('of ordinary requests a few a second are kept, of one owner a bounded number, and none where rays are off', async (t) => {
  const { ctx } = await startPlatform(t, { roles: 'api' })
  const recorder = createRecorder({ ...ctx, rays_per_second: 2 })
  const kept = { ordinary: 0, failed: 0, others: 0 }
  for (let count = 0; count < 100; count++) {
    if (recorder.end(recorder.open('api', newId(ctx.now())), null)) kept.ordinary++
    if (recorder.end(recorder.open('api', newId(ctx.now())), 'API_NOT_FOUND')) kept.failed++
    const other = recorder.open('api', newId(ctx.now()))!
    other.owner = { kind: 'game', id: newId(ctx.now()) }
    if (recorder.end(other, 'API_NOT_FOUND')) kept.others++
  }
  assert.ok(kept.ordinary <= 2 && kept.failed >= 20 && kept.failed <= 22 && kept.others === 100, JSON.stringify(kept))
  await recorder.close()
  const off = createRecorder({ ...ctx, rays_per_second: null })
  assert.equal(off.open('api', UNKNOWN_ID), null)
  assert.equal(off.end(null, 'API_NOT_FOUND'), false)
  await off.close()
})

test("an owner's newest rays only are kept, and times follow a clock that is moved", async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { ctx } = platform
  await ctx.pool.query(
    `insert into ray_spans (ray_id, service, operation, owner_kind, owner_id, ts, duration_us, spans, marks)
      select gen_random_uuid(), 'api', 'old', 'game', $1, now() + number * interval '1 microsecond', 1, '[]', '[]'
      from generate_series(1, $2) as number`,
    [UNKNOWN_ID, OWNER_PARTS_MAX],
  )
  platform.advance(3_600_000)
  const ray = ctx.recorder.open('api', newId(ctx.now()))!
  ray.owner = { kind: 'game', id: UNKNOWN_ID }
  ctx.recorder.end(ray, 'API_NOT_FOUND')
  const [perf] = await perfOf(platform, ray.ray_id)
  assert.ok(Math.abs(microseconds(perf!.ts) / 1_000 - ctx.now()) < 10_000, perf!.ts)
  await ctx.recorder.trim()
  const { rows } = await ctx.pool.query('select count(*)::int as count from ray_spans where owner_id = $1', [
    UNKNOWN_ID,
  ])
  assert.equal(rows[0].count, OWNER_PARTS_MAX)
  assert.equal((await perfOf(platform, ray.ray_id)).length, 1)
})
