// Long text files of a site, compressed by the platform when the upload is completed.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { brotliCompressSync, brotliDecompressSync, gunzipSync } from 'node:zlib'
import {
  completeUpload,
  createGameCdnSite,
  createGameVersion,
  deleteGameCdnSite,
  getGameById,
  updateGameNamespaceVersion,
} from '@musterhost/contract'
import { sweep } from '../../../src/cloud/sweep/sweep.ts'
import { isObjectKey } from '../../../src/objects/objects.ts'
import { changeByte } from '../../backup/steps.ts'
import { get as getAtPort } from '../../edge/get.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'
import { arrives, newGame } from '../steps.ts'

const DAY_MS = 24 * 3_600_000
const lines = (count: number, what: string) =>
  Buffer.from(Array.from({ length: count }, (_, index) => `${what} ${index} ${index * 7919}\n`).join(''))

const FILES: Record<string, Buffer> = {
  'app.js': lines(30_000, 'const line ='),
  'short.js': lines(1_000, 'short'),
  'own.css': lines(30_000, 'own'),
  'own.css.br': brotliCompressSync('from the build'),
  'noise.json': randomBytes(400_000),
  'picture.png': lines(30_000, 'no text by its type'),
}

async function prepareSite(platform: Platform, game_id: string) {
  const files = Object.entries(FILES).map(([path, { length }]) => ({ path, content_length: length }))
  const body = { display_name: 'Site', files }
  const site = await platform.client.call(createGameCdnSite, { params: { game_id }, body })
  for (const presigned of site.presigned_requests) await arrives(platform, presigned, FILES[presigned.path]!)
  return site
}

async function deploy(platform: Platform, game_id: string, site_id: string): Promise<string> {
  const { client } = platform
  const config = { cdn: { site_id } }
  const { version_id } = await client.call(createGameVersion, {
    params: { game_id },
    body: { display_name: `Version of ${site_id}`, config },
  })
  const { game } = await client.call(getGameById, { params: { game_id } })
  const { namespace_id } = game.namespaces.find(({ name_id }) => name_id === 'prod')!
  await client.call(updateGameNamespaceVersion, { params: { game_id, namespace_id }, body: { version_id } })
  return `${game.name_id}.cdn.localhost`
}

/** The names of all stored objects. */
async function storedKeys(platform: Platform): Promise<string[]> {
  const names = await readdir(join(platform.data_dir, 'objects'), { recursive: true })
  return names.map((name) => name.split('/').at(-1)!).filter(isObjectKey)
}

const start = (t: TestContext) => startPlatform(t, { roles: 'api,edge' })

test('a long text file is compressed when its upload is completed, for the first visitor too', async (t) => {
  const platform = await start(t)
  const { ctx } = platform
  const { game_id } = await newGame(platform)
  const { site_id, upload_id } = await prepareSite(platform, game_id)
  await platform.client.call(completeUpload, { params: { upload_id } })
  const rows = await ctx.db
    .selectFrom('upload_files')
    .select(['path', 'object_key', 'sha256', 'checked_ts'])
    .where('upload_id', '=', upload_id)
    .orderBy('path')
    .execute()
  const made = rows.filter(({ path }) => !(path in FILES))
  assert.deepEqual(
    made.map(({ path }) => path),
    ['app.js.br', 'app.js.gz', 'own.css.gz'],
  )
  for (const { sha256, checked_ts } of made) assert.ok(sha256 !== null && checked_ts !== null)

  const host = await deploy(platform, game_id, site_id)
  const port = Number(new URL(platform.edge_url).port)
  const get = (path: string, headers: Record<string, string> = {}) =>
    getAtPort({ port }, path, { headers: { host, ...headers } })
  await until('the site is there', async () => (await get('/short.js')).status === 200)
  const app = FILES['app.js']!
  for (const [encoding, unpack] of [
    ['br', brotliDecompressSync],
    ['gzip', gunzipSync],
  ] as const) {
    const answer = await get('/app.js', { 'accept-encoding': encoding })
    assert.deepEqual([answer.status, answer.headers['content-encoding']], [200, encoding])
    assert.ok(unpack(answer.body).equals(app))
    assert.ok(answer.body.length < app.length / 2)
    assert.deepEqual(
      [answer.headers['content-type'], answer.headers.vary],
      ['text/javascript; charset=utf-8', 'Accept-Encoding'],
    )
    const { etag = '' } = answer.headers
    assert.equal((await get('/app.js', { 'accept-encoding': encoding, 'if-none-match': etag })).status, 304)
  }
  const plain = await get('/app.js')
  assert.ok(plain.body.equals(app) && plain.headers['content-encoding'] === undefined)
  const part = await get('/app.js', { 'accept-encoding': 'br', range: 'bytes=5-9' })
  assert.deepEqual([part.status, part.body.toString()], [206, app.subarray(5, 10).toString()])
  assert.equal(
    brotliDecompressSync((await get('/own.css', { 'accept-encoding': 'br' })).body).toString(),
    'from the build',
  )
  assert.equal((await get('/noise.json', { 'accept-encoding': 'br' })).headers['content-encoding'], undefined)
  // A compressed form is no file of the site.
  assert.deepEqual([(await get('/app.js.br')).status, (await get('/own.css.br')).status], [404, 200])

  // A damaged form is never served, and the file itself is there. This one has not been requested before.
  const { object_key } = made.find(({ path }) => path === 'own.css.gz')!
  const getDamaged = () => get('/own.css', { 'accept-encoding': 'gzip' })
  await changeByte(ctx.objects.localPath(object_key)!, 0.5, 1)
  assert.equal((await getDamaged()).code, 'STORED_FILE_DAMAGED')
  const served = await until('the edge knows the mark', async () => {
    const answer = await getDamaged()
    return answer.status === 200 ? answer : null
  })
  assert.ok(served.body.equals(FILES['own.css']!) && served.headers['content-encoding'] === undefined)
})

test('completed twice at once, compressed forms are there once, and with the site all its objects go', async (t) => {
  const platform = await start(t)
  const { ctx, client } = platform
  const { game_id } = await newGame(platform)
  const { site_id, upload_id } = await prepareSite(platform, game_id)
  await Promise.all(Array.from({ length: 3 }, () => client.call(completeUpload, { params: { upload_id } })))
  const named = async () =>
    (await ctx.db.selectFrom('upload_files').select('object_key').execute()).map(({ object_key }) => object_key)
  assert.equal((await named()).length, Object.keys(FILES).length + 3)
  platform.advance(2 * DAY_MS)
  await sweep(ctx)
  assert.deepEqual((await storedKeys(platform)).toSorted(), (await named()).toSorted())
  await client.call(deleteGameCdnSite, { params: { game_id, site_id } })
  platform.advance(2 * DAY_MS)
  await sweep(ctx)
  assert.deepEqual([await named(), await storedKeys(platform)], [[], []])
})
