// The overview of a person: what is wrong, what mends it, what runs, and who sees which part of it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  addNamespaceDomain,
  checkMatchmakerVersion,
  createGame,
  createGameVersion,
  createGroup,
  getGameNamespaceVersionHistoryList,
  getGameVersionById,
  getOverview,
  OVERVIEW_NAMESPACES_MAX,
  type Problem,
  type ResponseOf,
  updateGameNamespaceVersion,
} from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { LONG_MS } from '../http/steps.ts'
import { personOf } from '../http/world.ts'
import { uploadBuild } from '../support/builds.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'

type Overview = ResponseOf<typeof getOverview>

/** So many that their order is not right by chance. */
const GAMES = 10
const DAY_MS = 86_400_000
const EXITS = "process.stderr.write('no map\\n')\nprocess.exitCode = 3\n"
const LASTING = { default: { idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS } }

const overviewOf = (client: Client): Promise<Overview> => client.call(getOverview, {})
const kindsOf = ({ problems }: Overview): string[] => problems.map(({ kind }) => kind)
const ofKind = ({ problems }: Overview, kind: Problem['kind']): Problem | undefined =>
  problems.find((problem) => problem.kind === kind)

/** A version of the game like the one before it, deployed after a lobby of it became ready, as `muster deploy` does. */
async function deployChecked({ client }: Platform, game: TestGame): Promise<string> {
  const { game_id, namespace_id } = game
  const { version } = await client.call(getGameVersionById, { params: { game_id, version_id: game.version_id } })
  const body = { display_name: '1.0.1', config: version.config }
  const { version_id } = await client.call(createGameVersion, { params: { game_id }, body })
  const params = { game_id, namespace_id, version_id }
  const { is_ready } = await client.call(checkMatchmakerVersion, { params, body: {} })
  assert.ok(is_ready)
  await client.call(updateGameNamespaceVersion, { params, body: { version_id } })
  return version_id
}

/** A version of the game whose server exits at once, deployed by this client. */
async function deployBroken(platform: Platform, client: Client, game: TestGame): Promise<string> {
  const { game_id, namespace_id } = game
  const files = { 'server.mjs': EXITS }
  const image_id = await uploadBuild(client, { api_url: platform.api_url, game_id, files })
  const { version } = await client.call(getGameVersionById, { params: { game_id, version_id: game.version_id } })
  const matchmaker = version.config.matchmaker!
  const config = { ...version.config, matchmaker: { ...matchmaker, docker: { ...matchmaker.docker!, image_id } } }
  const body = { display_name: '1.1.0', config }
  const { version_id } = await client.call(createGameVersion, { params: { game_id }, body })
  const deploy = { params: { game_id, namespace_id }, body: { version_id, message: 'Faster rounds' } }
  await client.call(updateGameNamespaceVersion, deploy)
  return version_id
}

