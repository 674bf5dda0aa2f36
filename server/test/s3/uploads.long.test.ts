import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { completeUpload, createGameBuild, getUpload } from '@musterhost/contract'
import { newGame, refused } from '../cloud/steps.ts'
import { lacking } from '../run/optional-programs.ts'
import { tarGz } from '../support/builds.ts'
import { startPlatform } from '../support/platform.ts'
import { type S3TestService, type StoppableService, s3Settings, startSmallS3 } from './service.ts'
import { deploy, deploySite, filesOf, prepareSite, putBytes, run, temporaryFile, visit } from './steps.ts'
import { startSwift, swiftObstacle } from './swift.ts'

/** How long the service is away. */
const AWAY_MS = Number(process.env.AWAY_SECONDS ?? 1) * 1_000
const ROLES = 'api,matchmaker,edge'
const sha256Of = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

/** Three segments of the edge's cache, and a file of one block. */
const FILES = {
  'index.html': Buffer.from('<h1>a game</h1>'),
  'engine.bin': randomBytes(9 * 1024 * 1024),
  'level.json': Buffer.from(JSON.stringify(Array.from({ length: 60_000 }, (_, index) => index))),
}

const SERVICES: Record<string, (t: test.TestContext) => Promise<S3TestService | null>> = {
  'a small S3': startSmallS3,
  'OpenStack Swift': async (t) => {
    const obstacle = swiftObstacle()
    if (obstacle === null) return startSwift(t)
    t.skip(obstacle)
    return null
  },
}

