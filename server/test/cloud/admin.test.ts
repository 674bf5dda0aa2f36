// What the operator sees: groups, users, regions, processes, jobs, settings, backups and checks.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  createGroup,
  getAdminBackups,
  getOverview,
  listAdminGroups,
  listAdminJobs,
  listAdminProcesses,
  listAdminRegions,
  listAdminSettings,
  listAdminUsers,
  runAdminChecks,
} from '@musterhost/contract'
import { startSweeper } from '../../src/database/sweeper.ts'
import { runCommand } from '../backup/commands.ts'
import { LONG_MS } from '../http/steps.ts'
import { personOf } from '../http/world.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'

const LASTING = { default: { idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS } }

test('the operator lists all groups with their use, and all users, page by page and by a text', async (t) => {
  const platform = await startPlatform(t, { env: { MUSTER_QUOTA_GAMES: '5' } })
  platform.playServers()
  const { client } = platform
  const game = await platform.game({ matchmaker: { game_modes: LASTING } })
  for (const display_name of ['Second', 'Third']) await client.call(createGroup, { body: { display_name } })
  const owner = await personOf(platform, game.group_id, 'owner')
  await personOf(platform, game.group_id, 'viewer')
  await game.find()
  const { groups, is_cut } = await until('the lobby is in the tables', async () => {
    const page = await client.call(listAdminGroups, {})
    return page.groups.some(({ lobby_count }) => lobby_count === 1) && page
  })
  assert.equal(is_cut, false)
  assert.deepEqual(
    groups.map(({ display_name, lobby_count, player_count }) => [display_name, lobby_count, player_count]),
    [
      ['Third', 0, 0],
      ['Second', 0, 0],
      ['Developers', 1, 1],
    ],
  )
  const [, , developers] = groups
  const { user_id } = platform.ctx.keys.verify(owner, platform.ctx.now()) as { user_id: string }
  assert.deepEqual(developers!.owner, {
    ...{ identity_id: user_id, display_name: 'owner', email: `${user_id}@example.com` },
  })
  const uses = Object.fromEntries(developers!.quotas.map(({ quota, used, limit }) => [quota, [used, limit ?? null]]))
  assert.deepEqual(uses.games, [1, 5])
  assert.deepEqual([uses.namespaces![0], uses.builds![0], uses.members![0]], [2, 1, 2])
  assert.ok(uses.bytes![0]! > 0)

  const first = await client.call(listAdminGroups, { query: { limit: 2 } })
  assert.deepEqual([first.groups.length, first.is_cut], [2, true])
  const query = { limit: 2, before_group_id: first.groups[1]!.group_id }
  const rest = await client.call(listAdminGroups, { query })
  assert.deepEqual([rest.groups.map(({ group_id }) => group_id), rest.is_cut], [[game.group_id], false])
  const named = await client.call(listAdminGroups, { query: { text: 'sec' } })
  assert.deepEqual(
    named.groups.map(({ display_name }) => display_name),
    ['Second'],
  )

  const { users } = await client.call(listAdminUsers, {})
  assert.equal(users.length, 2)
  const [found] = (await client.call(listAdminUsers, { query: { text: user_id.toUpperCase() } })).users
  assert.deepEqual([found!.identity_id, found!.group_count, found!.session_count], [user_id, 1, 1])
  const one = await client.call(listAdminUsers, { query: { limit: 1 } })
  const other = await client.call(listAdminUsers, {
    query: { limit: 1, before_identity_id: one.users[0]!.identity_id },
  })
  assert.deepEqual(
    [...one.users, ...other.users].map(({ identity_id }) => identity_id),
    users.map(({ identity_id }) => identity_id),
  )
  assert.deepEqual([one.is_cut, other.is_cut], [true, false])
})

test('regions show their tiers, capacity and use; processes show which roles run', async (t) => {
  const platform = await startPlatform(t, { env: { MUSTER_CAPACITY_CORES: '8' } })
  platform.playServers()
  const { client } = platform
  const game = await platform.game({ matchmaker: { game_modes: LASTING } })
  await game.find()
  const region = await until('the lobby is in the tables', async () => {
    const [local] = (await client.call(listAdminRegions, {})).regions
    return local!.lobby_count === 1 && local
  })
  assert.deepEqual([region.region_name_id, region.player_count, region.cpu_cores_max], ['local', 1, 8])
  assert.ok(region.cpu_cores > 0 && region.memory_mb > 0)
  assert.deepEqual(region.use_by_tier, [{ tier_name_id: region.default_tier, lobby_count: 1 }])
  assert.ok(region.tiers.some(({ tier_name_id }) => tier_name_id === region.default_tier))

  const { processes } = await client.call(listAdminProcesses, {})
  const { node_id } = platform.ctx.config
  assert.deepEqual(
    processes.map(({ name, state }) => [name, state]),
    [
      ['database', 'running'],
      [`api of ${node_id}`, 'running'],
      [`matchmaker of ${node_id}`, 'running'],
      ['runner', 'away'],
      ['edge', 'away'],
    ],
    'each role once',
  )
  const start_ms = Math.floor(performance.timeOrigin / 1_000) * 1_000
  for (const { role, start_ts } of processes.slice(1, 3)) {
    assert.equal(Date.parse(start_ts ?? ''), start_ms, `the ${role} runs since its process has started`)
  }
})