test('a version whose servers fail is a problem, with the version that worked before as its remedy', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner' })
  const game = await platform.game({ matchmaker: { game_modes: LASTING } })
  const { game_id, namespace_id } = game
  const developer = platform.as(await personOf(platform, game.group_id, 'developer'))
  await game.find()
  await until('the lobby is in the tables', async () => {
    const { deploys } = await overviewOf(developer)
    return deploys[0]?.outcome === 'ready'
  })
  const checked_id = await deployChecked(platform, game)
  await until('the check before the deploy to count as a lobby that worked', async () => {
    const { deploys } = await overviewOf(developer)
    return deploys[0]?.version_id === checked_id && deploys[0].outcome === 'ready'
  })
  const version_id = await deployBroken(platform, developer, game)
  await until('a find on the broken version to fail', async () => {
    const error = await game.find({ prevent_auto_create_lobby: false }).then(
      () => null,
      (refusal: Error) => refusal,
    )
    return error !== null
  })
  const overview = await until('the failed servers are known', async () => {
    const now = await overviewOf(developer)
    return ofKind(now, 'version_crashing') !== undefined && now.deploys[0]?.outcome === 'failed' && now
  })
  const { title, text, since_ts, count, count_max, ...problem } = ofKind(overview, 'version_crashing')!
  assert.ok(count! > 0 && count === count_max && since_ts !== undefined)
  assert.equal(title, '1.1.0 crashes in prod')
  assert.match(text, /failed; the last one ended with exit code 3\.$/)
  assert.deepEqual(problem, {
    ...{ kind: 'version_crashing', severity: 'error', exit_code: 3 },
    ...{ group_id: game.group_id, game_id, namespace_id, version_id },
    remedy: {
      ...{ kind: 'roll_back', game_id, namespace_id },
      ...{ version_id: checked_id, version_display_name: '1.0.1' },
    },
  })
  assert.deepEqual(
    overview.deploys.map(({ outcome, message, version_display_name, deployed_by }) => [
      ...[outcome, message, version_display_name],
      deployed_by,
    ]),
    [
      ['failed', 'Faster rounds', '1.1.0', { kind: 'user', name: 'developer' }],
      ['ready', undefined, '1.0.1', { kind: 'admin', name: 'test' }],
      ['ready', undefined, '1.0.0', { kind: 'admin', name: 'test' }],
    ],
    'who deployed what, and whether it worked; the deploys that a new game begins with are left out',
  )
  const params = { game_id, namespace_id }
  const { versions } = await developer.call(getGameNamespaceVersionHistoryList, { params })
  assert.deepEqual(versions[0]!.deployed_by, { kind: 'user', name: 'developer' })
  const steps = { has_game: true, has_build: true, has_deploy: true, has_player: true }
  assert.deepEqual(overview.groups[0]!.first_steps, steps)
})

test('players and lobbies are counted now and at the end of each minute of the last hour', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: LASTING } })
  const viewer = platform.as(await personOf(platform, game.group_id, 'viewer'))
  const namespaceOf = ({ namespaces }: Overview) =>
    namespaces.find(({ namespace_id }) => namespace_id === game.namespace_id)!
  const before = namespaceOf(await overviewOf(viewer))
  assert.deepEqual([before.player_count, before.lobby_count, before.version_display_name], [0, 0, '1.0.0'])
  assert.deepEqual(new Set(before.last_hour.player_counts), new Set([0]))
  await game.find()
  const overview = await until('the lobby is in the tables', async () => {
    const now = await overviewOf(viewer)
    return namespaceOf(now).player_count === 1 && now
  })
  const now = namespaceOf(overview)
  assert.deepEqual([now.lobby_count, now.last_hour.player_counts.at(-1)], [1, 1])
  assert.deepEqual(
    overview.games.map((one) => [one.game_id, one.player_count, one.lobby_count]),
    [[game.game_id, 1, 1]],
  )
  platform.advance(120_000)
  const later = await until('the minutes are added up', async () => {
    const { last_hour } = namespaceOf(await overviewOf(viewer))
    return last_hour.player_counts.at(-3) === 1 && last_hour
  })
  assert.deepEqual([later.player_counts.length, later.lobby_counts.length], [60, 60])
  assert.deepEqual(later.lobby_counts.slice(-3), [1, 1, 1])
  assert.deepEqual([later.player_counts[0], later.lobby_counts[0]], [0, 0])
  assert.ok(Date.parse(later.start_ts) % 60_000 === 0)
})