for (const [name, start] of Object.entries(SERVICES)) {
  test(`uploads to ${name}`, async (t) => {
    const service = await start(t)
    if (service === null) return

    await t.test('through the api become a site that the edge serves', async (t) => {
      const platform = await startPlatform(t, { roles: ROLES, env: s3Settings(service, 'through/api') })
      const game = await newGame(platform)
      const host = await deploySite(platform, game, FILES)
      for (const [path, bytes] of Object.entries(FILES)) {
        for (const round of ['fetched', 'cached']) {
          const { status, body } = await visit(platform, host, `/${path}`)
          assert.equal(status, 200)
          assert.ok(body.equals(bytes), `${path} ${round}`)
        }
      }
      const part = await visit(platform, host, '/engine.bin', 'bytes=4194300-4194310')
      assert.equal(part.status, 206)
      assert.ok(part.body.equals(FILES['engine.bin'].subarray(4_194_300, 4_194_311)))
      assert.deepEqual(await readdir(join(platform.data_dir, 'cache', 'transfer')).then(filesIn(platform)), [])
      const again = await prepareSite(platform, game, { 'a.txt': Buffer.from('abc') })
      assert.equal((await putBytes(platform, again.presigned[0]!, Buffer.from('abc'))).status, 200)
      await platform.client.call(completeUpload, { params: { upload_id: again.upload_id } })
      const late = await putBytes(platform, again.presigned[0]!, Buffer.from('xyz'))
      assert.equal(late.status, 409)
    })

    await t.test('a build is checked, and is one object', async (t) => {
      const platform = await startPlatform(t, { roles: 'api', env: s3Settings(service, 'builds') })
      const { game_id } = await newGame(platform)
      const good = await tarGz({ 'server.mjs': 'console.log(1)' })
      for (const [bytes, is_good] of [
        [good, true],
        [randomBytes(1_000), false],
      ] as const) {
        const image_file = { path: 'server.tar.gz', content_length: bytes.length }
        const body = { display_name: 'Build', image_tag: `server:${is_good}`, image_file }
        const build = await platform.client.call(createGameBuild, { params: { game_id }, body })
        const { upload_id } = build
        await putBytes(platform, build.image_presigned_request!, bytes)
        const complete = platform.client.call(completeUpload, { params: { upload_id } })
        if (!is_good) await refused('ARCHIVE_INVALID', complete)
        else {
          await complete
          const [file] = await filesOf(platform, upload_id)
          assert.equal(file!.sha256, sha256Of(bytes))
          const { file_list } = await platform.ctx.db
            .selectFrom('builds')
            .select('file_list')
            .where('upload_id', '=', upload_id)
            .executeTakeFirstOrThrow()
          assert.match(file_list!, /server\.mjs/)
        }
      }
    })

    await t.test('straight to the bucket have exactly the announced length, and never change afterwards', async (t) => {
      const env = { ...s3Settings(service, 'direct'), MUSTER_S3_UPLOAD_ENDPOINT: service.endpoint }
      const platform = await startPlatform(t, { roles: ROLES, env })
      const { client, ctx } = platform
      const game = await newGame(platform)
      const site = await prepareSite(platform, game, FILES)
      const params = { upload_id: site.upload_id }
      assert.ok(site.presigned.every(({ url }) => url.startsWith(`${service.endpoint}/`)))
      const [first] = site.presigned
      const bytes = FILES[first!.path as keyof typeof FILES]
      for (const wrong of [bytes.subarray(1), Buffer.concat([bytes, bytes.subarray(0, 1)])]) {
        const { status } = await putBytes(platform, first!, wrong)
        assert.equal(status, 403)
      }
      const changed = { ...first!, url: first!.url.replace(/\/incoming\/\w{4}/, '/incoming/0000') }
      assert.equal((await putBytes(platform, changed, bytes)).status, 403)
      const error = await refused('UPLOAD_INCOMPLETE', client.call(completeUpload, { params }))
      assert.equal(error.metadata.missing_count, 3)
      for (const presigned of site.presigned) {
        const file = FILES[presigned.path as keyof typeof FILES]
        assert.equal((await putBytes(platform, presigned, file)).status, 200)
      }
      const { parts, presigned_requests } = await client.call(getUpload, { params })
      assert.ok(parts.every(({ is_arrived }) => is_arrived))
      assert.deepEqual(presigned_requests, [])
      await client.call(completeUpload, { params })
      const rows = await filesOf(platform, site.upload_id)
      assert.deepEqual(
        Object.fromEntries(rows.filter(({ is_packed }) => !is_packed).map(({ path, sha256 }) => [path, sha256])),
        Object.fromEntries(Object.entries(FILES).map(([path, file]) => [path, sha256Of(file)])),
      )
      // The address is valid for an hour: it leads to bytes that no row names.
      const forged = Buffer.alloc(bytes.length, 'x')
      assert.equal((await putBytes(platform, first!, forged)).status, 200)
      await client.call(completeUpload, { params })
      const host = await deploy(platform, game, site.site_id)
      for (const [path, file] of Object.entries(FILES)) {
        assert.ok((await visit(platform, host, `/${path}`)).body.equals(file))
      }
      for (const { object_key, sha256 } of rows) assert.equal((await ctx.objects.stat(object_key))!.sha256, sha256)
    })

    await t.test('a presigned address works with curl, and s3cmd and boto3 read what arrived', async (t) => {
      const missing = lacking('curl', 's3cmd', 'boto3')
      if (missing !== null) return t.skip(missing)
      const env = { ...s3Settings(service, 'clients'), MUSTER_S3_UPLOAD_ENDPOINT: service.endpoint }
      const platform = await startPlatform(t, { roles: 'api', env })
      const game = await newGame(platform)
      const bytes = randomBytes(100_000)
      const site = await prepareSite(platform, game, { 'curl.bin': bytes, 'python.bin': bytes })
      const path = await temporaryFile(t, bytes)
      const [curl, python] = site.presigned as [(typeof site.presigned)[0], (typeof site.presigned)[0]]
      const { stdout } = await run('curl', ['-sS', '-o', '-', '-w', '%{http_code}', '--upload-file', path, curl.url])
      assert.equal(stdout, '200')
      await run('/usr/bin/python3', ['-c', PUT_BY_BOTOCORE, python.url, path])
      await readBack(t, service, [curl.url, python.url], bytes)
      await platform.client.call(completeUpload, { params: { upload_id: site.upload_id } })
    })
  })
}

/** Sends the file with the HTTP client of boto3, and compares the signature of the address with the one that botocore makes. */
const PUT_BY_BOTOCORE = `
import sys, urllib.parse
from botocore.awsrequest import AWSRequest
from botocore.httpsession import URLLib3Session
url, path = sys.argv[1:]
body = open(path, 'rb').read()
request = AWSRequest('PUT', url, headers={'Content-Length': str(len(body))}, data=body)
response = URLLib3Session().send(request.prepare())
assert response.status_code == 200, (response.status_code, response.content)
`

const READ_BY_BOTO3 = `
import sys, hashlib, urllib.parse, boto3
from botocore.config import Config
endpoint, region, key_id, secret, sha256 = sys.argv[1:6]
s3 = boto3.client('s3', endpoint_url=endpoint, region_name=region, aws_access_key_id=key_id, aws_secret_access_key=secret,
  config=Config(s3={'addressing_style': 'path'}))
for url in sys.argv[6:]:
  bucket, key = urllib.parse.urlparse(url).path.lstrip('/').split('/', 1)
  body = s3.get_object(Bucket=bucket, Key=key)['Body'].read()
  assert hashlib.sha256(body).hexdigest() == sha256, key
`

