// muster deploy --preview, as processes on a real platform with a runner and an edge.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { type TestContext, test } from 'node:test'
import {
  createCloudToken,
  createGameNamespaceTokenPublic,
  findLobby,
  getGameById,
  getGameNamespaceVersionHistoryList,
} from '@musterhost/contract'
import { get } from '../../server/test/edge/get.ts'
import { lacking } from '../../server/test/run/optional-programs.ts'
import { type Platform, startPlatform } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import { previewName } from '../src/deploy/preview.ts'
import { createProject, type DeployedProject } from './deploy-steps.ts'

const HOUR_MS = 60 * 60_000
const DAY_MS = 24 * HOUR_MS

test('the name of a preview is made from the branch, and two branches are two previews', () => {
  assert.equal(previewName('Feature/Bots_2'), 'feature-bots-2')
  const [long, other] = [previewName('feature/a-very-long-branch'), previewName('feature/a-very-long-branch-2')]
  assert.match(long, /^feature-a-v-[0-9a-f]{4}$/)
  assert.ok(other.length <= 16 && other !== long, other)
  assert.match(previewName('long-words-12-and-more'), /^[a-z0-9]+(-[a-z0-9]+)*$/)
  assert.throws(() => previewName('日本'), /no letters and digits for the name of a preview/)
})

test('previews', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge' })
  await t.test('a preview is a namespace of the branch that expires; another deploy prolongs it', (t) =>
    newPreview(t, platform),
  )
  await t.test('a preview that has expired is gone with its lobbies, and its name can be used again', (t) =>
    expired(t, platform),
  )
  await t.test('a namespace that does not expire is no preview, and wrong options are refused', (t) =>
    refusals(t, platform),
  )
})

async function namespaceOf(platform: Platform, { game_id }: DeployedProject, name: string) {
  const { game } = await platform.client.call(getGameById, { params: { game_id } })
  return game.namespaces.find(({ name_id }) => name_id === name)
}

/** How long it is until the platform deletes the preview. */
const remainingMs = ({ ctx }: Platform, expire_ts: string | undefined): number => Date.parse(expire_ts!) - ctx.now()

async function newPreview(t: TestContext, platform: Platform): Promise<void> {
  const missing = lacking('git')
  if (missing !== null) return t.skip(missing)
  const project = await createProject(t, platform, { game: 'pre', site: { 'index.html': '<h1>Preview</h1>' } })
  execFileSync('git', ['init', '-q', '-b', 'feature/bots'], { cwd: project.folder })
  // In CI, a cloud token of the game suffices.
  const { game_id } = project
  const cloud = await platform.client.call(createCloudToken, { params: { game_id } })
  const run = (...options: string[]) => project.run(['deploy', ...options], { MUSTER_TOKEN: cloud.token })
  const first = await run('--preview', '-m', 'Bots')
  assert.equal(first.code, 0, first.stderr)
  assert.ok(first.stderr.startsWith(`Deploying pre to feature-bots on ${platform.edge_url}\n`), first.stderr)
  assert.match(first.stderr, /first lobby ready in \d+ ms\n/)
  const [, url, expire_ts] =
    /^Play: (\S+)\nExpires: (\S+) \(in 3 d\)\. Each deploy prolongs it\.\n$/.exec(first.stdout) ?? []
  assert.ok(url?.includes('pre--feature-bots.'), first.stdout)
  const { host, port } = new URL(url!)
  const page = await get({ port: Number(port) }, '/', { headers: { host } })
  assert.deepEqual([page.status, page.body.toString()], [200, '<h1>Preview</h1>'])
  const preview = (await namespaceOf(platform, project, 'feature-bots'))!
  assert.equal(preview.expire_ts, expire_ts)
  const params = { game_id, namespace_id: preview.namespace_id }
  const { versions } = await platform.client.call(getGameNamespaceVersionHistoryList, { params })
  assert.deepEqual(
    versions.map(({ message }) => message),
    ['Bots'],
  )
  const prod = (await namespaceOf(platform, project, 'prod'))!
  assert.notEqual(prod.version_id, preview.version_id)

  // Nothing has changed, and yet the preview lives longer.
  const again = await run('--preview', '--ttl', '5d', '--json')
  assert.equal(again.code, 0, again.stderr)
  const result = JSON.parse(again.stdout) as { is_new: boolean; expire_ts: string }
  assert.equal(result.is_new, false)
  const remaining_ms = remainingMs(platform, result.expire_ts)
  assert.ok(remaining_ms > 4 * DAY_MS && remaining_ms <= 5 * DAY_MS, `${remaining_ms}`)
  const shorter = await run('--preview', '--ttl', '1h', '--json')
  assert.equal(JSON.parse(shorter.stdout).expire_ts, result.expire_ts)
  project.write('site/index.html', '<h1>Second</h1>')
  const changed = await run('--preview', 'feature/bots', '--detach', '--json')
  assert.deepEqual([changed.code, JSON.parse(changed.stdout).is_new], [0, true], changed.stderr)
  assert.equal(JSON.parse(changed.stdout).namespace_id, preview.namespace_id)

  const list = await project.run(['namespaces'])
  assert.match(list.stdout, /NAMESPACE .* EXPIRES\n/)
  assert.match(list.stdout, /feature-bots .* in 5 d\n/)
  assert.match(list.stdout, /prod .* never\n/)
}