test('stalled lobbies, limits, quotas, domains, certificates and captcha providers are problems', async (t) => {
  const platform = await startPlatform(t, { env: { MUSTER_QUOTA_GAMES: '1' } })
  platform.playServers()
  const { ctx } = platform
  const game = await platform.game({ matchmaker: { game_modes: LASTING } })
  const { game_id, namespace_id, group_id, version_id } = game
  const viewer = platform.as(await personOf(platform, group_id, 'viewer'))
  const params = { game_id, namespace_id }
  assert.deepEqual(kindsOf(await overviewOf(viewer)), ['quota_near'])

  const seat = await game.find()
  await platform.setLimits(game, { lobby_count_max: 1 })
  await platform.stallRun(seat.lobby.lobby_id)
  await platform.client.call(addNamespaceDomain, { params, body: { domain: 'play.example.com' } })
  const now_ms = ctx.now()
  // As the matchmaker and the job of certificates write them.
  await ctx.pool.query(
    `insert into explanations (ray_id, namespace_id, operation, create_ts, duration_us, code, explanation)
      values (gen_random_uuid(), $1, 'lobbies.find', $2, 1, 'CAPTCHA_PROVIDER_FAILED', '{}')`,
    [namespace_id, new Date(now_ms)],
  )
  await ctx.pool.query(
    `insert into domains (domain_id, namespace_id, domain, verification_status, txt_value, cname_label)
      values (gen_random_uuid(), $1, 'proven.example.com', 'active', 'a', 'b')`,
    [namespace_id],
  )
  await ctx.pool.query(
    `insert into certificates (host, wish_ts, next_ts, chain, error, expire_ts)
      values ('proven.example.com', $1, $1, 'chain', 'the order was refused', $2)`,
    [new Date(now_ms), new Date(now_ms + 86_400_000)],
  )
  const overview = await overviewOf(viewer)
  assert.deepEqual(kindsOf(overview).toSorted(), [
    ...['captcha_provider_failing', 'certificate_expiring', 'domain_unproven', 'lobbies_stalled'],
    ...['lobby_limit_near', 'quota_near'],
  ])
  assert.ok(overview.problems.every((problem) => problem.group_id === group_id))
  const stalled = ofKind(overview, 'lobbies_stalled')!
  assert.deepEqual([stalled.count, stalled.version_id, stalled.severity], [1, version_id, 'error'])
  const domain = ofKind(overview, 'domain_unproven')!
  assert.deepEqual(domain.remedy, { kind: 'prove_domain', ...params, domain: 'play.example.com' })
  const limit = ofKind(overview, 'lobby_limit_near')!
  assert.deepEqual([limit.count, limit.count_max, limit.remedy.page], [1, 1, 'limits'])
  const quota = ofKind(overview, 'quota_near')!
  assert.deepEqual([quota.quota, quota.count, quota.count_max], ['games', 1, 1])
  assert.equal(ofKind(overview, 'certificate_expiring')!.text, 'the order was refused')
  const severities = overview.problems.map(({ severity }) => severity)
  assert.deepEqual(severities, severities.toSorted(), 'errors are first')
})

test('a certificate is a problem when its renewal failed or is overdue, and not because its life is short', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { ctx } = platform
  const { namespace_id } = await platform.game()
  const certificates = [
    { host: 'short.example.com', next_ms: DAY_MS, expire_ms: 2 * DAY_MS, error: null },
    { host: 'overdue.example.com', next_ms: -2 * DAY_MS, expire_ms: 2 * DAY_MS, error: null },
    { host: 'refused.example.com', next_ms: DAY_MS, expire_ms: 2 * DAY_MS, error: 'the order was refused' },
    { host: 'early.example.com', next_ms: DAY_MS, expire_ms: 20 * DAY_MS, error: 'the order was refused' },
    { host: 'over.example.com', next_ms: -1, expire_ms: -1, error: null },
  ]
  for (const { host, next_ms, expire_ms, error } of certificates) {
    await ctx.pool.query(
      `insert into domains (domain_id, namespace_id, domain, verification_status, txt_value, cname_label)
        values (gen_random_uuid(), $1, $2, 'active', $2, $2)`,
      [namespace_id, host],
    )
    await ctx.pool.query(
      `insert into certificates (host, wish_ts, next_ts, chain, error, expire_ts) values ($1, $2, $2, 'chain', $3, $4)`,
      [host, new Date(ctx.now() + next_ms), error, new Date(ctx.now() + expire_ms)],
    )
  }
  const { problems } = await overviewOf(platform.client)
  const found = problems.filter(({ kind }) => kind === 'certificate_expiring').map((one) => [one.domain, one.severity])
  assert.deepEqual(found.toSorted(), [
    ['over.example.com', 'error'],
    ['overdue.example.com', 'warning'],
    ['refused.example.com', 'warning'],
  ])
})