test('a job that fails is shown with its reason until it succeeds', async (t) => {
  const platform = await startPlatform(t)
  const { client, ctx } = platform
  let is_broken = true
  const remove = async (): Promise<number> => {
    if (is_broken) throw new Error('the disk is full\nsecond line')
    return 0
  }
  const sweeper = startSweeper(ctx, 'api', 10, [{ what: 'trial', remove }])
  t.after(() => sweeper.stop())
  const jobOf = async () => (await client.call(listAdminJobs, {})).jobs.find(({ name }) => name === 'trial')
  const failed = await until('the failure is recorded', jobOf)
  assert.deepEqual([failed.role, failed.kind, failed.failure], ['api', 'sweep', 'the disk is full'])
  assert.equal(failed.last_success_ts, undefined)
  const { problems } = await client.call(getOverview, {})
  assert.equal(problems.find(({ kind }) => kind === 'job_failing')?.text, 'the disk is full')
  is_broken = false
  const mended = await until('the success is recorded', async () => {
    const job = await jobOf()
    return job !== undefined && job.failure === undefined && job
  })
  assert.ok(mended.last_success_ts !== undefined)
})

test('settings show where they come from, and no secret', async (t) => {
  const secret = 'a-secret-token-of-the-metrics'
  const env = { MUSTER_QUOTA_GAMES: '5', MUSTER_METRICS_TOKEN: secret }
  const platform = await startPlatform(t, { env })
  const { settings } = await platform.client.call(listAdminSettings, {})
  const settingOf = (name: string) => settings.find((setting) => setting.name === name)!
  const { source, value, is_secret } = settingOf('MUSTER_QUOTA_GAMES')
  assert.deepEqual([source, value, is_secret], ['environment', '5', false])
  const kept = settingOf('MUSTER_RETENTION_AUDIT_DAYS')
  assert.deepEqual([kept.source, kept.value], ['default', kept.default])
  const { value: shown, ...hidden } = settingOf('MUSTER_METRICS_TOKEN')
  assert.deepEqual([shown, hidden.source, hidden.is_secret], [undefined, 'environment', true])
  assert.equal(settingOf('DATABASE_URL').value, undefined)
  assert.equal(JSON.stringify(settings).includes(secret), false)
})

test('a backup and its verification are shown after the commands', async (t) => {
  const platform = await startPlatform(t)
  const { client, ctx, data_dir } = platform
  await platform.game()
  assert.deepEqual(await client.call(getAdminBackups, {}), { backups: [], verifications: [], restores: [] })
  const parent = await mkdtemp(join(tmpdir(), 'muster-backups-'))
  t.after(() => rm(parent, { recursive: true, force: true }))
  const folder = join(parent, 'today')
  const env = { MUSTER_DATA: data_dir, DATABASE_URL: ctx.config.database_url! }
  const taken = await runCommand(['backup', folder], env)
  assert.equal(taken.code, 0, taken.output)
  const verified = await runCommand(['verify', folder], env)
  assert.equal(verified.code, 0, verified.output)
  const { backups, verifications } = await client.call(getAdminBackups, {})
  const [backup] = backups
  assert.deepEqual([backups.length, backup!.folder, backup!.object_count, backup!.lacking_count], [1, folder, 1, 0])
  assert.ok(backup!.object_bytes > 0 && backup!.row_count > 0 && backup!.create_ts <= backup!.end_ts)
  assert.deepEqual(
    verifications.map(({ end_ts: _, ...verification }) => verification),
    [{ subject: 'backup', folder, is_sound: true, finding_count: 0 }],
  )
})

test('the checks of the doctor run in the platform', async (t) => {
  const platform = await startPlatform(t)
  const both = await Promise.all([platform.client.call(runAdminChecks, {}), platform.client.call(runAdminChecks, {})])
  assert.deepEqual(both[0], both[1], 'calls at the same time share one run')
  const statusOf = (check: string) => both[0].findings.find((finding) => finding.check === check)?.status
  assert.deepEqual([statusOf('database'), statusOf('data folder')], ['ok', 'ok'])
  assert.equal(statusOf('ports'), undefined, 'the platform has them itself')
  assert.ok(
    both[0].findings.every(
      ({ status, remedy }) => (status === 'failed') === (remedy !== undefined) || status === 'warning',
    ),
  )
})
