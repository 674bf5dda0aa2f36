import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import test from 'node:test'
import { brotliCompressSync, brotliDecompressSync, gzipSync, zstdCompressSync } from 'node:zlib'
import {
  ApiError,
  completeUpload,
  createGameBuild,
  createGameCdnSite,
  createGameVersion,
  listGameBuilds,
  listGameCdnSites,
} from '@musterhost/contract'
import { sql } from 'kysely'
import { tarOf } from '../../archives/forgery.ts'
import { forgedImage } from '../../support/container-images.ts'
import { startPlatform } from '../../support/platform.ts'
import { UNITY_BROTLI_HEAD, unityBrotli } from '../../support/unity-web.ts'
import { until } from '../../support/until.ts'
import { arrives, buildBody, detailsOf, newBuild, newGame, putFile, refused, tarGz, UNKNOWN_ID } from '../steps.ts'

test('uploads', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { client, ctx } = platform
  const { game_id, cloud } = await newGame(platform)
  const other = await newGame(platform)
  const params = { game_id }

  const prepareSite = (files: object[]) =>
    client.call(createGameCdnSite, { params, body: { display_name: 'Site', files: files as never } })
  const prepareBuild = (body: object) => client.call(createGameBuild, { params, body: body as never })
  const complete = (upload_id: string) => client.call(completeUpload, { params: { upload_id } })
  const siteOf = async (site_id: string) =>
    (await client.call(listGameCdnSites, { params })).sites.find((site) => site.site_id === site_id)!
  const buildOf = async (build_id: string) =>
    (await client.call(listGameBuilds, { params })).builds.find((build) => build.build_id === build_id)!
  const countUploads = async () =>
    Number(
      (
        await ctx.db
          .selectFrom('uploads')
          .select((of) => of.fn.countAll().as('count'))
          .executeTakeFirstOrThrow()
      ).count,
    )

  await t.test('a site is complete when every file has arrived, and its hashes are recorded', async () => {
    const texts = { 'index.html': '<h1>hi</h1>', 'a/b/é.js': 'x', empty: '' }
    const files = Object.entries(texts).map(([path, text]) => ({ path, content_length: Buffer.byteLength(text) }))
    const { site_id, upload_id, presigned_requests } = await prepareSite(files)
    assert.deepEqual(
      presigned_requests.map(({ path, content_length, byte_offset }) => ({ path, content_length, byte_offset })),
      files.map((file) => ({ ...file, byte_offset: 0 })),
    )
    assert.equal((await siteOf(site_id)).complete, false)
    for (const [index, text] of Object.values(texts).entries()) {
      const error = await refused('UPLOAD_INCOMPLETE', complete(upload_id))
      assert.equal(error.metadata.missing_count, 3 - index)
      assert.equal((error.metadata.missing as string[]).length, 3 - index)
      await arrives(platform, presigned_requests[index]!, text)
    }
    assert.deepEqual(await complete(upload_id), {})
    const { create_ts, ...site } = await siteOf(site_id)
    assert.deepEqual(site, { site_id, upload_id, display_name: 'Site', content_length: 12, complete: true })
    assert.match(create_ts, /\.\d{3}Z$/)
    const rows = await ctx.db
      .selectFrom('upload_files')
      .select(['path', 'sha256'])
      .where('upload_id', '=', upload_id)
      .execute()
    for (const { path, sha256 } of rows) {
      assert.equal(
        sha256,
        createHash('sha256')
          .update(texts[path as keyof typeof texts])
          .digest('hex'),
        path,
      )
    }
  })

  await t.test('a file that is not compressed as its name says is refused by name, and can be replaced', async () => {
    const wasm = randomBytes(100_000)
    const contents: Record<string, Buffer> = {
      'Build/game.wasm.br': brotliCompressSync(wasm),
      'Build/zeros.data.br': brotliCompressSync(Buffer.alloc(50_000_000)),
      'Build/game.data.gz': gzipSync(wasm),
      'Build/empty.js.gz': gzipSync(''),
      'backup.tar.gz': Buffer.from('an archive is not decompressed for anyone'),
      // It begins like a stored block of brotli.
      'Build/text.js.br': Buffer.from('/** let a = 1 */\n'.repeat(10_000)),
      'Build/gzip.js.br': gzipSync(wasm),
      'Build/brotli.js.gz': brotliCompressSync(wasm),
      'Build/cut.js.gz': gzipSync('let a').subarray(0, 12),
      'Build/nothing.js.br': Buffer.alloc(0),
    }
    const files = Object.entries(contents).map(([path, { length }]) => ({ path, content_length: length }))
    const { upload_id, presigned_requests } = await prepareSite(files)
    for (const presigned of presigned_requests) await arrives(platform, presigned, contents[presigned.path]!)
    const { message, metadata } = await refused('UPLOAD_INVALID', complete(upload_id))
    const wrong = ['brotli.js.gz', 'cut.js.gz', 'gzip.js.br', 'nothing.js.br', 'text.js.br'].map(
      (name) => `Build/${name}`,
    )
    assert.deepEqual([metadata.paths, metadata.count], [wrong, wrong.length])
    assert.match(message, /^Build\/brotli\.js\.gz is not compressed by gzip, as its name says, and 4 more\./)

    const only = await prepareSite([{ path: 'a.js.br', content_length: 20 }])
    const [presigned] = only.presigned_requests
    await arrives(platform, presigned!, 'x'.repeat(20))
    await refused('UPLOAD_INVALID', complete(only.upload_id))
    const text = brotliCompressSync(randomBytes(16))
    assert.equal(text.length, 20)
    await arrives(platform, presigned!, text)
    await complete(only.upload_id)
  })

  await t.test('the first bytes of a file of Unity say how it is compressed', async () => {
    const wasm = randomBytes(100_000)
    assert.equal(brotliDecompressSync(unityBrotli('level')).toString(), 'level')
    const contents: Record<string, Buffer> = {
      'Build/a.wasm.unityweb': gzipSync(wasm),
      'Build/b.data.unityweb': unityBrotli('level'),
      'Build/c.framework.js.unityweb': Buffer.from('let a = 1 // plain'),
      'Build/d.data.unityweb': wasm,
      'Build/e.data.unityweb': Buffer.alloc(0),
      'Build/f.js.unityweb': gzipSync(wasm).subarray(0, 5_000),
      'Build/g.data.unityweb': UNITY_BROTLI_HEAD,
    }
    const prepare = (paths: string[]) =>
      prepareSite(paths.map((path) => ({ path, content_length: contents[path]!.length })))
    const wrong = await prepare(Object.keys(contents))
    for (const presigned of wrong.presigned_requests) await arrives(platform, presigned, contents[presigned.path]!)
    const { message, metadata } = await refused('UPLOAD_INVALID', complete(wrong.upload_id))
    assert.deepEqual(metadata.paths, ['Build/f.js.unityweb', 'Build/g.data.unityweb'])
    assert.match(
      message,
      /^Build\/f\.js\.unityweb begins as a file compressed by gzip, and cannot be decompressed, and 1 more/,
    )

    const { upload_id, presigned_requests } = await prepare(Object.keys(contents).slice(0, -2))
    for (const presigned of presigned_requests) await arrives(platform, presigned, contents[presigned.path]!)
    await complete(upload_id)
    const rows = await ctx.db
      .selectFrom('upload_files')
      .select(['path', 'content_encoding'])
      .where('upload_id', '=', upload_id)
      .orderBy('path')
      .execute()
    assert.deepEqual(
      rows.map((row) => row.content_encoding),
      ['gzip', 'br', null, null, null],
    )
  })

  await t.test('completing again changes nothing', async () => {
    const { upload_id, presigned_requests } = await prepareSite([{ path: 'a', content_length: 1 }])
    await arrives(platform, presigned_requests[0]!, 'a')
    // A caller that completes a second time, at the same moment, must not even write what is there.
    await sql`
      create function refuse_change() returns trigger language plpgsql as $$ begin raise 'complete'; end $$;
      create trigger refuse_change before update on uploads
        for each row when (old.complete_ts is not null) execute function refuse_change();
    `.execute(ctx.db)
    const answers = await Promise.all(Array.from({ length: 8 }, () => complete(upload_id)))
    assert.deepEqual(answers, Array(8).fill({}))
    const timeOf = () =>
      ctx.db.selectFrom('uploads').select('complete_ts').where('upload_id', '=', upload_id).executeTakeFirst()
    const before = await timeOf()
    assert.ok(before?.complete_ts)
    assert.deepEqual(await complete(upload_id), {})
    assert.deepEqual(await timeOf(), before)
  })

  await t.test('a complete upload does not change any more', async () => {
    const { upload_id, presigned_requests } = await prepareSite([{ path: 'a', content_length: 3 }])
    await arrives(platform, presigned_requests[0]!, 'old')
    await arrives(platform, presigned_requests[0]!, 'two')
    await complete(upload_id)
    const response = await putFile(platform, presigned_requests[0]!, 'new')
    assert.equal(response.status, 409)
    assert.equal(((await response.json()) as { code: string }).code, 'UPLOAD_COMPLETE')
    assert.equal(await contentOf(upload_id), 'two')
  })

  await t.test('a file that races with complete is either part of it or refused', async () => {
    for (let round = 0; round < 20; round++) {
      const { upload_id, presigned_requests } = await prepareSite([{ path: 'a', content_length: 3 }])
      await arrives(platform, presigned_requests[0]!, 'old')
      const [response] = await Promise.all([putFile(platform, presigned_requests[0]!, 'new'), complete(upload_id)])
      assert.equal(await contentOf(upload_id), response.status === 200 ? 'new' : 'old')
      const row = await ctx.db
        .selectFrom('upload_files')
        .select('sha256')
        .where('upload_id', '=', upload_id)
        .executeTakeFirst()
      const expected = response.status === 200 ? 'new' : 'old'
      assert.equal(row?.sha256, createHash('sha256').update(expected).digest('hex'))
    }
  })

  async function contentOf(upload_id: string): Promise<string> {
    const row = await ctx.db
      .selectFrom('upload_files')
      .select('object_key')
      .where('upload_id', '=', upload_id)
      .executeTakeFirstOrThrow()
    const chunks: Buffer[] = []
    for await (const chunk of await ctx.objects.read(row.object_key)) chunks.push(chunk as Buffer)
    return Buffer.concat(chunks).toString()
  }

  await t.test('a build has one file, tags, and is listed newest first', async () => {
    const bytes = await tarGz({ 'server.js': '1' })
    const body = { ...buildBody(bytes), tags: { commit: 'abc', 'ci/run': '7' } }
    const { build_id, upload_id, image_presigned_request } = await prepareBuild(body)
    assert.equal(image_presigned_request!.path, 'server.tar.gz')
    assert.equal((await buildOf(build_id)).complete, false)
    await arrives(platform, image_presigned_request!, bytes)
    await complete(upload_id)
    const { create_ts, ...build } = await buildOf(build_id)
    assert.deepEqual(build, {
      build_id,
      upload_id,
      display_name: 'Build',
      content_length: bytes.length,
      complete: true,
      tags: { commit: 'abc', 'ci/run': '7' },
    })
    const newer = await newBuild(platform, game_id)
    const { builds } = await client.call(listGameBuilds, { params })
    assert.ok(create_ts <= builds[0]!.create_ts)
    assert.ok(
      builds.findIndex((item) => item.build_id === newer) < builds.findIndex((item) => item.build_id === build_id),
    )
    assert.deepEqual((await client.call(listGameBuilds, { params: { game_id: other.game_id } })).builds, [])
  })

  await t.test('builds are listed by their tags', async () => {
    const own = await newGame(platform)
    const make = async (tags: Record<string, string>): Promise<string> => {
      const body = { ...buildBody(Buffer.alloc(4)), tags }
      return (await client.call(createGameBuild, { params: { game_id: own.game_id }, body })).build_id
    }
    const [first, second] = [await make({ branch: 'main', flags: 'a=b' }), await make({ branch: 'main', run: '7' })]
    const plain = await make({})
    const listed = async (...tags: string[]): Promise<string[]> => {
      const { builds } = await client.call(listGameBuilds, { params: { game_id: own.game_id }, query: { tags } })
      return builds.map(({ build_id }) => build_id)
    }
    assert.deepEqual(await listed(), [plain, second, first])
    assert.deepEqual(await listed('branch=main'), [second, first])
    assert.deepEqual(await listed('branch=main', 'run=7'), [second])
    assert.deepEqual(await listed('flags=a=b'), [first])
    assert.deepEqual(await listed('branch='), [])
    assert.deepEqual(await listed('branch=mai'), [])
    await refused('VALIDATION_ERROR', listed('branch'))
  })

  await t.test('an image tag is name:tag, unique in the game', async () => {
    const body = { ...buildBody(Buffer.alloc(1)), image_tag: 'twice:1' }
    await prepareBuild(body)
    const error = await refused('NAME_TAKEN', prepareBuild(body))
    assert.deepEqual(detailsOf(error), [{ path: ['image_tag'], reason: 'not_unique' }])
    await client.call(createGameBuild, { params: { game_id: other.game_id }, body })
    for (const image_tag of ['', 'name', ':tag', 'name:', 'Name:1', 'a b:1', 'a:b:c', `a:${'x'.repeat(254)}`]) {
      await refused('VALIDATION_ERROR', prepareBuild({ ...body, image_tag }))
    }
    const raced = { ...body, image_tag: 'raced:1' }
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => prepareBuild(raced)))
    assert.equal(outcomes.filter((outcome) => outcome.status === 'fulfilled').length, 1)
  })

  await t.test('an image is checked when it is completed, and a version may leave args out for it', async () => {
    const layer = tarOf({ name: 'server', mode: 0o755, body: Buffer.from('#!/bin/sh\n') })
    const evil = tarOf({ name: '../server' })
    const upload = async (bytes: Buffer, changes = {}) => {
      const build = await prepareBuild({ ...buildBody(bytes), kind: 'oci_bundle', ...changes })
      await arrives(platform, build.image_presigned_request!, bytes)
      return build
    }
    const wrong = await upload(forgedImage([layer, evil]))
    const error = await refused('ARCHIVE_INVALID', complete(wrong.upload_id))
    assert.equal(error.metadata.reason, 'dots')
    assert.equal(error.metadata.layer_number, 2)
    assert.equal((await buildOf(wrong.build_id)).complete, false)

    const createVersion = (image_id: string) => {
      const config = { matchmaker: { game_modes: { default: { docker: { image_id } } } } }
      return client.call(createGameVersion, { params, body: { display_name: `of ${image_id}`, config } })
    }
    for (const [compression, pack] of [
      ['none', (bytes: Buffer) => bytes],
      ['gzip', gzipSync],
      ['zstd', zstdCompressSync],
    ] as const) {
      const image = forgedImage([layer])
      const build = await upload(pack(image), { compression })
      await complete(build.upload_id)
      assert.equal((await buildOf(build.build_id)).complete, true)
      await createVersion(build.build_id)
    }
    const silent = await upload(forgedImage([layer], { config: { config: {} } }))
    await complete(silent.upload_id)
    const path = ['matchmaker', 'game_modes', 'default', 'docker', 'args']
    const without = await refused('VALIDATION_ERROR', createVersion(silent.build_id))
    assert.deepEqual(detailsOf(without), [{ path, reason: 'too_few' }])
    for (const change of [
      { kind: 'vm' },
      { compression: 'zstd' },
      { compression: 'lz4' },
      { compression: 'lz4', kind: 'archive' },
      { compression: 'lz4', kind: 'docker_image' },
    ]) {
      const error = await refused('VALIDATION_ERROR', prepareBuild({ ...buildBody(Buffer.alloc(1)), ...change }))
      assert.deepEqual(detailsOf(error), [{ path: [Object.keys(change)[0]], reason: 'not_allowed' }])
    }
    const accepted = { kind: 'archive', compression: 'gzip', multipart_upload: false }
    await prepareBuild({ ...buildBody(Buffer.alloc(1)), ...accepted })
  })

  await t.test('an archive that cannot be unpacked leaves its build incomplete, until it is replaced', async () => {
    const good = await tarGz({ 'server.js': '1' })
    const evil = await tarGz({ '../server.js': '1' })
    const bad = [Buffer.alloc(good.length, 'x'), evil]
    for (const bytes of bad) {
      const { build_id, upload_id, image_presigned_request } = await prepareBuild(buildBody(bytes))
      await arrives(platform, image_presigned_request!, bytes)
      for (let attempt = 0; attempt < 2; attempt++) {
        const error = await refused('ARCHIVE_INVALID', complete(upload_id))
        assert.equal(error.status, 400)
      }
      assert.equal((await buildOf(build_id)).complete, false)
      if (bytes.length !== good.length) continue
      await arrives(platform, image_presigned_request!, good)
      await complete(upload_id)
      assert.equal((await buildOf(build_id)).complete, true)
    }
  })

  await t.test('an archive that is replaced after it was looked through is not completed unseen', async () => {
    const good = await tarGz({ 'server.js': '1' })
    const { upload_id, image_presigned_request } = await prepareBuild(buildBody(good))
    await arrives(platform, image_presigned_request!, good)
    const object_key = new URL(image_presigned_request!.url).pathname.split('/').at(-1)!
    const completed = await ctx.db.transaction().execute(async (trx) => {
      // As a PUT does that publishes at this moment.
      await trx.selectFrom('uploads').select('upload_id').where('upload_id', '=', upload_id).forShare().execute()
      const completing = complete(upload_id).then(
        () => null,
        (error: unknown) => error,
      )
      await untilWaiting()
      await ctx.objects.put(object_key, Readable.from([Buffer.alloc(good.length, 'x')]), good.length)
      return { completing }
    })
    const error = await completed.completing
    assert.ok(error instanceof ApiError && error.code === 'UPLOAD_INCOMPLETE', String(error))
    await refused('ARCHIVE_INVALID', complete(upload_id))
  })

  function untilWaiting(): Promise<true> {
    return until('somebody to wait for the lock', async () => {
      const { rows } = await sql`
        select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
      `.execute(ctx.db)
      return rows.length > 0
    })
  }

  await t.test('bad paths are refused by name, and nothing is prepared', async () => {
    const before = await countUploads()
    const cases: [string, string][] = [
      ['../x', 'segment'],
      ['a//b', 'segment'],
      ['/etc/passwd', 'absolute'],
      ['..\\x', 'backslash'],
      ['a\nb', 'control_character'],
      ['e\u0301', 'not_normalized'],
      ['é'.repeat(513), 'too_long'],
    ]
    for (const [path, reason] of cases) {
      const site = prepareSite([
        { path: 'fine', content_length: 1 },
        { path, content_length: 1 },
      ])
      assert.deepEqual(detailsOf(await refused('UPLOAD_INVALID', site)), [{ path: ['files', '1', 'path'], reason }])
      const build = prepareBuild({ ...buildBody(Buffer.alloc(1)), image_file: { path, content_length: 1 } })
      assert.deepEqual(detailsOf(await refused('UPLOAD_INVALID', build)), [{ path: ['image_file', 'path'], reason }])
    }
    const twins = prepareSite([
      { path: 'A.js', content_length: 1 },
      { path: 'a.js', content_length: 1 },
    ])
    assert.deepEqual(detailsOf(await refused('UPLOAD_INVALID', twins)), [
      { path: ['files', '1', 'path'], reason: 'not_unique' },
    ])
    const shapes: [object[], string[], string][] = [
      [[], ['files'], 'too_few'],
      [[{ path: '', content_length: 1 }], ['files', '0', 'path'], 'too_short'],
      [[{ path: 'a\0', content_length: 1 }], ['files', '0', 'path'], 'invalid'],
      [[{ path: 'x'.repeat(1025), content_length: 1 }], ['files', '0', 'path'], 'too_long'],
      [[{ path: 'a' }], ['files', '0', 'content_length'], 'required'],
      [[{ path: 'a', content_length: 1, content_type: 'a/b\r\nx: y' }], ['files', '0', 'content_type'], 'invalid'],
      [[{ path: 'a', content_length: 1, content_type: 'plain' }], ['files', '0', 'content_type'], 'invalid'],
    ]
    for (const [files, path, reason] of shapes) {
      const error = await refused('VALIDATION_ERROR', prepareSite(files))
      assert.deepEqual(detailsOf(error), [{ path, reason }])
    }
    const many = Array.from({ length: 10_001 }, (_, index) => ({ path: String(index), content_length: 0 }))
    assert.deepEqual(detailsOf(await refused('VALIDATION_ERROR', prepareSite(many))), [
      { path: ['files'], reason: 'too_many' },
    ])
    assert.equal(await countUploads(), before)
  })

  await t.test('ten thousand files are prepared, and what is missing is reported in short', async () => {
    const files = Array.from({ length: 10_000 }, (_, index) => ({ path: `files/${index}.txt`, content_length: 0 }))
    const { upload_id, presigned_requests } = await prepareSite(files)
    assert.equal(presigned_requests.length, 10_000)
    const error = await refused('UPLOAD_INCOMPLETE', complete(upload_id))
    assert.equal(error.metadata.missing_count, 10_000)
    assert.equal((error.metadata.missing as string[]).length, 32)
  })

  await t.test('many files are completed all at once', async () => {
    const files = Array.from({ length: 100 }, (_, index) => ({ path: `${index}.txt`, content_length: 3 }))
    const { upload_id, presigned_requests } = await prepareSite(files)
    await Promise.all(presigned_requests.map((presigned, index) => arrives(platform, presigned, String(100 + index))))
    await complete(upload_id)
    const rows = await ctx.db
      .selectFrom('upload_files')
      .select(['path', 'sha256'])
      .where('upload_id', '=', upload_id)
      .execute()
    for (const { path, sha256 } of rows) {
      const text = String(100 + Number.parseInt(path, 10))
      assert.equal(sha256, createHash('sha256').update(text).digest('hex'), path)
    }
  })

  await t.test('lengths are whole numbers of bytes, and totals stay below the limit', async () => {
    const before = await countUploads()
    const cases: [unknown, string][] = [
      [-1, 'too_low'],
      [1.5, 'wrong_type'],
      ['5', 'wrong_type'],
      [null, 'wrong_type'],
      [18446744073709551615n, 'too_high'],
      [9007199254740993n, 'too_high'],
    ]
    for (const [content_length, reason] of cases) {
      const value = typeof content_length === 'bigint' ? Number(content_length) : content_length
      const error = await refused('VALIDATION_ERROR', prepareSite([{ path: 'a', content_length: value }]))
      assert.deepEqual(detailsOf(error), [{ path: ['files', '0', 'content_length'], reason }])
    }
    const halves = (sum: number) => [
      { path: 'a', content_length: Math.floor(sum / 2) },
      { path: 'b', content_length: Math.ceil(sum / 2) },
    ]
    const tooLarge = await refused('UPLOAD_TOO_LARGE', prepareSite(halves(1_000_000_000)))
    assert.equal(tooLarge.status, 413)
    assert.equal(tooLarge.metadata.content_length, 1_000_000_000)
    const image = (content_length: number) => ({
      ...buildBody(Buffer.alloc(0)),
      image_file: { path: 'a.zip', content_length },
    })
    await refused('UPLOAD_TOO_LARGE', prepareBuild(image(8_000_000_000)))
    assert.equal(await countUploads(), before)
    await prepareSite(halves(999_999_999))
    await prepareBuild(image(7_999_999_999))
    assert.equal(await countUploads(), before + 2)
  })

  await t.test('an upload of another game is unknown to a cloud token', async () => {
    const body = { display_name: 'Site', files: [{ path: 'a', content_length: 1 }] }
    const foreign = await client.call(createGameCdnSite, { params: { game_id: other.game_id }, body })
    await arrives(platform, foreign.presigned_requests[0]!, 'a')
    const unknown = await refused('UPLOAD_NOT_FOUND', cloud.call(completeUpload, { params: { upload_id: UNKNOWN_ID } }))
    const { upload_id } = foreign
    const error = await refused('UPLOAD_NOT_FOUND', cloud.call(completeUpload, { params: { upload_id } }))
    assert.deepEqual([error.message, error.metadata], [unknown.message, unknown.metadata])
    assert.deepEqual(await other.cloud.call(completeUpload, { params: { upload_id } }), {})
  })
})
