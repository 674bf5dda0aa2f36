// Backups of and to a bucket, and the move of stored files into one.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, rm } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'node:test'
import {
  completeUpload,
  getAdminBackups,
  getGames,
  restoreAdminBackup,
  restoreGame,
  runAdminBackup,
} from '@musterhost/contract'
import { backupInto, backups, copyStored, newBackupKey, restore, verify } from '../../src/backup/command.ts'
import { StartError } from '../../src/config/start-error.ts'
import type { S3Client } from '../../src/objects/s3/client.ts'
import { listFiles } from '../../src/objects/s3/files.ts'
import { emptyPlatform, temporary } from '../backup/steps.ts'
import { newGame, type TestGame } from '../cloud/steps.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { BUCKET, clientOf, type S3TestService, s3Settings, startSmallS3 } from './service.ts'
import { deploySite, filesOf, prepareSite, putBytes, visit } from './steps.ts'
import { startSwift, swiftObstacle } from './swift.ts'

const FILES = { 'index.html': Buffer.from('<h1>a game</h1>'), 'engine.bin': randomBytes(700_000) }

type Place = Record<string, string> & { MUSTER_DATA: string; DATABASE_URL: string }

/** What a command of the operator of this platform has in its environment. */
function environmentOf({ ctx, data_dir }: Platform, settings: Record<string, string>): Place {
  return { MUSTER_DATA: data_dir, DATABASE_URL: ctx.config.database_url!, ...settings }
}

async function upload(platform: Platform, game: TestGame, files: Record<string, Buffer>): Promise<string> {
  const { upload_id, presigned } = await prepareSite(platform, game, files)
  for (const one of presigned) assert.equal((await putBytes(platform, one, files[one.path]!)).status, 200)
  await platform.client.call(completeUpload, { params: { upload_id } })
  return upload_id
}

async function pathsOf(client: S3Client, folder: string): Promise<string[]> {
  return Array.fromAsync(listFiles(client, folder))
}

/** Commands name backups by the second. */
async function nextSecond(): Promise<void> {
  const second = Math.floor(Date.now() / 1_000)
  while (Math.floor(Date.now() / 1_000) === second) await new Promise((resolve) => setTimeout(resolve, 20))
}

