// What need not be sent again: parts that have arrived, and contents that the group stores.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import test from 'node:test'
import {
  completeUpload,
  createGameBuild,
  createGameCdnSite,
  deleteGameCdnSite,
  getUpload,
  listStoredContents,
} from '@musterhost/contract'
import { sweepRemovedObjects } from '../../../src/cloud/sweep/removed-objects.ts'
import { startPlatform } from '../../support/platform.ts'
import { arrives, buildBody, newGame, putFile, refused, type TestGame, tarGz } from '../steps.ts'

type Texts = Record<string, string>

const sha256 = (bytes: string | Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const contentOf = (text: string) => ({ sha256: sha256(text), content_length: Buffer.byteLength(text) })

test('what has arrived is not sent again', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { client, ctx } = platform
  const game = await newGame(platform)
  const stranger = await newGame(platform)

  const prepare = ({ game_id }: TestGame, texts: Texts, { announced = true } = {}) => {
    const files = Object.entries(texts).map(([path, text]) => {
      const { sha256, content_length } = contentOf(text)
      return { path, content_length, ...(announced && { sha256 }) }
    })
    return client.call(createGameCdnSite, { params: { game_id }, body: { display_name: 'Site', files } })
  }
  const complete = (upload_id: string) => client.call(completeUpload, { params: { upload_id } })
  /** Returns the site, and the paths of the files that had to be sent. */
  const deploy = async (owner: TestGame, texts: Texts) => {
    const site = await prepare(owner, texts)
    for (const request of site.presigned_requests) await arrives(platform, request, texts[request.path]!)
    await complete(site.upload_id)
    return { ...site, sent: site.presigned_requests.map(({ path }) => path) }
  }
  const stored = ({ game_id }: TestGame, ...texts: string[]) =>
    client.call(listStoredContents, { params: { game_id }, body: { contents: texts.map(contentOf) } })
  const objectsOf = async (upload_id: string) => {
    const rows = await ctx.db
      .selectFrom('upload_files')
      .select(['path', 'object_key'])
      .where('upload_id', '=', upload_id)
      .execute()
    return new Map(rows.map(({ path, object_key }) => [path, object_key]))
  }
  const textOf = async (object_key: string) => String(await buffer(await ctx.objects.read(object_key)))

  await t.test('an upload says which files have arrived, and its new addresses finish it', async () => {
    const texts = { 'a.html': 'a', 'b.html': 'bb', 'c.html': 'ccc' }
    const { upload_id, presigned_requests } = await prepare(game, texts, { announced: false })
    await arrives(platform, presigned_requests[1]!, texts['b.html'])
    const upload = await client.call(getUpload, { params: { upload_id }, query: {} })
    assert.deepEqual([upload.kind, upload.complete, upload.part_count, upload.content_length], ['site', false, 3, 6])
    assert.deepEqual(
      upload.parts.map(({ path, byte_offset, is_arrived }) => [path, byte_offset, is_arrived]),
      [
        ['a.html', 0, false],
        ['b.html', 0, true],
        ['c.html', 0, false],
      ],
    )
    assert.deepEqual(
      upload.presigned_requests.map(({ path }) => path),
      ['a.html', 'c.html'],
    )
    for (const request of upload.presigned_requests) {
      await arrives(platform, request, texts[request.path as keyof typeof texts])
    }
    await complete(upload_id)
    const after = await client.call(getUpload, { params: { upload_id }, query: {} })
    assert.deepEqual([after.complete, after.presigned_requests], [true, []])
    assert.ok(after.parts.every(({ is_arrived }) => is_arrived))
    await refused('UPLOAD_NOT_FOUND', stranger.cloud.call(getUpload, { params: { upload_id }, query: {} }))
  })

  await t.test('a long list of files comes in pages that leave nothing out', async () => {
    const texts = Object.fromEntries(Array.from({ length: 2_100 }, (_, index) => [`file-${index}`, `text ${index}`]))
    const { upload_id } = await prepare(game, texts, { announced: false })
    const paths: string[] = []
    for (let offset = 0; offset < 3_000; offset += 1_000) {
      const { parts, part_count } = await client.call(getUpload, { params: { upload_id }, query: { offset } })
      assert.equal(part_count, 2_100)
      paths.push(...parts.map(({ path }) => path))
    }
    assert.deepEqual(paths.sort(), Object.keys(texts).sort())
  })

  await t.test('a content that the group stores is not sent again, and outlives the upload it came from', async () => {
    const first = await deploy(game, { 'index.html': 'one page', 'same.js': 'the same', 'twin.js': 'the same' })
    assert.deepEqual(first.sent, ['index.html', 'same.js', 'twin.js'])
    assert.deepEqual(await stored(game, 'the same', 'unknown'), { stored: [contentOf('the same')] })
    const second = await deploy(game, { 'index.html': 'another page', 'moved/same.js': 'the same' })
    assert.deepEqual(second.sent, ['index.html'])

    const { game_id } = game
    await client.call(deleteGameCdnSite, { params: { game_id, site_id: first.site_id } })
    platform.advance(ctx.config.retention.removed_objects_ms + 1)
    await sweepRemovedObjects(ctx)
    for (const object_key of (await objectsOf(first.upload_id)).values())
      assert.equal(await ctx.objects.stat(object_key), null)
    assert.equal(await textOf((await objectsOf(second.upload_id)).get('moved/same.js')!), 'the same')
    assert.equal((await prepare(game, { 'again.js': 'the same' })).presigned_requests.length, 0)
  })

  await t.test('a build with the same archive is complete without a PUT', async () => {
    const { game_id } = game
    const bytes = await tarGz({ 'server.js': 'console.log(2)' })
    const create = async () => {
      const body = buildBody(bytes)
      const image_file = { ...body.image_file, sha256: sha256(bytes) }
      return client.call(createGameBuild, { params: { game_id }, body: { ...body, image_file } })
    }
    const first = await create()
    await arrives(platform, first.image_presigned_request!, bytes)
    await complete(first.upload_id)
    const second = await create()
    assert.equal(second.image_presigned_request, undefined)
    await complete(second.upload_id)
    const { complete: is_complete } = await client.call(getUpload, {
      params: { upload_id: second.upload_id },
      query: {},
    })
    assert.ok(is_complete)
  })

  await t.test('the hash of another group yields neither its bytes nor that they exist', async () => {
    const secret = 'what only one group has'
    const own = await deploy(game, { 'secret.txt': secret })
    assert.deepEqual(await stored(stranger, secret, 'what no group has'), { stored: [] })
    const known = await prepare(stranger, { 'stolen.txt': secret })
    const unknown = await prepare(stranger, { 'stolen.txt': 'what no group has, too' })
    const shapeOf = (site: typeof known) => [
      Object.keys(site),
      site.presigned_requests.map((request) => [request.path, Object.keys(request)]),
    ]
    assert.deepEqual(shapeOf(known), shapeOf(unknown))
    const refusals = await Promise.all(
      [known, unknown].map(({ upload_id }) => refused('UPLOAD_INCOMPLETE', complete(upload_id))),
    )
    assert.deepEqual(refusals[0]!.metadata, refusals[1]!.metadata)
    await refused(
      'GAME_NOT_FOUND',
      stranger.cloud.call(listStoredContents, {
        params: { game_id: game.game_id },
        body: { contents: [contentOf(secret)] },
      }),
    )
    await refused(
      'UPLOAD_NOT_FOUND',
      stranger.cloud.call(getUpload, { params: { upload_id: own.upload_id }, query: {} }),
    )
  })

  await t.test('an upload that is not complete, and a damaged object, are no source of contents', async () => {
    const { presigned_requests } = await prepare(game, { 'half.txt': 'sent, not completed' })
    await arrives(platform, presigned_requests[0]!, 'sent, not completed')
    assert.deepEqual(await stored(game, 'sent, not completed'), { stored: [] })

    const { upload_id } = await deploy(game, { 'bad.txt': 'bytes that a disk damages' })
    const object_key = (await objectsOf(upload_id)).get('bad.txt')!
    await ctx.db
      .insertInto('damaged_objects')
      .values({ object_key, reason: 'bytes', found_by: 'api', found_ts: new Date(ctx.now()), quarantine_ts: null })
      .execute()
    assert.deepEqual(await stored(game, 'bytes that a disk damages'), { stored: [] })
    assert.equal((await prepare(game, { 'bad.txt': 'bytes that a disk damages' })).presigned_requests.length, 1)
  })

  await t.test('a file that is not the announced one is refused, named, and can be sent again', async () => {
    const { upload_id, presigned_requests } = await prepare(game, { 'good.txt': 'good', 'right.txt': 'right' })
    await arrives(platform, presigned_requests[0]!, 'evil')
    await arrives(platform, presigned_requests[1]!, 'right')
    const { metadata } = await refused('UPLOAD_INCOMPLETE', complete(upload_id))
    assert.deepEqual([metadata.missing, metadata.missing_count], [['good.txt'], 1])
    await arrives(platform, presigned_requests[0]!, 'good')
    await complete(upload_id)
    assert.equal((await putFile(platform, presigned_requests[0]!, 'evil')).status, 409)
    assert.deepEqual(await stored(game, 'good', 'evil'), { stored: [contentOf('good')] })
  })

  await t.test('one changed file of 500 is the only one that is sent', async () => {
    const texts: Texts = Object.fromEntries(
      Array.from({ length: 500 }, (_, index) => [`${index}.txt`, `file ${index}`]),
    )
    assert.equal((await deploy(game, texts)).sent.length, 500)
    assert.deepEqual((await deploy(game, { ...texts, '77.txt': 'changed' })).sent, ['77.txt'])
  })
})
