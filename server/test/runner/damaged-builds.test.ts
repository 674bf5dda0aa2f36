// Builds whose bytes have changed on the disk, in the stored archive or in the unpacked copy. Each test flips bits and
// wants a lobby. Bytes that differ from the upload are never executed.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { appendFile, chmod, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { changeByte } from '../backup/steps.ts'
import { until } from '../support/until.ts'
import { openRunner, type RunnerFixture } from './runner-fixture.ts'

const FILES = { run: 'echo sound; exec sleep 60', 'lib/code.txt': 'some code', 'lib/more.txt': 'more code' }
const MODE = { args: ['sh', 'run'] }
const isStarted = (row: { start_ts: Date | null }): boolean => row.start_ts !== null
const isEnded = (row: { exit_ts: Date | null }): boolean => row.exit_ts !== null

async function archivesOf({ ctx }: RunnerFixture): Promise<{ object_key: string; path: string }[]> {
  const rows = await ctx.db.selectFrom('upload_files').select('object_key').orderBy('byte_offset').execute()
  return rows.map(({ object_key }) => ({ object_key, path: ctx.objects.localPath(object_key)! }))
}

async function buildFolder({ ctx }: RunnerFixture): Promise<string> {
  const folder = join(ctx.config.data_dir, 'builds')
  const names = (await readdir(folder)).filter((name) => !name.startsWith('.'))
  assert.equal(names.length, 1)
  return join(folder, names[0]!)
}

async function requireRefused(fixture: RunnerFixture, lobby_id: string, sentence: RegExp): Promise<void> {
  const row = await fixture.run(lobby_id, 'the start fails', isEnded)
  assert.deepEqual([row.exit_reason, row.exit_code, row.handle.pid], ['build_damaged', null, undefined])
  await until('the log explains it', async () =>
    (await fixture.log(lobby_id, 'stderr')).some((line) => sentence.test(line)),
  )
}

test('a stored archive with one changed bit is marked, not run, and not read again', async (t) => {
  for (const place of [0.1, 0.5, 0.99]) {
    await t.test(`at ${place}`, async (step) => {
      const fixture = await openRunner(step)
      const { ctx } = fixture
      const role = await fixture.start()
      const version_id = await fixture.version(FILES, MODE)
      const archives = await archivesOf(fixture)
      const mend = await changeByte(archives[1]!.path, place, 4)
      await requireRefused(fixture, await fixture.lobby(version_id), /archive of the build is damaged/)
      assert.deepEqual(await readdir(join(ctx.config.data_dir, 'builds')), [])
      const marks = await ctx.db.selectFrom('damaged_objects').selectAll().execute()
      assert.deepEqual(
        marks.map(({ object_key, reason, found_by }) => ({ object_key, reason, found_by })),
        [{ object_key: archives[1]!.object_key, reason: 'bytes', found_by: 'runner' }],
      )
      // The next runner knows it only by the mark.
      await mend()
      await role.stop({ end_lobbies: true })
      await fixture.start()
      await requireRefused(fixture, await fixture.lobby(version_id), /archive of the build is damaged/)
    })
  }
})

test('a changed bit in a plain tar, which no parser could notice, is not run either', async (t) => {
  const fixture = await openRunner(t)
  await fixture.start()
  const version_id = await fixture.version({ run: 'echo a; exec sleep 60' }, MODE, 'tar')
  const [first] = await archivesOf(fixture)
  const bytes = await readFile(first!.path)
  const place = bytes.indexOf('echo a') + 5
  assert.equal(String.fromCharCode(bytes[place]!), 'a')
  await changeByte(first!.path, place / bytes.length, 2)
  assert.equal((await readFile(first!.path)).indexOf('echo c'), place - 5)
  await requireRefused(fixture, await fixture.lobby(version_id), /damaged/)
})

test('a truncated or missing archive is refused too', async (t) => {
  const fixture = await openRunner(t)
  await fixture.start()
  const version_id = await fixture.version(FILES, MODE)
  const [first] = await archivesOf(fixture)
  await rm(first!.path)
  await requireRefused(fixture, await fixture.lobby(version_id), /damaged/)
})

