import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { playerConnected } from '@musterhost/contract'
import { readConfig } from '../../src/config/read-config.ts'
import { ROLES } from '../../src/config/roles.ts'
import { countLobbies, type LobbyCount } from '../../src/matchmaker/metrics/lobby-counts.ts'
import { MODES } from '../http/steps.ts'
import { openDatabaseProxy } from '../matchmaker/database-proxy.ts'
import { lacking } from '../run/optional-programs.ts'
import { createDatabase } from '../support/database.ts'
import { freePorts } from '../support/free-ports.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'
import { DEPLOY, startPrometheus } from './prometheus.ts'

const TOKEN = 'for-prometheus-only'

type Watched = { platform: Platform; port: number; ask: (path: string, token?: string) => Promise<Response> }

async function startWatched(t: TestContext, options: Parameters<typeof startPlatform>[1] = {}): Promise<Watched> {
  const [port] = (await freePorts(1)) as [number]
  const first = ROLES.findIndex((role) => (options.roles ?? 'api').includes(role))
  const env = { MUSTER_METRICS_PORT: String(port - first), MUSTER_METRICS_TOKEN: TOKEN, ...options.env }
  const platform = await startPlatform(t, { ...options, env })
  return {
    platform,
    port,
    ask: (path, token = TOKEN) =>
      fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${token}` } }),
  }
}

/** The names of the exposition, with what histograms add to theirs. */
function namesIn(text: string): Set<string> {
  const names = new Set<string>()
  for (const [, name = '', type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    for (const end of type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']) names.add(name + end)
  }
  return names
}

test('Prometheus scrapes the platform and returns the number of players', async (t) => {
  const missing = lacking('prometheus')
  if (missing !== null) return t.skip(missing)
  const { platform, port } = await startWatched(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const seats = [await game.find(), await game.find(), await game.find()]
  const [first, second] = seats.map(({ player }) => player.token)
  for (const player_token of [first!, second!]) {
    await platform.serverOf(game, seats[0]!.lobby.lobby_id).call(playerConnected, { body: { player_token } })
  }
  await failureOf(game.find({ game_modes: ['none'] }))

  const prometheus = await startPrometheus(t, port, TOKEN)
  const numberOf = async (expression: string): Promise<number | undefined> =>
    (await prometheus.query(expression))[0]?.value
  await until('the scraped players', async () => (await numberOf('sum(muster_players{state="connected"})')) === 2)
  assert.equal(await numberOf('sum(muster_players{state="reserved"})'), 1)
  const [place] = await prometheus.query('muster_players{state="connected"} > 0')
  const { namespace_id, region, game_mode, role } = place!.metric
  assert.deepEqual(
    { namespace_id, region, game_mode, role },
    { namespace_id: game.namespace_id, region: 'local', game_mode: 'default', role: 'api' },
  )
  assert.equal(await numberOf('sum(muster_lobbies{state="ready"})'), 1)
  assert.equal(await numberOf('sum(muster_requests_total{operation="lobbies.find",code="ok"})'), 3)
  assert.equal(await numberOf('sum(muster_requests_total{operation="lobbies.find",code!="ok"})'), 1)
  assert.equal(await numberOf('sum(muster_shards{state="writing"})'), 64)
  assert.ok((await numberOf('muster_journal_append_duration_seconds_count{outcome="committed"}'))! > 3)
})

test('the platform exports every metric of the dashboard and the alerts, and Prometheus accepts their files', async (t) => {
  const { platform, ask } = await startWatched(t, { roles: 'api,matchmaker,runner,edge', has_sandboxes: true })
  await platform.game()
  const told = namesIn(await (await ask('/metrics')).text())
  const rules = readFileSync(join(DEPLOY, 'prometheus', 'muster.rules.yml'), 'utf8')
  const dashboard = readFileSync(join(DEPLOY, 'grafana', 'muster.json'), 'utf8')
  const asked = new Set((rules + dashboard).match(/\b(?:muster|process|nodejs)_[a-z0-9_]+\b/g))
  assert.ok(asked.size > 20)
  const unknown = [...asked].filter((name) => !told.has(name))
  assert.deepEqual(unknown, [])
  const unused = [...told].filter((name) => {
    const all = [name, ...['_bucket', '_sum', '_count'].map((end) => name.replace(/_(bucket|sum|count)$/, end))]
    return name.startsWith('muster_') && !all.some((one) => asked.has(one))
  })
  assert.deepEqual(unused, [], 'every exported metric is used')
  const missing = lacking('prometheus')
  if (missing !== null) return t.skip(missing)
  execFileSync('promtool', ['check', 'config', join(DEPLOY, 'prometheus', 'prometheus.yml')], { stdio: 'pipe' })
})

test('a process is ready while it serves and has its database, and not from the moment on that it is to stop', async (t) => {
  const proxy = await openDatabaseProxy(t, await createDatabase(t))
  const { platform, ask } = await startWatched(t, { roles: 'matchmaker', database_url: proxy.url })
  const isReady = async (): Promise<boolean> => (await ask('/health/ready')).status === 200
  await until('it is ready', isReady)
  assert.deepEqual(await (await ask('/health/ready')).json(), {
    is_ready: true,
    checks: { serving: true, database: true, matchmaker: true },
    warnings: [],
  })
  proxy.setAway(true)
  await until('the database is missed', async () => !(await isReady()))
  assert.equal((await ask('/health/live')).status, 200, 'it is still live')
  proxy.setAway(false)
  await until('it is ready again', isReady)

  platform.ctx.health.stopping()
  const answer = await ask('/health/ready')
  assert.equal(answer.status, 503)
  assert.equal(((await answer.json()) as { checks: { serving: boolean } }).checks.serving, false)
  // While its database is there.
  await platform.close()
})

test('a lobby is counted as starting, ready, closed or stalled: in one of these', async (t) => {
  const { platform, ask } = await startWatched(t, { roles: 'api,matchmaker' })
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const lobbies = async () => {
    const found = (await (await ask('/metrics')).text()).matchAll(/^muster_lobbies\{.*state="(\w+)".*\} (\d+)$/gm)
    return Object.fromEntries([...found].map(([, state, count]) => [state, Number(count)]))
  }
  const { lobby } = await game.find()
  assert.deepEqual(await lobbies(), { starting: 0, ready: 1, closed: 0, stalled: 0 })
  await platform.stallRun(lobby.lobby_id)
  assert.deepEqual(await lobbies(), { starting: 0, ready: 0, closed: 0, stalled: 1 })
})

test('metrics require the token; health requires none', async (t) => {
  const { ask } = await startWatched(t, { roles: 'api' })
  for (const token of ['', 'wrong', `${TOKEN}x`]) assert.equal((await ask('/metrics', token)).status, 401)
  assert.equal((await ask('/metrics')).status, 200)
  assert.equal((await ask('/health/live', '')).status, 200)
  assert.equal((await ask('/health/ready', '')).status, 200)
  assert.equal((await ask('/')).status, 404)
  assert.throws(() => readConfig({ MUSTER_METRICS_HOST: '0.0.0.0' }), /MUSTER_METRICS_TOKEN/)
  assert.equal(readConfig({ MUSTER_METRICS_HOST: '0.0.0.0', MUSTER_METRICS_TOKEN: 'x' }).metrics?.port, 9480)
  assert.equal(readConfig({ MUSTER_ROLES: 'edge' }).metrics?.port, 9483)
})

test('a port that is taken keeps nobody from playing', async (t) => {
  const { port } = await startWatched(t, { roles: 'api' })
  const other = await startPlatform(t, { roles: 'api', env: { MUSTER_METRICS_PORT: String(port) } })
  await other.game().catch(() => null)
  assert.equal((await fetch(`${other.api_url}/cloud/region-tiers`)).status, 200)
})

test('of many namespaces and regions the largest are exported alone, the others as a sum: no player is lost', async () => {
  const players = (count: number) =>
    new Map(Array.from({ length: count }, (_, index) => [index, { remove_ms: null, connect_ms: 1 }]))
  const sizes = Array.from({ length: 500 }, (_, index) => (index * 7) % 41)
  const lobby = (count: number) => ({
    region: 'local',
    game_mode: 'default',
    stop_ms: null,
    ready_ms: 1,
    players: players(count),
  })
  const places: LobbyCount[] = await countLobbies({
    namespaceIds: () => sizes.map((_, index) => String(index)),
    book: (id) => ({ lobbies: new Map([[id, lobby(sizes[Number(id)]!)]]) }) as never,
  })
  assert.equal(places.length, 201)
  const sum = (numbers: number[]): number => numbers.reduce((a, b) => a + b, 0)
  assert.equal(sum(places.map((place) => place.players.connected)), sum(sizes))
  assert.equal(sum(places.map((place) => place.lobbies.ready)), 500)
  const [others] = places.filter((place) => place.namespace_id === 'other')
  assert.equal(others?.lobbies.ready, 300)
})