test('each person sees the own groups only; administrators see all, and what is wrong with the platform', async (t) => {
  const platform = await startPlatform(t)
  const [game, other] = [await platform.game(), await platform.game()]
  const { client } = platform
  const stranger = platform.as(await personOf(platform, other.group_id, 'owner'))
  for (const role of ['owner', 'developer', 'viewer'] as const) {
    const overview = await overviewOf(platform.as(await personOf(platform, game.group_id, role)))
    assert.deepEqual(overview.problems, [])
    assert.deepEqual(
      overview.groups.map(({ group_id, role }) => [group_id, role]),
      [[game.group_id, role]],
    )
    assert.deepEqual(
      overview.games.map(({ game_id }) => game_id),
      [game.game_id],
    )
    assert.ok(overview.namespaces.every(({ game_id }) => game_id === game.game_id))
    assert.ok(overview.deploys.every(({ game_id }) => game_id === game.game_id))
  }
  const theirs = await overviewOf(stranger)
  assert.equal(JSON.stringify(theirs).includes(game.game_id), false)
  const query = { group_id: game.group_id }
  assert.equal((await failureOf(stranger.call(getOverview, { query }))).code, 'GROUP_NOT_FOUND')

  const all = await until('the matchmaker has its lease', async () => {
    const overview = await overviewOf(client)
    return !overview.problems.some(({ role }) => role === 'matchmaker') && overview
  })
  assert.deepEqual(new Set(all.games.map(({ game_id }) => game_id)), new Set([game.game_id, other.game_id]))
  const away = all.problems.filter(({ kind }) => kind === 'role_away').map(({ role, region }) => [role, region])
  assert.deepEqual(away, [
    ['edge', undefined],
    ['runner', 'local'],
  ])
  assert.deepEqual(kindsOf(await client.call(getOverview, { query })), [], 'of one group, the platform is no part')
  const { ctx } = platform
  const { disk_free_bytes_min } = ctx.config.lobbies
  await ctx.pool.query(`insert into runners (runner_id, regions, disk_free_bytes) values ('one', '{local}', $1)`, [
    disk_free_bytes_min - 1,
  ])
  const disk = ofKind(await overviewOf(client), 'disk_low')!
  assert.deepEqual([disk.region, disk.severity], ['local', 'error'])
  assert.equal(ofKind(await overviewOf(stranger), 'disk_low'), undefined)
})

test('the first namespaces of a game, which are equally old, are in the order of their names', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { client } = platform
  const { group_id } = await client.call(createGroup, { body: { display_name: 'Many' } })
  for (let count = 0; count < GAMES; count++) {
    await client.call(createGame, { body: { display_name: `Game ${count}`, developer_group_id: group_id } })
  }
  const { games, namespaces } = await overviewOf(client)
  const names = games.map(({ game_id }) =>
    namespaces.filter((one) => one.game_id === game_id).map((one) => one.name_id),
  )
  assert.deepEqual(new Set(names.map(String)), new Set(['prod,staging']))
})

test('a new group sees which first steps are done, and a long list says that it is cut', async (t) => {
  const platform = await startPlatform(t)
  const { client, ctx } = platform
  const { group_id } = await client.call(createGroup, { body: { display_name: 'New' } })
  const owner = platform.as(await personOf(platform, group_id, 'owner'))
  const nothing = { has_game: false, has_build: false, has_deploy: false, has_player: false }
  assert.deepEqual((await overviewOf(owner)).groups[0]!.first_steps, nothing)
  const game = await platform.game()
  const member = platform.as(await personOf(platform, game.group_id, 'owner'))
  const begun = await overviewOf(member)
  const steps = { has_game: true, has_build: true, has_deploy: true, has_player: false }
  assert.deepEqual(begun.groups[0]!.first_steps, steps)
  assert.equal(begun.is_cut, false)
  await ctx.pool.query(
    `insert into namespaces (namespace_id, game_id, name_id, display_name, version_id)
      select gen_random_uuid(), $1, 'many-' || n, 'Many', $2 from generate_series(1, $3) n`,
    [game.game_id, game.version_id, OVERVIEW_NAMESPACES_MAX],
  )
  const many = await overviewOf(member)
  assert.deepEqual([many.namespaces.length, many.is_cut], [OVERVIEW_NAMESPACES_MAX, true])
})