test('a changed unpacked build is unpacked again and runs as uploaded; changed again, it is refused', async (t) => {
  const fixture = await openRunner(t)
  const { ctx } = fixture
  await fixture.start()
  const version_id = await fixture.version(FILES, MODE)
  const first = await fixture.lobby(version_id)
  await fixture.run(first, 'it starts', isStarted)
  const folder = await buildFolder(fixture)
  const changed = join(folder, 'lib/code.txt')

  await changeByte(changed, 0.5, 1)
  const second = await fixture.lobby(version_id)
  await fixture.run(second, 'it starts', isStarted)
  assert.equal(await readFile(changed, 'utf8'), FILES['lib/code.txt'])
  const aside = (await readdir(join(ctx.config.data_dir, 'builds'))).filter((name) => name.startsWith('.replaced-'))
  assert.equal(aside.length, 1, 'the first lobby may still read its files')

  await changeByte(changed, 0.5, 1)
  await requireRefused(fixture, await fixture.lobby(version_id), /unpacked files have changed/)
  const { exit_ts } = (await fixture.row(first))!
  assert.equal(exit_ts, null, 'the running lobby continues')
  for (const lobby_id of [first, second]) await fixture.unwant(lobby_id)
  await until('the copies are removed when no lobby runs on the build', async () => {
    const names = await readdir(join(ctx.config.data_dir, 'builds'))
    return names.every((name) => !name.startsWith('.replaced-'))
  })
})

test('a quick check finds every kind of change made through the file system', async (t) => {
  const changes: Record<string, (folder: string) => Promise<unknown>> = {
    'bytes, with the time set back': async (folder) => {
      const path = join(folder, 'run')
      const { atime, mtime } = await stat(path)
      await changeByte(path, 0.5, 1)
      await utimes(path, atime, mtime)
    },
    'a longer file': (folder) => appendFile(join(folder, 'lib/more.txt'), '!'),
    'an executable bit': (folder) => chmod(join(folder, 'lib/code.txt'), 0o755),
    'a removed file': (folder) => rm(join(folder, 'lib/code.txt')),
    'an added file at the top': (folder) => writeFile(join(folder, 'node'), 'evil'),
    'an added file in a folder': (folder) => writeFile(join(folder, 'lib/evil.txt'), 'evil'),
    'all of it gone': (folder) => rm(folder, { recursive: true }),
  }
  const fixture = await openRunner(t)
  await fixture.start()
  for (const [what, change] of Object.entries(changes)) {
    await t.test(what, async () => {
      const version_id = await fixture.version({ ...FILES, which: what }, MODE)
      const before = await fixture.lobby(version_id)
      await fixture.run(before, 'it starts', isStarted)
      const builds = join(fixture.ctx.config.data_dir, 'builds')
      const { build_id } = await fixture.ctx.db
        .selectFrom('lobby_runs')
        .select('build_id')
        .where('lobby_id', '=', before)
        .executeTakeFirstOrThrow()
      const folder = join(builds, build_id!)
      const { ino } = await stat(folder)
      await change(folder)
      await fixture.run(await fixture.lobby(version_id), 'it starts', isStarted)
      assert.notEqual((await stat(folder)).ino, ino, 'it was unpacked again')
      assert.deepEqual(
        (await readdir(folder, { recursive: true })).sort(),
        [...Object.keys(FILES), 'lib', 'which'].sort(),
      )
    })
  }
})

test('the next runner unpacks a copy with a missing or damaged manifest again', async (t) => {
  for (const what of ['missing', 'damaged']) {
    await t.test(what, async (step) => {
      const fixture = await openRunner(step)
      const role = await fixture.start()
      const version_id = await fixture.version(FILES, MODE)
      await fixture.run(await fixture.lobby(version_id), 'it starts', isStarted)
      const folder = await buildFolder(fixture)
      const { ino } = await stat(folder)
      const manifest = join(folder, '../../builds.manifests', folder.slice(folder.lastIndexOf('/') + 1))
      assert.ok(existsSync(manifest))
      await role.stop({ end_lobbies: true })
      if (what === 'missing') await rm(manifest)
      else await changeByte(manifest, 0.5, 1)
      await fixture.start()
      await fixture.run(await fixture.lobby(version_id), 'it starts', isStarted)
      assert.notEqual((await stat(folder)).ino, ino)
    })
  }
})
