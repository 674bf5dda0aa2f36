import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, type RequestOptions, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import {
  completeUpload,
  deleteGame,
  gameBannerUploadComplete,
  gameBannerUploadPrepare,
  gameLogoUploadComplete,
  gameLogoUploadPrepare,
  getGameById,
  getGames,
} from '@musterhost/contract'
import { sweep } from '../../src/cloud/sweep/sweep.ts'
import { mainUrl } from '../../src/config/addresses.ts'
import { MEDIA_AGE_MS_MAX } from '../../src/edge/limits.ts'
import { GIF, HTML, JPEG, PNG, pngChunk, pngOf, SVG, WEBP } from '../support/images.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { arrives, newGame, putFile, refused, UNKNOWN_ID } from './steps.ts'

const KINDS = {
  logo: { prepare: gameLogoUploadPrepare, complete: gameLogoUploadComplete, url: 'logo_url' },
  banner: { prepare: gameBannerUploadPrepare, complete: gameBannerUploadComplete, url: 'banner_url' },
} as const
type Kind = keyof typeof KINDS

type Answer = { status: number; headers: IncomingHttpHeaders; body: Buffer }

/** As a browser asks the edge for an address of the CDN's domain. */
async function look(platform: Platform, url: string, options: RequestOptions = {}): Promise<Answer> {
  const { host, pathname, search } = new URL(url)
  const headers = { ...options.headers, host }
  const req = request(`${platform.edge_url}${pathname}${search}`, { ...options, headers, agent: false }).end()
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  return { status: res.statusCode ?? 0, headers: res.headers, body: await buffer(res) }
}

