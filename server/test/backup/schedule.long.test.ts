// Scheduled backups: encrypted, read again, kept by a rule, and restored over the API.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { chmod, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  getAdminBackups,
  getOverview,
  listStoredBackups,
  restoreAdminBackup,
  runAdminBackup,
  runAdminChecks,
} from '@musterhost/contract'
import { backupInto, newBackupKey, verify } from '../../src/backup/command.ts'
import { endFormerRestores } from '../../src/cloud/backups/operations.ts'
import { newGame } from '../cloud/steps.ts'
import { deploySite } from '../s3/steps.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'
import { changeByte, isStartError, temporary } from './steps.ts'

/** Rows, keys and stored files have it. */
const SECRET_TEXT = 'what only players of this game may read'

type Scene = { platform: Platform; repository: string; env: Record<string, string>; folder: string }

const shown = ({ platform }: Scene) => platform.client.call(getAdminBackups, {})
const stored = async ({ platform }: Scene) =>
  (await platform.client.call(listStoredBackups, {})).backups.map(({ name }) => name)

/** Resolves to the name of the next backup when old ones have been removed too. */
async function nextBackupOf(scene: Scene): Promise<string> {
  const nameOfLast = async () => (await shown(scene)).backups[0]?.folder.split('/').at(-1)
  const before = await nameOfLast()
  // Names are in seconds.
  await until('another second', () => nameOfNow() !== before)
  await scene.platform.client.call(runAdminBackup, {})
  await until('the backup to be recorded', async () => (await nameOfLast()) !== before)
  await until('the next to be planned', () => isPlanned(scene))
  return (await nameOfLast())!
}

/** A run plans the next one when it ends. */
async function isPlanned(scene: Scene): Promise<boolean> {
  const { schedule } = await shown(scene)
  return schedule?.next_ts !== undefined && Date.parse(schedule.next_ts) > scene.platform.ctx.now()
}

const nameOfNow = (): string => `${new Date().toISOString().slice(0, 19).replaceAll(':', '')}Z`

test('backups by a schedule', async (t) => {
  const folder = await temporary(t)
  // PostgreSQL of a restored platform runs as another user.
  await chmod(folder, 0o711)
  const repository = join(folder, 'repository')
  const env = {
    MUSTER_BACKUP_TO: repository,
    MUSTER_BACKUP_KEY: await newBackupKey(),
    MUSTER_BACKUP_SCHEDULE: '0 4 * * *',
    MUSTER_BACKUP_KEEP: '2d',
  }
  const platform = await startPlatform(t, { roles: 'api', env })
  const scene: Scene = { platform, repository, env, folder }
  await t.test('the first backup is made when the place is named, and the next at the time of the schedule', () =>
    begin(scene),
  )
  await t.test('nothing of it can be read without the key', () => encrypt(scene))
  await t.test('another key, and none, are refused before anything is written', () => refuseKeys(scene))
  await t.test('a platform is restored over the API into an empty folder, and verify finds nothing wrong', () =>
    restoreAll(scene),
  )
  await t.test('a restore that ended with its process is shown as failed, on its own node', () => endFormer(scene))
  await t.test("a folder that is not empty, relative, or the platform's own is refused", () => refuseFolders(scene))
  await t.test(
    'a damaged backup is named by verify, a failed run by the overview, and the next one copies only new files',
    () => meetDamage(scene),
  )
})

async function begin(scene: Scene): Promise<void> {
  const { repository } = scene
  const recorded = await until('the first backup', async () => {
    const all = await shown(scene)
    return all.backups.length === 1 && all.schedule?.next_ts !== undefined && all
  })
  const { schedule } = recorded
  assert.deepEqual(
    [schedule?.to, schedule?.schedule, schedule?.keep, schedule?.is_encrypted],
    [repository, '0 4 * * *', '2d', true],
  )
  await until('the next to be planned', () => isPlanned(scene))
  const next = new Date((await shown(scene)).schedule!.next_ts!)
  assert.deepEqual([next.getUTCHours(), next.getUTCMinutes()], [4, 0])
  assert.deepEqual(
    recorded.verifications.map(({ subject, is_sound }) => [subject, is_sound]),
    [['backup', true]],
  )
}

