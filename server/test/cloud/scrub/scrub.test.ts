// The scrub: damage that was not read yet is found, set aside and reported, and what can be repaired is repaired.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { copyFile, readFile, rename, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { completeUpload, createGameCdnSite } from '@musterhost/contract'
import { sql } from 'kysely'
import { verify } from '../../../src/backup/command.ts'
import { scrub } from '../../../src/cloud/scrub/scrub.ts'
import { digestOf } from '../../../src/objects/digest.ts'
import { changeByte } from '../../backup/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../../support/platform.ts'
import { until } from '../../support/until.ts'

const WEEK_MS = 7 * 24 * 3_600_000
/** Three blocks. */
const LARGE = randomBytes(300_000)

async function startScrubbed(t: TestContext): Promise<{ platform: Platform; game: TestGame }> {
  const platform = await startPlatform(t, { roles: 'api' })
  return { platform, game: await platform.game() }
}

/** Returns the keys of the site's files, in their order. */
async function uploadSite({ client, api_url, ctx }: Platform, game_id: string, files: Record<string, Buffer>) {
  const named = Object.entries(files).map(([path, bytes]) => ({ path, content_length: bytes.length }))
  const body = { display_name: 'Site', files: named }
  const { upload_id, presigned_requests } = await client.call(createGameCdnSite, { params: { game_id }, body })
  for (const { path, url } of presigned_requests) {
    const { pathname, search } = new URL(url)
    const put = await fetch(`${api_url}${pathname}${search}`, { method: 'PUT', body: new Uint8Array(files[path]!) })
    assert.equal(put.status, 200)
  }
  await client.call(completeUpload, { params: { upload_id } })
  const rows = await ctx.db.selectFrom('upload_files').selectAll().where('upload_id', '=', upload_id).execute()
  return named.map(({ path }) => rows.find((row) => row.path === path)!)
}

/** The platform also scrubs without a call when damage is reported, and one scrub runs at a time. */
function scrubUntil({ ctx }: Platform, what: string, isSo: () => Promise<boolean>): Promise<true> {
  return until(what, async () => {
    await scrub(ctx)
    return isSo()
  })
}
const hasQuarantined = async (platform: Platform): Promise<boolean> =>
  (await marksOf(platform)).some(({ quarantine_ts }) => quarantine_ts !== null)
const hasNoMark = async (platform: Platform): Promise<boolean> => (await marksOf(platform)).length === 0
const marksOf = ({ ctx }: Platform) => ctx.db.selectFrom('damaged_objects').selectAll().execute()
const isThere = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )

test('complete records the hashes of blocks of long files, and of no others', async (t) => {
  const { platform, game } = await startScrubbed(t)
  const [small, large] = await uploadSite(platform, game.game_id, { 'a.txt': Buffer.from('a'), 'b.bin': LARGE })
  assert.equal(small!.block_hashes, null)
  assert.deepEqual(large!.block_hashes, digestOf(LARGE).block_hashes)
  assert.ok(small!.checked_ts !== null && large!.checked_ts !== null)
})

test('a file that changes between its arrival and complete is not completed, until it is sent again', async (t) => {
  const { platform, game } = await startScrubbed(t)
  const { client, ctx, api_url } = platform
  const body = { display_name: 'Site', files: [{ path: 'a.bin', content_length: LARGE.length }] }
  const { upload_id, presigned_requests } = await client.call(createGameCdnSite, {
    params: { game_id: game.game_id },
    body,
  })
  const { pathname, search } = new URL(presigned_requests[0]!.url)
  const send = () => fetch(`${api_url}${pathname}${search}`, { method: 'PUT', body: new Uint8Array(LARGE) })
  assert.equal((await send()).status, 200)
  const { object_key } = await ctx.db
    .selectFrom('upload_files')
    .select('object_key')
    .where('upload_id', '=', upload_id)
    .executeTakeFirstOrThrow()
  const path = ctx.objects.localPath(object_key)!
  // As a disk does it: without a change of the time that says when it was written.
  const { atime, mtime } = await stat(path)
  await changeByte(path, 0.5, 1)
  await utimes(path, atime, mtime)
  const completing = () => client.call(completeUpload, { params: { upload_id } })
  const sidecar = JSON.parse(await readFile(`${path}.json`, 'utf8')) as { modify_ns: string }
  const { mtimeNs } = await stat(path, { bigint: true })
  await writeFile(`${path}.json`, JSON.stringify({ ...sidecar, modify_ns: String(mtimeNs) }))
  await assert.rejects(completing, { code: 'UPLOAD_INCOMPLETE' })
  assert.equal((await send()).status, 200)
  await completing()
})

test('damage that was never read is found within a week, set aside, logged with its place, counted and shown in health', async (t) => {
  const { platform, game } = await startScrubbed(t)
  const { ctx } = platform
  const [file] = await uploadSite(platform, game.game_id, { 'maps/hill.bin': LARGE })
  const path = ctx.objects.localPath(file!.object_key)!
  await scrub(ctx)
  assert.deepEqual((await ctx.health.readiness()).warnings, [])
  await changeByte(path, 0.7, 1)
  await scrub(ctx)
  assert.deepEqual(await marksOf(platform), [], 'it was read a moment ago')
  platform.advance(WEEK_MS + 1)
  await scrubUntil(platform, 'it is set aside', () => hasQuarantined(platform))
  const [mark] = await marksOf(platform)
  assert.deepEqual([mark!.object_key, mark!.reason, mark!.quarantine_ts !== null], [file!.object_key, 'bytes', true])
  assert.equal(await isThere(path), false)
  assert.equal(await isThere(join(platform.data_dir, 'objects/damaged', file!.object_key)), true)

  await until('the health has a warning', async () => (await ctx.health.readiness()).warnings.length > 0)
  const { is_ready, warnings } = await ctx.health.readiness()
  assert.deepEqual([is_ready, warnings], [true, ['1 stored file is damaged and not used; muster verify names them']])
  const { text } = await ctx.metrics.text()
  assert.match(text, /^muster_damaged_objects\{state="quarantined"\} 1$/m)
  assert.match(text, /^muster_damage_found_total\{reason="bytes"\} 1$/m)
  const env = { MUSTER_DATA: platform.data_dir, DATABASE_URL: ctx.config.database_url! }
  const { is_good, lines } = await verify(env, null)
  assert.equal(is_good, false)
  assert.match(lines.join('\n'), new RegExp(`object ${file!.object_key} is damaged, and was set aside`))
  assert.match(
    lines.join('\n'),
    new RegExp(`object ${file!.object_key} is "maps/hill.bin", of a site .* of the game ${game.name_id}`),
  )
})