async function backsUp(t: test.TestContext, service: S3TestService): Promise<void> {
  const settings = s3Settings(service, 'platform')
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge', env: settings })
  const game = await newGame(platform)
  const host = await deploySite(platform, game, FILES)
  const env = environmentOf(platform, settings)
  const repository = `s3://${BUCKET}/backups-of/muster`
  const client = clientOf(t, service, 'backups-of/muster')

  await t.test('only new objects are copied', async () => {
    const first = await backupInto(env, repository, null)
    assert.match(first.lines[0]!, /2 objects \(0\.7 MB\), of which 2 objects \(0\.7 MB\) were new/)
    await nextSecond()
    await upload(platform, game, { 'more.txt': Buffer.from('more') })
    const second = await backupInto(env, repository, null)
    assert.ok(second.is_good)
    assert.match(second.lines[0]!, /3 objects \(0\.7 MB\), of which 1 object \(0 MB\) were new/)
    assert.equal((await backups(env, repository)).lines.length, 2)
    assert.equal((await pathsOf(client, 'objects/')).length, 3)
  })

  await t.test('a backup is verified, and a changed byte of an object is found', async () => {
    const where = { repository, name: null }
    const good = await verify(env, where)
    assert.deepEqual(
      good.report.checks.flatMap(({ findings }) => findings),
      [],
    )
    assert.ok((await verify(env, null)).is_good)
    const [path] = await pathsOf(client, 'objects/')
    const before = await client.send({ method: 'GET', key: path! })
    const forged = Buffer.from('forged')
    const sha256 = createHash('sha256').update(forged).digest('hex')
    const body = { content_length: forged.length, sha256, open: () => forged }
    const kept = await platform.ctx.objects.read(path!.slice('objects/'.length))
    const bytes = Buffer.concat(await Array.fromAsync(kept as AsyncIterable<Buffer>))
    await client.send({ method: 'PUT', key: path!, body })
    const bad = await verify(env, where)
    assert.equal(bad.is_good, false)
    assert.match(bad.lines.join('\n'), /objects\/\w\w\/\w{32} is damaged/)
    const target = { ...(await emptyPlatform(t)), ...settings, MUSTER_OBJECTS: `s3://${BUCKET}/other` }
    await assert.rejects(
      restore(target, where),
      (error) => error instanceof StartError && /is damaged/.test(error.message),
    )
    assert.equal(existsSync(target.MUSTER_DATA), false)
    const right = createHash('sha256').update(bytes).digest('hex')
    const headers = { 'x-amz-meta-muster-sha256': right }
    await client.send({
      ...{ method: 'PUT', key: path!, headers },
      body: { content_length: bytes.length, sha256: right, open: () => bytes },
    })
    assert.equal(before.status, 200)
    assert.ok((await verify(env, where)).is_good)
  })

  await t.test('a restore from the bucket makes the platform again, in a bucket and in a folder', async (t) => {
    for (const [place, roles] of [
      [{ MUSTER_OBJECTS: `s3://${BUCKET}/restored` }, 'api,matchmaker,edge'],
      [{ MUSTER_OBJECTS: '' }, 'api,matchmaker,edge'],
    ] as const) {
      const target = { ...(await emptyPlatform(t)), ...settings, ...place }
      await restore(target, { repository, name: null })
      assert.deepEqual(
        (await verify(target, null)).report.checks.flatMap(({ findings }) => findings),
        [],
      )
      const restored = await startPlatform(t, {
        ...{ roles, env: { ...settings, ...place }, data_dir: target.MUSTER_DATA, database_url: target.DATABASE_URL },
      })
      for (const [path, bytes] of Object.entries(FILES)) {
        assert.ok((await visit(restored, host, `/${path}`)).body.equals(bytes))
      }
      await restored.close()
    }
  })

  await t.test('an encrypted backup is restored with its key, and its objects cannot be read without it', async (t) => {
    const secret = `s3://${BUCKET}/encrypted`
    const encrypted = { ...env, MUSTER_BACKUP_KEY: await newBackupKey() }
    const first = await backupInto(encrypted, secret, null)
    assert.match(first.lines[0]!, /of which 3 objects .* were new\. It is encrypted/)
    await nextSecond()
    assert.match((await backupInto(encrypted, secret, null)).lines[0]!, /of which 0 objects/)
    const stored = clientOf(t, service, 'encrypted')
    for (const path of await pathsOf(stored, '')) {
      const { text } = await stored.send({ method: 'GET', key: path })
      assert.match(text, /^age-encryption\.org\/v1\n/, path)
    }
    const where = { repository: secret, name: null }
    assert.ok((await verify(encrypted, where)).is_good)
    const target = { ...(await emptyPlatform(t)), ...settings, MUSTER_OBJECTS: '' }
    await assert.rejects(
      restore(target, where),
      (error) => error instanceof StartError && /are encrypted/.test(error.message),
    )
    const { MUSTER_BACKUP_KEY } = encrypted
    await restore({ ...target, MUSTER_BACKUP_KEY }, where)
    assert.ok((await verify(target, null)).is_good)
  })

  await t.test('old backups are removed, with the objects that only they have', async () => {
    const row = await platform.ctx.db
      .selectFrom('upload_files')
      .innerJoin('uploads', 'uploads.upload_id', 'upload_files.upload_id')
      .select(['uploads.upload_id', 'object_key'])
      .where('path', '=', 'more.txt')
      .executeTakeFirstOrThrow()
    for (const table of ['upload_files', 'sites', 'uploads'] as const) {
      await platform.ctx.db.deleteFrom(table).where('upload_id', '=', row.upload_id).execute()
    }
    await nextSecond()
    const { lines } = await backupInto(env, repository, 1)
    assert.match(lines.join('\n'), /2 old backups and 1 object of it were removed/)
    assert.equal((await backups(env, repository)).lines.length, 1)
    const paths = await pathsOf(client, 'objects/')
    assert.equal(paths.length, 2)
    assert.ok(!paths.includes(`objects/${row.object_key}`))
    assert.ok((await verify(env, { repository, name: null })).is_good)
  })
}

test('backups to a small S3', async (t) => backsUp(t, await startSmallS3(t)))

// It takes half a minute.
if (process.env.SWIFT_BACKUPS === '1') {
  test('backups to OpenStack Swift', async (t) => {
    const obstacle = swiftObstacle()
    if (obstacle !== null) return t.skip(obstacle)
    await backsUp(t, await startSwift(t))
  })
}