async function contentsOf(folder: string): Promise<Map<string, string>> {
  const items = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = items.filter((item) => item.isFile()).map((item) => join(item.parentPath, item.name))
  return new Map(await Promise.all(paths.map(async (path) => [path, await readFile(path, 'latin1')] as const)))
}

/** Without the notes of the store about its files. */
async function storedFilesOf(repository: string): Promise<Map<string, string>> {
  const files = await contentsOf(join(repository, 'objects'))
  return new Map([...files].filter(([path]) => !path.endsWith('.json')))
}

async function encrypt(scene: Scene): Promise<void> {
  const { platform, repository } = scene
  const game = await newGame(platform)
  await deploySite(platform, game, { 'index.html': Buffer.from(SECRET_TEXT) })
  const name = await nextBackupOf(scene)
  const files = await contentsOf(repository)
  assert.ok([...files.keys()].some((path) => path.endsWith(`${name}/manifest.json.age`)))
  for (const [path, text] of files) {
    if (path.endsWith('.json') && path.includes('/objects/')) continue
    assert.match(text, /^age-encryption\.org\/v1\n/, path)
    for (const plain of [SECRET_TEXT, game.game_id, 'Developers']) assert.ok(!text.includes(plain), path)
  }
  // Two days are kept, and all are of this day.
  assert.deepEqual(await stored(scene), [name])
}

async function refuseKeys({ platform, repository, env }: Scene): Promise<void> {
  const place = { MUSTER_DATA: platform.data_dir, DATABASE_URL: platform.ctx.config.database_url! }
  const before = await contentsOf(repository)
  const other = { ...place, MUSTER_BACKUP_KEY: await newBackupKey() }
  await assert.rejects(backupInto(other, repository, null), isStartError(/another key than MUSTER_BACKUP_KEY/))
  await assert.rejects(backupInto(place, repository, null), isStartError(/are encrypted\. Set MUSTER_BACKUP_KEY/))
  const where = { repository, name: null }
  await assert.rejects(verify(other, where), isStartError(/another key than MUSTER_BACKUP_KEY/))
  const plain = join(repository, '../plain')
  await backupInto(place, plain, null)
  const { MUSTER_BACKUP_KEY } = env
  await assert.rejects(
    backupInto({ ...place, MUSTER_BACKUP_KEY: MUSTER_BACKUP_KEY! }, plain, null),
    isStartError(/not encrypted/),
  )
  assert.deepEqual(await contentsOf(repository), before)
}

async function restoreAll(scene: Scene): Promise<void> {
  const { platform, folder } = scene
  const [name = ''] = await stored(scene)
  const restored = join(folder, 'restored')
  const { restore_id } = await platform.client.call(restoreAdminBackup, { body: { name, folder: restored } })
  const second = await failureOf(platform.client.call(restoreAdminBackup, { body: { name, folder: `${restored}-2` } }))
  assert.match(second.message, /A restore is under way/)
  const ended = await until('the restore', async () =>
    (await shown(scene)).restores.find((one) => one.restore_id === restore_id && one.end_ts !== undefined),
  )
  assert.equal(ended.failure, undefined)
  const { is_good, lines } = await verify({ MUSTER_DATA: restored }, null)
  assert.ok(is_good, lines.join('\n'))
  assert.match(lines.join('\n'), /1 object/)
  await refuseOther(scene)
  const again = await platform.client.call(restoreAdminBackup, { body: { name, folder: restored } })
  const failure = await until('the refusal', async () => {
    const row = (await shown(scene)).restores.find((one) => one.restore_id === again.restore_id)
    return row?.failure
  })
  assert.match(failure, /is not empty/)
}