test('logos and banners', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,edge', env: { MUSTER_QUOTA_STORAGE_MB: '20' } })
  const { client, ctx } = platform

  const prepare = (kind: Kind, game_id: string, bytes: Buffer, path = 'picture.png', mime?: string) =>
    client.call(KINDS[kind].prepare, {
      params: { game_id },
      body: { path, content_length: bytes.length, ...(mime === undefined ? {} : { mime }) },
    })
  const complete = (kind: Kind, game_id: string, upload_id: string) =>
    client.call(KINDS[kind].complete, { params: { game_id, upload_id } })
  /** Prepared and sent, not completed. */
  const send = async (kind: Kind, game_id: string, bytes: Buffer): Promise<string> => {
    const { upload_id, presigned_request } = await prepare(kind, game_id, bytes)
    await arrives(platform, presigned_request, bytes)
    return upload_id
  }
  const show = async (kind: Kind, game_id: string, bytes: Buffer): Promise<string> => {
    await complete(kind, game_id, await send(kind, game_id, bytes))
    const { game } = await client.call(getGameById, { params: { game_id } })
    return game[KINDS[kind].url]!
  }

  await t.test('a picture is shown under its hash, with the type of its bytes and no power over anybody', async () => {
    const { game_id } = await newGame(platform)
    const { game: before } = await client.call(getGameById, { params: { game_id } })
    assert.deepEqual([before.logo_url, before.banner_url], [undefined, undefined])
    const types = { 'image/png': PNG, 'image/jpeg': JPEG, 'image/gif': GIF, 'image/webp': WEBP }
    for (const [content_type, bytes] of Object.entries(types)) {
      const url = await show('logo', game_id, bytes)
      const hash = createHash('sha256').update(bytes).digest('hex')
      const [, name] = content_type.split('/')
      const { port } = new URL(platform.edge_url)
      assert.equal(url, `http://muster-game-media.cdn.localhost:${port}/${hash}.${name === 'jpeg' ? 'jpg' : name}`)
      const answer = await look(platform, url)
      assert.equal(answer.status, 200)
      assert.ok(answer.body.equals(bytes))
      const { headers } = answer
      assert.equal(headers['content-type'], content_type)
      assert.equal(headers['x-content-type-options'], 'nosniff')
      assert.equal(headers['content-security-policy'], "default-src 'none'; frame-ancestors 'none'; sandbox")
      assert.equal(headers['cross-origin-resource-policy'], 'cross-origin')
      assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable')
      assert.equal(headers.etag, `"${hash}"`)
      const of_hub = await look(platform, `${mainUrl(platform.ctx.config)}/media${new URL(url).pathname}`)
      assert.deepEqual([of_hub.status, of_hub.body, of_hub.headers.etag], [200, bytes, headers.etag])
    }
    await show('banner', game_id, PNG)
    const { games } = await client.call(getGames, {})
    const { game } = await client.call(getGameById, { params: { game_id } })
    const listed = games.find((item) => item.game_id === game_id)
    assert.match(listed?.logo_url ?? '', /\.webp$/)
    assert.deepEqual([listed?.logo_url, listed?.banner_url], [game.logo_url, game.banner_url])
  })

  await t.test('parts, tags, HEAD and other methods are answered as by the CDN', async () => {
    const { game_id } = await newGame(platform)
    const url = await show('logo', game_id, PNG)
    const { etag = '' } = (await look(platform, url)).headers
    const part = await look(platform, url, { headers: { range: 'bytes=1-3' } })
    assert.deepEqual([part.status, part.body.toString()], [206, 'PNG'])
    assert.equal(part.headers['content-range'], `bytes 1-3/${PNG.length}`)
    const none = await look(platform, url, { headers: { range: 'bytes=5000-' } })
    assert.deepEqual([none.status, none.headers['content-range']], [416, `bytes */${PNG.length}`])
    const same = await look(platform, url, { headers: { 'if-none-match': etag } })
    assert.deepEqual([same.status, same.body.length, same.headers.etag], [304, 0, etag])
    const head = await look(platform, url, { method: 'HEAD' })
    assert.deepEqual([head.status, head.body.length], [200, 0])
    assert.equal(head.headers['content-length'], String(PNG.length))
    const posted = await look(platform, url, { method: 'POST' })
    assert.deepEqual([posted.status, posted.headers.allow], [405, 'GET, HEAD'])
    for (const path of ['/', '/index.html', `${new URL(url).pathname.slice(0, -4)}.gif`, `/${'0'.repeat(64)}.png`]) {
      assert.equal((await look(platform, new URL(path, url).href)).status, 404, path)
    }
  })

  await t.test('the bytes decide, and what could be something else too is refused', async () => {
    const { game_id } = await newGame(platform)
    const pretends = await prepare('logo', game_id, JPEG, 'logo.png', 'image/png')
    const sent = { method: 'PUT', headers: { 'content-type': 'image/png' }, body: new Uint8Array(JPEG) }
    const { pathname, search } = new URL(pretends.presigned_request.url)
    assert.equal((await fetch(`${platform.api_url}${pathname}${search}`, sent)).status, 200)
    await complete('logo', game_id, pretends.upload_id)
    const { game } = await client.call(getGameById, { params: { game_id } })
    assert.equal((await look(platform, game.logo_url!)).headers['content-type'], 'image/jpeg')

    const hostile: [string, Buffer][] = [
      ['format', Buffer.from(SVG)],
      ['format', Buffer.from(HTML)],
      ['format', Buffer.alloc(0)],
      ['trailing', Buffer.concat([PNG, Buffer.from(HTML)])],
      ['trailing', Buffer.concat([GIF, Buffer.from(HTML)])],
      ['malformed', PNG.subarray(0, 40)],
      ['too_many_pixels', pngOf(100_000, 100_000)],
    ]
    for (const [reason, bytes] of hostile) {
      const upload_id = await send('logo', game_id, bytes)
      const error = await refused('IMAGE_INVALID', complete('logo', game_id, upload_id))
      assert.deepEqual([error.status, error.metadata.reason], [400, reason], error.message)
    }
    const { game: after } = await client.call(getGameById, { params: { game_id } })
    assert.equal(after.logo_url, game.logo_url, 'the old one stays')
    // HTML inside of a picture is still a picture, and nothing else under any address.
    const inside = pngOf(3, 2, pngChunk('tEXt', Buffer.from(`Comment\0${HTML}`)))
    const { headers } = await look(platform, await show('logo', game_id, inside))
    assert.deepEqual([headers['content-type'], headers['x-content-type-options']], ['image/png', 'nosniff'])
  })

  await t.test('lengths stay below the limits, and count to what the group stores', async () => {
    const { game_id } = await newGame(platform)
    const of = (kind: Kind, content_length: number) =>
      client.call(KINDS[kind].prepare, { params: { game_id }, body: { path: 'a.png', content_length } })
    for (const [kind, limit] of [
      ['logo', 5_000_000],
      ['banner', 10_000_000],
    ] as const) {
      const error = await refused('UPLOAD_TOO_LARGE', of(kind, limit))
      assert.deepEqual(error.metadata, { content_length: limit, content_length_max: limit - 1 })
      await of(kind, limit - 1)
    }
    await refused('QUOTA_REACHED', of('banner', 9_000_000))
    const bad = client.call(gameLogoUploadPrepare, { params: { game_id }, body: { path: '../a', content_length: 1 } })
    assert.deepEqual((await refused('UPLOAD_INVALID', bad)).metadata.errors, [
      { path: ['path'], reason: 'segment', message: '"../a" has a segment that is empty, . or ...' },
    ])
  })

  await t.test('a picture that is replaced goes, and so do the pictures of a game that is deleted', async () => {
    const { game_id } = await newGame(platform)
    const other = await newGame(platform)
    const objects = async () => (await ctx.db.selectFrom('removed_objects').select('object_key').execute()).length
    const first = await show('logo', game_id, pngOf(10, 10))
    const shared = await show('logo', other.game_id, pngOf(11, 11))
    const noted = await objects()
    assert.equal(await show('logo', game_id, pngOf(11, 11)), shared, 'the same picture has the same address')
    assert.equal(await objects(), noted + 1)
    platform.advance(MEDIA_AGE_MS_MAX)
    assert.equal((await look(platform, first)).status, 404)
    await client.call(deleteGame, { params: { game_id } })
    assert.equal(await objects(), noted + 2)
    platform.advance(MEDIA_AGE_MS_MAX)
    assert.equal((await look(platform, shared)).status, 200, 'the other game shows it still')
    await client.call(deleteGame, { params: { game_id: other.game_id } })
    platform.advance(MEDIA_AGE_MS_MAX)
    assert.equal((await look(platform, shared)).status, 404)
    const keys = await ctx.db.selectFrom('removed_objects').select('object_key').execute()
    platform.advance(ctx.config.retention.removed_objects_ms)
    await sweep(ctx)
    for (const { object_key } of keys) assert.equal(await ctx.objects.stat(object_key), null)
  })

  await t.test('completing is only for what was sent, by its own operation, and may be said again', async () => {
    const game = await newGame(platform)
    const { game_id } = game
    const { upload_id, presigned_request } = await prepare('logo', game_id, PNG)
    await refused('UPLOAD_INCOMPLETE', complete('logo', game_id, upload_id))
    await arrives(platform, presigned_request, PNG)
    const stranger = await newGame(platform)
    await refused('UPLOAD_NOT_FOUND', complete('logo', stranger.game_id, upload_id))
    await refused('UPLOAD_NOT_FOUND', complete('banner', game_id, upload_id))
    await refused('UPLOAD_NOT_FOUND', complete('logo', game_id, UNKNOWN_ID))
    await refused('UPLOAD_NOT_FOUND', client.call(completeUpload, { params: { upload_id } }))
    const params = { game_id, upload_id }
    await refused('GAME_NOT_FOUND', stranger.cloud.call(gameLogoUploadComplete, { params }))
    await game.cloud.call(gameLogoUploadComplete, { params })
    await Promise.all(Array.from({ length: 4 }, () => complete('logo', game_id, upload_id)))
    assert.equal((await putFile(platform, presigned_request, PNG)).status, 409)
    await show('logo', game_id, GIF)
    await refused('UPLOAD_NOT_FOUND', complete('logo', game_id, upload_id))
  })

  await t.test('of many completed at once one is shown, and of many prepared a few are kept', async () => {
    const { game_id } = await newGame(platform)
    const pictures = Array.from({ length: 6 }, (_, index) => pngOf(20 + index, 20))
    const ids = await Promise.all(pictures.map((bytes) => send('logo', game_id, bytes)))
    await Promise.all(ids.map((upload_id) => complete('logo', game_id, upload_id)))
    const rows = () => ctx.db.selectFrom('uploads').select('upload_id').where('game_id', '=', game_id).execute()
    assert.equal((await rows()).length, 1)
    const { game } = await client.call(getGameById, { params: { game_id } })
    assert.equal((await look(platform, game.logo_url!)).status, 200)
    const first = await prepare('logo', game_id, PNG)
    for (let count = 0; count < 20; count++) await prepare('logo', game_id, PNG)
    assert.equal((await rows()).length, 1 + 8)
    assert.equal((await putFile(platform, first.presigned_request, PNG)).status, 404)
  })
})
