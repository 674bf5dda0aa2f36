import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import {
  completeUpload,
  createGameBuild,
  createGameCdnSite,
  listGameBuilds,
  MULTIPART_BYTES_MIN,
  PART_BYTES,
  type PrepareFile,
} from '@musterhost/contract'
import tar from 'tar-stream'
import type { Static } from 'typebox'
import { sweep } from '../../../src/cloud/sweep/sweep.ts'
import { openBuilds } from '../../../src/runner/builds.ts'
import { startPlatform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'
import { arrives, buildBody, detailsOf, newGame, type Presigned, putFile, refused } from '../steps.ts'

const HOUR_MS = 3_600_000
const SHORT_PART_BYTES = MULTIPART_BYTES_MIN
const SHORT_PARTS = { part_bytes: SHORT_PART_BYTES }

/** An archive of more than one part: a file that does not compress, and a server. */
async function longArchive(bytes: number): Promise<Buffer> {
  const pack = tar.pack()
  pack.entry({ name: 'data.bin' }, randomBytes(bytes))
  pack.entry({ name: 'server.mjs' }, 'console.log(1)')
  pack.finalize()
  const chunks: Buffer[] = []
  for await (const chunk of pack) chunks.push(chunk as Buffer)
  return gzipSync(Buffer.concat(chunks), { level: 0 })
}

test('uploads in parts', async (t) => {
  const platform = await startPlatform(t, { roles: 'api', env: { MUSTER_RETENTION_OBJECTS_HOURS: '1' } })
  const { client, ctx } = platform
  const { game_id } = await newGame(platform)
  const params = { game_id }
  const complete = (upload_id: string) => client.call(completeUpload, { params: { upload_id } })
  const prepare = (image_file: Static<typeof PrepareFile>, change = {}) =>
    client.call(createGameBuild, {
      params,
      body: { ...buildBody(Buffer.alloc(0)), image_file, multipart_upload: true, ...change },
    })
  const keyOf = (presigned: Presigned) => new URL(presigned.url).pathname.split('/').at(-1)!
  const filesOf = (upload_id: string) =>
    ctx.db.selectFrom('upload_files').selectAll().where('upload_id', '=', upload_id).execute()

  await t.test('a part has 100 MiB, the last one what is left, and an address is good for six hours', async () => {
    const content_length = 3 * PART_BYTES + 5
    const build = await prepare({ path: 'a.tar.gz', content_length })
    assert.equal(build.image_presigned_request, undefined)
    assert.deepEqual(
      build.image_presigned_requests!.map((part) => [part.path, part.byte_offset, part.content_length]),
      [0, 1, 2, 3].map((part) => ['a.tar.gz', part * PART_BYTES, part === 3 ? 5 : PART_BYTES]),
    )
    const { builds } = await client.call(listGameBuilds, { params })
    assert.equal(builds[0]!.content_length, content_length)
    const exact = await prepare({ path: 'a.tar.gz', content_length: 2 * PART_BYTES })
    assert.equal(exact.image_presigned_requests!.length, 2)
    for (const { url } of build.image_presigned_requests!) {
      const lifetime_ms = Number(new URL(url).searchParams.get('expires')) - ctx.now()
      assert.ok(lifetime_ms > 5.9 * HOUR_MS && lifetime_ms <= 6 * HOUR_MS, String(lifetime_ms))
    }
  })

  await t.test('a file of less than 5 MiB is not uploaded in parts', async () => {
    const least = 5 * 1024 * 1024
    const error = await refused('UPLOAD_INVALID', prepare({ path: 'a.zip', content_length: least - 1 }))
    assert.deepEqual(detailsOf(error), [{ path: ['image_file', 'content_length'], reason: 'too_low' }])
    const { image_presigned_requests } = await prepare({ path: 'a.zip', content_length: least })
    assert.equal(image_presigned_requests!.length, 1)
    await refused('UPLOAD_TOO_LARGE', prepare({ path: 'a.zip', content_length: 8_000_000_000 }))
  })

  await t.test('the request may ask for shorter parts, and only with parts', async () => {
    const content_length = 2 * SHORT_PART_BYTES + 5
    const build = await prepare({ path: 'a.tar.gz', content_length }, SHORT_PARTS)
    assert.deepEqual(
      build.image_presigned_requests!.map((part) => [part.byte_offset, part.content_length]),
      [0, 1, 2].map((part) => [part * SHORT_PART_BYTES, part === 2 ? 5 : SHORT_PART_BYTES]),
    )
    const whole = { ...SHORT_PARTS, multipart_upload: false }
    const error = await refused('VALIDATION_ERROR', prepare({ path: 'a.tar.gz', content_length }, whole))
    assert.deepEqual(detailsOf(error), [{ path: ['part_bytes'], reason: 'not_allowed' }])
    for (const part_bytes of [SHORT_PART_BYTES - 1, PART_BYTES + 1]) {
      await refused('VALIDATION_ERROR', prepare({ path: 'a.tar.gz', content_length }, { part_bytes }))
    }
  })

  // The platform treats long parts as short ones, and short ones take less time.
  const archive = await longArchive(SHORT_PART_BYTES + 1_000_000)
  const slices = (bytes: Buffer, parts: readonly Presigned[]) =>
    parts.map((part) => bytes.subarray(part.byte_offset, part.byte_offset + part.content_length))

  await t.test(
    'parts in any order become one archive, which is looked through, unpacked and hashed as one',
    async () => {
      const build = await prepare({ path: 'a.tar.gz', content_length: archive.length }, SHORT_PARTS)
      const parts = build.image_presigned_requests!
      const [first, second] = slices(archive, parts)
      await arrives(platform, parts[1]!, second!)
      const error = await refused('UPLOAD_INCOMPLETE', complete(build.upload_id))
      assert.deepEqual(error.metadata.missing_parts, [{ path: 'a.tar.gz', byte_offset: 0 }])
      await arrives(platform, parts[0]!, first!)
      const answers = await Promise.all([complete(build.upload_id), complete(build.upload_id)])
      assert.deepEqual(answers, [{}, {}])

      const [file, ...more] = await filesOf(build.upload_id)
      assert.equal(more.length, 0)
      assert.equal(file!.byte_offset, 0)
      assert.equal(file!.content_length, archive.length)
      assert.equal(file!.sha256, createHash('sha256').update(archive).digest('hex'))
      assert.equal((await putFile(platform, parts[1]!, second!)).status, 409)

      const folder = join(platform.data_dir, 'builds')
      await mkdir(folder, { recursive: true })
      const builds = await openBuilds(ctx, folder, null, () => undefined)
      const state = await until('the build is unpacked', async () => {
        const found = builds.find({ build_id: build.build_id })
        return found === 'unpacking' ? null : found
      })
      assert.ok('folder' in state, JSON.stringify(state))
      assert.equal(await readFile(join(state.folder, 'server.mjs'), 'utf8'), 'console.log(1)')
      assert.ok(gunzipSync(archive).includes(await readFile(join(state.folder, 'data.bin'))))
      await builds.close()

      // The parts, and what the slower of the two completions joined, are removed when they are due, and not before.
      await sweep(ctx)
      assert.notEqual(await ctx.objects.stat(keyOf(parts[0]!)), null)
      platform.advance(1.1 * HOUR_MS)
      await sweep(ctx)
      for (const part of parts) assert.equal(await ctx.objects.stat(keyOf(part)), null)
      assert.notEqual(await ctx.objects.stat(file!.object_key), null)
      assert.deepEqual(await ctx.db.selectFrom('removed_objects').selectAll().execute(), [])
    },
  )

  await t.test('parts that are no archive together are refused, and may be sent again', async () => {
    const build = await prepare({ path: 'a.tar.gz', content_length: archive.length }, SHORT_PARTS)
    const parts = build.image_presigned_requests!
    const [first, second] = slices(archive, parts)
    await arrives(platform, parts[0]!, first!)
    await arrives(platform, parts[1]!, Buffer.alloc(second!.length, 'x'))
    await refused('ARCHIVE_INVALID', complete(build.upload_id))
    assert.equal((await filesOf(build.upload_id)).length, 2)
    await arrives(platform, parts[1]!, second!)
    await complete(build.upload_id)
    assert.equal((await filesOf(build.upload_id)).length, 1)
  })

  await t.test('of a site only the files that are longer than a part arrive in parts', async () => {
    const files = [
      { path: 'index.html', content_length: 2 },
      { path: 'game.data', content_length: SHORT_PART_BYTES + 1 },
    ]
    const body = { display_name: 'Site', files, multipart_upload: true, ...SHORT_PARTS }
    const { upload_id, presigned_requests } = await client.call(createGameCdnSite, { params, body })
    assert.deepEqual(
      presigned_requests.map((part) => [part.path, part.byte_offset, part.content_length]),
      [
        ['index.html', 0, 2],
        ['game.data', 0, SHORT_PART_BYTES],
        ['game.data', SHORT_PART_BYTES, 1],
      ],
    )
    const data = Buffer.concat([archive.subarray(0, SHORT_PART_BYTES), Buffer.from('!')])
    await arrives(platform, presigned_requests[0]!, 'hi')
    await arrives(platform, presigned_requests[1]!, data.subarray(0, SHORT_PART_BYTES))
    await arrives(platform, presigned_requests[2]!, '!')
    await complete(upload_id)
    const rows = await filesOf(upload_id)
    assert.equal(rows.length, 2)
    const row = rows.find((item) => item.path === 'game.data')!
    assert.equal(row.sha256, createHash('sha256').update(data).digest('hex'))
    assert.equal((await ctx.objects.stat(row.object_key))!.content_length, data.length)
  })
})