test('the same file uploaded again repairs the damaged one', async (t) => {
  const { platform, game } = await startScrubbed(t)
  const { ctx } = platform
  const [file] = await uploadSite(platform, game.game_id, { 'a.bin': LARGE })
  const path = ctx.objects.localPath(file!.object_key)!
  await changeByte(path, 0.1, 1)
  platform.advance(WEEK_MS + 1)
  await scrubUntil(platform, 'it is set aside', () => hasQuarantined(platform))
  const other = Buffer.from(LARGE)
  other[0]! ^= 1
  await uploadSite(platform, game.game_id, { 'other.bin': other })
  await scrub(ctx)
  assert.equal((await marksOf(platform)).length, 1, 'another file does not')
  await uploadSite(platform, game.game_id, { 'again.bin': LARGE })
  await scrubUntil(platform, 'it is repaired', () => hasNoMark(platform))
  assert.deepEqual(await ctx.objects.stat(file!.object_key), {
    content_length: LARGE.length,
    sha256: createHash('sha256').update(LARGE).digest('hex'),
  })
})

test('a file that its operator puts back is used again, and one with wrong bytes is not', async (t) => {
  const { platform, game } = await startScrubbed(t)
  const { ctx, data_dir } = platform
  const [file] = await uploadSite(platform, game.game_id, { 'a.bin': LARGE })
  const path = ctx.objects.localPath(file!.object_key)!
  const backup = join(data_dir, 'backup')
  await copyFile(path, backup)
  await changeByte(path, 0.1, 1)
  platform.advance(WEEK_MS + 1)
  await scrubUntil(platform, 'it is set aside', () => hasQuarantined(platform))
  await rename(join(data_dir, 'objects/damaged', file!.object_key), path)
  await scrubUntil(platform, 'it is set aside again', async () => !(await isThere(path)))
  assert.equal((await marksOf(platform)).length, 1)
  await rename(backup, path)
  await scrubUntil(platform, 'it is used again', () => hasNoMark(platform))
  assert.equal(await isThere(path), true)
})

test('a suspicion that a second read does not confirm is dropped, and the hashes of its blocks are recorded anew', async (t) => {
  const { platform, game } = await startScrubbed(t)
  const { ctx } = platform
  const [file] = await uploadSite(platform, game.game_id, { 'a.bin': LARGE })
  const { object_key } = file!
  await ctx.db
    .updateTable('upload_files')
    .set({ block_hashes: Buffer.alloc(96) })
    .where('object_key', '=', object_key)
    .execute()
  const mark = { object_key, reason: 'bytes', found_by: 'edge', found_ts: new Date(), quarantine_ts: null }
  await ctx.db.insertInto('damaged_objects').values(mark).execute()
  await scrubUntil(platform, 'the suspicion is dropped', () => hasNoMark(platform))
  const row = await ctx.db
    .selectFrom('upload_files')
    .select('block_hashes')
    .where('object_key', '=', object_key)
    .executeTakeFirst()
  assert.deepEqual(row!.block_hashes, digestOf(LARGE).block_hashes)
})

test('files from before the hashes of blocks get them, and a scrub goes on where the last one ended', async (t) => {
  const { platform, game } = await startScrubbed(t)
  const { ctx } = platform
  const files = await uploadSite(platform, game.game_id, { 'a.bin': LARGE, 'b.bin': LARGE.subarray(1) })
  await ctx.db.updateTable('upload_files').set({ block_hashes: null, checked_ts: null }).execute()
  const closing = new AbortController()
  closing.abort()
  await scrub(ctx, closing.signal)
  const unchecked = ctx.db.selectFrom('upload_files').select('object_key').where('checked_ts', 'is', null)
  assert.equal((await unchecked.execute()).length, 3, 'one that is ended at once has checked nothing')
  await scrubUntil(platform, 'all are checked', async () => (await unchecked.execute()).length === 0)
  for (const [index, bytes] of [LARGE, LARGE.subarray(1)].entries()) {
    const { object_key } = files[index]!
    const row = await ctx.db
      .selectFrom('upload_files')
      .select('block_hashes')
      .where('object_key', '=', object_key)
      .executeTakeFirst()
    assert.deepEqual(row!.block_hashes, digestOf(bytes).block_hashes)
  }
})

test('one scrub runs at a time, over all api processes', async (t) => {
  const { platform, game } = await startScrubbed(t)
  const { ctx } = platform
  await uploadSite(platform, game.game_id, { 'a.bin': LARGE })
  await ctx.db.updateTable('upload_files').set({ checked_ts: null }).execute()
  await ctx.db.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(7365882112)`.execute(trx)
    await scrub(ctx)
  })
  const unchecked = await ctx.db
    .selectFrom('upload_files')
    .select('object_key')
    .where('checked_ts', 'is', null)
    .execute()
  assert.equal(unchecked.length, 2)
})