test('three games are lost with their platform', async (t) => {
  const service = swiftObstacle() === null ? await startSwift(t) : await startSmallS3(t)
  const env = {
    ...s3Settings(service, 'three'),
    ...{ MUSTER_BACKUP_TO: `s3://${BUCKET}/three-games`, MUSTER_BACKUP_KEY: await newBackupKey() },
  }
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge', env })
  const hosts: Record<string, string> = {}
  for (const name of ['first', 'second', 'third']) {
    const game = await newGame(platform)
    const host = await deploySite(platform, game, { 'index.html': Buffer.from(name) })
    hosts[host.split('.')[0]!] = host
  }
  const [, second = ''] = Object.keys(hosts)
  await until('the first backup by the schedule', () => lastBackupOf(platform))
  await platform.client.call(runAdminBackup, {})
  const name = await until('a backup of all games', async () => {
    const { backups: made } = await platform.client.call(getAdminBackups, {})
    return (made[0]?.object_count ?? 0) === 3 && lastBackupOf(platform)
  })
  await platform.close()
  await rm(platform.data_dir, { recursive: true })

  await t.test('an empty platform restores all, and verify is clean', async (t) => {
    const folder = await temporary(t)
    // PostgreSQL of the restored platform runs as another user.
    await chmod(folder, 0o711)
    const target = join(folder, 'restored')
    const empty = await startPlatform(t, { roles: 'api', env })
    await empty.client.call(restoreAdminBackup, { body: { name, folder: target } })
    await endOfRestore(empty)
    const { is_good, lines } = await verify({ ...env, MUSTER_DATA: target }, null)
    assert.ok(is_good, lines.join('\n'))
    assert.match(lines.join('\n'), /3 objects/)
  })

  await t.test('one of them comes back alone in another platform, with its site', async (t) => {
    const settings = { ...env, MUSTER_OBJECTS: '' }
    const other = await startPlatform(t, { roles: 'api,matchmaker,edge', env: settings })
    await other.client.call(restoreGame, { body: { name, game: second } })
    await endOfRestore(other)
    const { games } = await other.client.call(getGames, {})
    assert.deepEqual(
      games.map(({ name_id }) => name_id),
      [second],
    )
    const served = await until('the edge to know the game', async () => {
      const response = await visit(other, hosts[second]!, '/')
      return response.status === 200 && response
    })
    assert.equal(served.body.toString(), 'second')
    const { is_good, lines } = await verify(environmentOf(other, settings), null)
    assert.ok(is_good, lines.join('\n'))
  })
})

/** The name; null: none was recorded yet. */
async function lastBackupOf({ client }: Platform): Promise<string | null> {
  const { backups: made } = await client.call(getAdminBackups, {})
  return made[0]?.folder.split('/').at(-1) ?? null
}

async function endOfRestore({ client }: Platform): Promise<void> {
  const restore = await until('the end of the restore', async () => {
    const { restores } = await client.call(getAdminBackups, {})
    return restores[0]?.end_ts !== undefined && restores[0]
  })
  assert.equal(restore.failure, undefined)
}

test('backups to a repository in a folder, and stored files move into a bucket', async (t) => {
  const service = await startSmallS3(t)
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  const game = await newGame(platform)
  const host = await deploySite(platform, game, FILES)
  const s3 = s3Settings(service, 'moved')
  const { MUSTER_OBJECTS, ...login } = s3
  const env = environmentOf(platform, login)

  await t.test('a folder shares objects between backups', async (t) => {
    const repository = join(await temporary(t), 'backups')
    await backupInto(env, repository, null)
    await nextSecond()
    assert.match((await backupInto(env, repository, 1)).lines.join('\n'), /0 objects \(0 MB\) were new/)
    assert.equal((await backups(env, repository)).lines.length, 1)
    assert.ok((await verify(env, { repository, name: null })).is_good)
    const target = await emptyPlatform(t)
    await restore(target, { repository, name: null })
    assert.ok((await verify(target, null)).is_good)
  })

  await t.test('the copy goes on where it was, and the platform starts with the bucket', async (t) => {
    assert.match((await copyStored(env, MUSTER_OBJECTS!)).lines[0]!, /2 objects \(0\.7 MB\) were copied now/)
    const upload_id = await upload(platform, game, { 'late.txt': Buffer.from('late') })
    assert.match((await copyStored(env, MUSTER_OBJECTS!)).lines[0]!, /1 object \(0 MB\) were copied now/)
    await platform.close()
    const moved = await startPlatform(t, {
      ...{ roles: 'api,matchmaker,edge', env: s3, data_dir: platform.data_dir, database_url: env.DATABASE_URL },
    })
    for (const [path, bytes] of Object.entries(FILES)) {
      assert.ok((await visit(moved, host, `/${path}`)).body.equals(bytes))
    }
    assert.equal((await filesOf(moved, upload_id)).length, 1)
    assert.ok((await verify(environmentOf(moved, s3), null)).is_good)
    // Back to a folder, beside the old one.
    const folder = await temporary(t)
    assert.match((await copyStored(environmentOf(moved, s3), folder)).lines[0]!, /3 objects/)
  })
})