/** As on the new machine before the restore. */
async function refuseOther({ platform, repository, env }: Scene): Promise<void> {
  const place = { MUSTER_DATA: platform.data_dir, DATABASE_URL: platform.ctx.config.database_url! }
  const { platform_id } = await platform.ctx.db.selectFrom('platform_ids').selectAll().executeTakeFirstOrThrow()
  const setId = (id: string) => platform.ctx.db.updateTable('platform_ids').set({ platform_id: id }).execute()
  await setId(randomUUID())
  const other = backupInto({ ...place, MUSTER_BACKUP_KEY: env.MUSTER_BACKUP_KEY! }, repository, null)
  await assert.rejects(other, isStartError(/has backups of another platform/))
  await setId(platform_id)
}

/** A process that was killed has recorded no end. */
async function endFormer(scene: Scene): Promise<void> {
  const { ctx } = scene.platform
  const row = { backup: '2026-01-01T040000Z', folder: '/tmp/restored', begin_ts: new Date(ctx.now()), end_ts: null }
  for (const node_id of [ctx.config.node_id, 'another-node']) {
    const restore = { ...row, restore_id: randomUUID(), node_id, failure: null }
    await ctx.db.insertInto('restores').values(restore).execute()
  }
  await endFormerRestores(ctx)
  const restores = (await shown(scene)).restores.filter(({ backup }) => backup === row.backup)
  const failures = new Map(restores.map(({ node_id, failure }) => [node_id, failure]))
  assert.match(failures.get(ctx.config.node_id) ?? '', /The api stopped meanwhile/)
  assert.equal(failures.get('another-node'), undefined)
  await ctx.db.deleteFrom('restores').where('backup', '=', row.backup).execute()
}

async function refuseFolders({ platform }: Scene): Promise<void> {
  const name = '2026-01-01T040000Z'
  for (const [folder, message] of [
    ['relative/path', /absolute path/],
    [join(platform.data_dir, 'new'), /must not be in the data folder/],
  ] as const) {
    const refusal = await failureOf(platform.client.call(restoreAdminBackup, { body: { name, folder } }))
    assert.equal(refusal.code, 'VALIDATION_ERROR')
    assert.match(JSON.stringify(refusal), message)
  }
}

async function meetDamage(scene: Scene): Promise<void> {
  const { platform, repository, env } = scene
  const [name] = await stored(scene)
  const place = { MUSTER_BACKUP_KEY: env.MUSTER_BACKUP_KEY!, MUSTER_DATA: platform.data_dir }
  const objects = [...(await storedFilesOf(repository)).keys()]
  const undo = await changeByte(objects[0]!, 0.9, 1)
  const bad = await verify(place, { repository, name: name! })
  assert.match(bad.lines.join('\n'), /cannot be decrypted/)
  await undo()
  assert.ok((await verify(place, { repository, name: name! })).is_good)

  await rename(repository, `${repository}-away`)
  await writeFile(repository, '')
  await platform.client.call(runAdminBackup, {})
  const failure = await until('the failure', async () => (await shown(scene)).schedule?.failure)
  assert.match(failure, /cannot be used|ENOTDIR|EEXIST/)
  const { findings } = await platform.client.call(runAdminChecks, {})
  assert.match(findings.find(({ check }) => check === 'backups')?.message ?? '', /the last one into/)
  const { problems } = await platform.client.call(getOverview, {})
  assert.ok(problems.some(({ kind, text }) => kind === 'backup_failed' && text === failure))
  const refusal = await failureOf(platform.client.call(listStoredBackups, {}))
  assert.equal(refusal.code, 'BACKUP_UNAVAILABLE')
  await rm(repository)
  await rename(`${repository}-away`, repository)
  // Encrypted again, a file would have other bytes.
  const before = await storedFilesOf(repository)
  await nextBackupOf(scene)
  assert.deepEqual(await storedFilesOf(repository), before, 'no stored file was written again')
}