async function expired(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform)
  await project.deploy('--preview', 'pr-7', '--ttl', '1h')
  const before = (await namespaceOf(platform, project, 'pr-7'))!
  const params = { game_id: project.game_id, namespace_id: before.namespace_id }
  const { token } = await platform.client.call(createGameNamespaceTokenPublic, { params })
  const body = { game_modes: ['default'] }
  await platform.as(token).call(findLobby, { body })
  platform.stepWallClock(HOUR_MS)
  t.after(() => platform.stepWallClock(-HOUR_MS))
  // At once: the command waits for the deletion of the old one.
  const again = project.run(['deploy', '--preview', 'pr-7', '--ttl', '3h', '--json'])
  await until('the expired namespace is deleted', async () => {
    platform.stepWallClock(1_000)
    const row = await platform.ctx.db
      .selectFrom('namespaces')
      .select('namespace_id')
      .where('namespace_id', '=', before.namespace_id)
      .executeTakeFirst()
    return row === undefined
  })
  const { code, stdout, stderr } = await again
  assert.equal(code, 0, stderr)
  assert.notEqual(JSON.parse(stdout).namespace_id, before.namespace_id)
  await assert.rejects(platform.as(token).call(findLobby, { body }), { code: 'NAMESPACE_NOT_FOUND' })
}

async function refusals(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform)
  const refused = async (options: string[], words: RegExp) => {
    const { code, stderr } = await project.run(['deploy', ...options])
    assert.equal(code, 2, stderr)
    assert.match(stderr, words)
  }
  await refused(['--preview', 'prod'], /The namespace prod is no preview: it does not expire\.\nChoose another name/)
  await refused(['--ttl', '3d'], /--ttl is for previews only\.\nAdd --preview/)
  await refused(['--preview', 'a', '--namespace', 'b'], /--preview and --namespace exclude each other/)
  await refused(['--preview', 'a', '--ttl', '400d'], /--ttl is at most 366 d\./)
  await refused(['--preview', 'a', '--ttl', 'soon'], /takes a number with a unit/)
  await refused(['--preview'], /on no branch of git that could name the preview\.\nName the preview: --preview NAME/)
  const prod = (await namespaceOf(platform, project, 'prod'))!
  assert.equal(prod.expire_ts, undefined)

  const namespaces = (...args: string[]) => project.run(['namespaces', ...args])
  assert.equal((await namespaces('create', 'beta')).code, 0)
  const expires = await namespaces('expire', 'beta', '--ttl', '12h')
  assert.deepEqual([expires.code, /expires in 12 h, at /.test(expires.stderr)], [0, true], expires.stderr)
  assert.ok(remainingMs(platform, (await namespaceOf(platform, project, 'beta'))!.expire_ts) > 11 * HOUR_MS)
  assert.equal((await namespaces('expire', 'beta', '--never')).code, 0)
  assert.equal((await namespaceOf(platform, project, 'beta'))!.expire_ts, undefined)
  for (const flags of [[], ['--never', '--ttl', '1d']]) {
    const wrong = await namespaces('expire', 'beta', ...flags)
    assert.deepEqual([wrong.code, wrong.stderr.includes('--ttl 3d, or --never')], [2, true], wrong.stderr)
  }
}
