// The api is killed while files arrive, at random moments of their way: a process of its own, and SIGKILL.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { readdir, stat } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { completeUpload, createGameCdnSite } from '@musterhost/contract'
import { sweep } from '../../../src/cloud/sweep/sweep.ts'
import { isObjectKey } from '../../../src/objects/objects.ts'
import { ROLE_PROGRAM } from '../../run/built-programs.ts'
import { statusOf } from '../../supervisor/started.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'
import { arrives, newGame, type Presigned, refused } from '../steps.ts'

const LENGTH = 2_000_000
const DAY_MS = 24 * 3_600_000
/** From the first moment to the last, when the whole file has been sent and has not been acknowledged. */
const POSITIONS = [0, randomInt(1, LENGTH), randomInt(1, LENGTH), LENGTH - 1, LENGTH]

/** The api role of this platform as a process, ready. */
async function startApi(t: TestContext, platform: Platform): Promise<ChildProcess> {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env
  const child = spawn(process.execPath, [ROLE_PROGRAM], {
    env: {
      ...{ PATH, HOME, NODE_COMPILE_CACHE },
      ...{ MUSTER_ROLES: 'api', MUSTER_DATA: platform.data_dir, MUSTER_LOG_LEVEL: 'error' },
      DATABASE_URL: platform.ctx.config.database_url ?? '',
      MUSTER_API_PORT: new URL(platform.api_url).port,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  t.after(() => void child.kill('SIGKILL'))
  await until('the api', async () => {
    assert.equal(child.exitCode, null, 'the api could not be started')
    return (await statusOf(`${platform.api_url}/cloud/bootstrap`)) === 200
  })
  return child
}

async function kill(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

/** Sends that much of the file, as a client that takes its time. */
async function sendPart(platform: Platform, presigned: Presigned, bytes: Buffer): Promise<void> {
  const { pathname, search } = new URL(presigned.url)
  const socket = connect(Number(new URL(platform.api_url).port), '127.0.0.1')
  // It is cut off by the death of the other side.
  socket.on('error', () => {})
  await once(socket, 'connect')
  const head = [`PUT ${pathname}${search} HTTP/1.1`, 'Host: localhost', `Content-Length: ${LENGTH}`, '', '']
  socket.write(head.join('\r\n'))
  await new Promise((resolve) => socket.write(bytes, resolve))
}

/** The lengths of what is on its way in, of all processes. */
async function incoming(platform: Platform): Promise<number[]> {
  const folder = join(platform.data_dir, 'objects', 'incoming')
  const names = await readdir(folder, { recursive: true })
  const files = await Promise.all(names.map((name) => stat(join(folder, name))))
  return files.filter((file) => file.isFile()).map((file) => file.size)
}

test('the api is killed while files arrive: none is there by half, all can be sent again, and what was left is gone', async (t) => {
  const platform = await startPlatform(t, { roles: 'edge' })
  const { client, ctx } = platform
  let api = await startApi(t, platform)
  const { game_id } = await newGame(platform)
  const contents = POSITIONS.map(() => randomBytes(LENGTH))
  const files = POSITIONS.map((_, index) => ({ path: `file${index}`, content_length: LENGTH }))
  const body = { display_name: 'Site', files }
  const { upload_id, presigned_requests } = await client.call(createGameCdnSite, { params: { game_id }, body })
  const complete = () => client.call(completeUpload, { params: { upload_id } })

  for (const [index, position] of POSITIONS.entries()) {
    const where = `killed after ${position} of ${LENGTH} bytes`
    const [presigned, bytes] = [presigned_requests[index]!, contents[index]!]
    await sendPart(platform, presigned, bytes.subarray(0, position))
    if (position < LENGTH)
      await until('its bytes to be written', async () => (await incoming(platform)).includes(position))
    await kill(api)

    const object = await ctx.objects.stat(new URL(presigned.url).pathname.split('/').at(-1)!)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    // Who had sent everything may find it there, whole.
    if (position < LENGTH || object !== null) {
      assert.deepEqual(object, position < LENGTH ? null : { content_length: LENGTH, sha256 }, where)
    }
    api = await startApi(t, platform)
    assert.deepEqual(await incoming(platform), [], `${where}: something is left`)
    const is_last = index === POSITIONS.length - 1
    if (!is_last || object === null) {
      const { metadata } = await refused('UPLOAD_INCOMPLETE', complete())
      assert.ok((metadata.missing as string[]).includes(`file${index}`), where)
    }
    await arrives(platform, presigned, bytes)
  }
  await complete()
  const rows = await ctx.db
    .selectFrom('upload_files')
    .select('sha256')
    .where('upload_id', '=', upload_id)
    .orderBy('path')
    .execute()
  assert.deepEqual(
    rows.map((row) => row.sha256),
    contents.map((bytes) => createHash('sha256').update(bytes).digest('hex')),
  )
})

test('the api is killed while it compresses a site: it is completed again, and nothing else is left', async (t) => {
  const platform = await startPlatform(t, { roles: 'edge' })
  const { client, ctx } = platform
  const api = await startApi(t, platform)
  const { game_id } = await newGame(platform)
  const text = Buffer.from(Array.from({ length: 200_000 }, (_, index) => `line ${index} ${index * 7919}\n`).join(''))
  const body = { display_name: 'Site', files: [{ path: 'app.js', content_length: text.length }] }
  const { upload_id, presigned_requests } = await client.call(createGameCdnSite, { params: { game_id }, body })
  await arrives(platform, presigned_requests[0]!, text)
  const complete = () => client.call(completeUpload, { params: { upload_id } })
  const cut_off = complete().then(
    () => 'complete',
    () => 'cut off',
  )
  // The first compressed form is about to be written, and the second one not begun.
  await until('a note', async () => (await ctx.db.selectFrom('removed_objects').selectAll().execute()).length > 0)
  await kill(api)
  assert.equal(await cut_off, 'cut off')

  await startApi(t, platform)
  await complete()
  const rows = await ctx.db.selectFrom('upload_files').select(['path', 'object_key']).orderBy('path').execute()
  assert.deepEqual(
    rows.map(({ path }) => path),
    ['app.js', 'app.js.br', 'app.js.gz'],
  )
  platform.advance(2 * DAY_MS)
  await sweep(ctx)
  const names = await readdir(join(platform.data_dir, 'objects'), { recursive: true })
  const stored = names.map((name) => name.split('/').at(-1)!).filter(isObjectKey)
  assert.deepEqual(stored.toSorted(), rows.map(({ object_key }) => object_key).toSorted())
})