async function readBack(t: test.TestContext, service: S3TestService, urls: string[], bytes: Buffer): Promise<void> {
  const { endpoint, region, access_key_id, secret_access_key } = service
  const login = [endpoint, region, access_key_id, secret_access_key]
  await run('/usr/bin/python3', ['-c', READ_BY_BOTO3, ...login, sha256Of(bytes), ...urls])
  const { host } = new URL(endpoint)
  const target = `${await temporaryFile(t, Buffer.alloc(0))}.out`
  for (const url of urls) {
    await run('s3cmd', [
      ...['--no-ssl', `--host=${host}`, `--host-bucket=${host}`, `--region=${region}`, '--config=/dev/null'],
      ...[`--access_key=${access_key_id}`, `--secret_key=${secret_access_key}`, '--force'],
      ...['get', `s3:/${new URL(url).pathname}`, target],
    ])
    const { stdout } = await run('sha256sum', [target])
    assert.equal(stdout.slice(0, 64), sha256Of(bytes))
  }
}

test('while the bucket is away', async (t) => {
  const service: StoppableService = await startSmallS3(t)
  const env = s3Settings(service, 'away')
  const platform = await startPlatform(t, { roles: ROLES, env })
  const { client } = platform
  const game = await newGame(platform)
  const host = await deploySite(platform, game, FILES)
  await visit(platform, host, '/engine.bin')
  await visit(platform, host, '/index.html')
  const waiting = { 'new.bin': randomBytes(400_000), 'arrived.bin': randomBytes(1_000) }
  const site = await prepareSite(platform, game, waiting)
  const [unsent, arrived] = site.presigned as [(typeof site.presigned)[0], (typeof site.presigned)[0]]
  assert.equal((await putBytes(platform, arrived, waiting['arrived.bin'])).status, 200)

  await service.stop()
  const begun_ms = performance.now()
  do {
    await t.test('visitors get cached files, and a clear refusal for others', async () => {
      assert.ok((await visit(platform, host, '/engine.bin')).body.equals(FILES['engine.bin']))
      assert.ok((await visit(platform, host, '/index.html')).body.equals(FILES['index.html']))
      const { status, code } = await visit(platform, host, '/level.json')
      assert.deepEqual([status, code], [503, 'API_NOT_AVAILABLE'])
    })

    await t.test('uploads are refused with the reason', async () => {
      const response = await putBytes(platform, unsent, waiting['new.bin'])
      assert.equal(response.status, 503)
      const { code, metadata } = (await response.json()) as { code: string; metadata: { reason: string } }
      assert.deepEqual([code, metadata.reason], ['API_NOT_AVAILABLE', 'objects_away'])
      assert.notEqual(response.headers.get('retry-after'), null)
      const complete = client.call(completeUpload, { params: { upload_id: site.upload_id } })
      assert.equal((await refused('API_NOT_AVAILABLE', complete)).metadata.reason, 'objects_away')
      assert.deepEqual(await readdir(join(platform.data_dir, 'cache', 'transfer')).then(filesIn(platform)), [])
    })
    await delay(Math.min(1_000, AWAY_MS / 2))
  } while (performance.now() - begun_ms < AWAY_MS)

  await t.test('an edge that starts serves cached files', async (t) => {
    await platform.close()
    const { database_url } = platform.ctx.config
    const later = await startPlatform(t, {
      ...{ roles: 'edge', env, data_dir: platform.data_dir, database_url: database_url! },
    })
    assert.ok((await visit(later, host, '/engine.bin')).body.equals(FILES['engine.bin']))
  })

  await t.test('afterwards the upload goes on where it was', async (t) => {
    await service.start()
    const { database_url } = platform.ctx.config
    const later = await startPlatform(t, {
      ...{ roles: ROLES, env, data_dir: platform.data_dir, database_url: database_url! },
    })
    const params = { upload_id: site.upload_id }
    const { parts } = await later.client.call(getUpload, { params })
    assert.deepEqual(Object.fromEntries(parts.map(({ path, is_arrived }) => [path, is_arrived])), {
      ...{ 'new.bin': false, 'arrived.bin': true },
    })
    assert.equal((await putBytes(later, unsent, waiting['new.bin'])).status, 200)
    await later.client.call(completeUpload, { params })
    const new_host = await deploy(later, game, site.site_id)
    assert.ok((await visit(later, new_host, '/new.bin')).body.equals(waiting['new.bin']))
  })
})

/** Of the folders of processes: the files that they have left. */
function filesIn({ data_dir }: { data_dir: string }) {
  return async (folders: string[]): Promise<string[]> =>
    (await Promise.all(folders.map((folder) => readdir(join(data_dir, 'cache', 'transfer', folder))))).flat()
}
