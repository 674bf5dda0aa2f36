// Stored files whose bytes have changed on the disk: one bit of a file is flipped. No response may contain a changed byte
// without breaking off, whatever form of the file is requested.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, readlinkSync } from 'node:fs'
import { rename, rm, truncate } from 'node:fs/promises'
import { type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { digestOf } from '../../src/objects/digest.ts'
import { changeByte } from '../backup/steps.ts'
import { until } from '../support/until.ts'
import { get, HOST, type HttpResponse } from './get.ts'
import { rawClient, startTestEdge, type TestEdge } from './platform.ts'

const SMALL = Buffer.from(`// ${'a line of code\n'.repeat(400)}`)
/** A length of eight blocks, the last one short. */
const LARGE = randomBytes(1_000_000)

type Site = { edge: TestEdge; pathOf: (name: string) => Promise<string>; keyOf: (name: string) => Promise<string> }

async function startSite(t: TestContext, files: Record<string, Buffer>): Promise<Site> {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  await game.deploy(await game.site(files))
  const keyOf = async (name: string): Promise<string> => {
    const row = await edge.ctx.db
      .selectFrom('upload_files')
      .select('object_key')
      .where('path', '=', name)
      .executeTakeFirstOrThrow()
    return row.object_key
  }
  return { edge, keyOf, pathOf: async (name) => edge.ctx.objects.localPath(await keyOf(name))! }
}

function requireRefused({ status, code, headers }: HttpResponse, what: string): void {
  assert.deepEqual(
    [status, code, headers['cache-control'], headers.etag],
    [503, 'STORED_FILE_DAMAGED', 'no-store', undefined],
    what,
  )
}

test('a damaged small file is refused plain, compressed, and by range', async (t) => {
  const { edge, pathOf } = await startSite(t, {
    'plain.bin': SMALL,
    'packed.js': SMALL,
    'part.bin': SMALL,
    'short.bin.gz': gzipSync(LARGE.subarray(0, 9)),
  })
  for (const [name, headers] of [
    ['plain.bin', {}],
    ['packed.js', { 'accept-encoding': 'br' }],
    ['part.bin', { range: 'bytes=0-9' }],
    ['short.bin.gz', { 'accept-encoding': 'identity' }],
  ] as const) {
    const path = await pathOf(name)
    const mend = await changeByte(path, 0.9, 1)
    requireRefused(await get(edge, `/${name}`, { headers }), name)
    await until('the edge knows the mark', () => isMarked(edge, name))
    requireRefused(await get(edge, `/${name}`, { headers }), `${name}, again`)
    await mend()
    await unmark(edge)
    const sound = await until('the file is served again', async () => {
      const response = await get(edge, `/${name}`)
      return response.status === 200 ? response : null
    })
    assert.deepEqual(sound.body, name === 'short.bin.gz' ? LARGE.subarray(0, 9) : SMALL)
  }
  await takeFaults(edge, 4)
})

test('neither a range nor a whole file ever contains a changed byte, wherever it is', async (t) => {
  const { edge, pathOf } = await startSite(t, { 'large.bin': LARGE })
  const path = await pathOf('large.bin')
  const whole = await get(edge, '/large.bin')
  assert.deepEqual(whole.body, LARGE)
  const part = (range: string) => get(edge, '/large.bin', { headers: { range } })
  for (const [start, end] of [
    [0, 0],
    [131_071, 131_072],
    [500_000, 999_999],
    [999_999, 999_999],
  ] as const) {
    const response = await part(`bytes=${start}-${end}`)
    assert.equal(response.status, 206)
    assert.deepEqual(response.body, LARGE.subarray(start, end + 1))
  }

  await changeByte(path, 0.5, 0x80)
  // The changed byte is number 500,000, in the fourth block.
  assert.deepEqual((await part('bytes=0-99')).body, LARGE.subarray(0, 100), 'a block that is as it was')
  const client = rawClient(t, edge.port)
  client.write(`GET /large.bin HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`)
  const response = await client.end()
  const [head = '', body = ''] = [
    response.slice(0, response.indexOf('\r\n\r\n')),
    response.slice(response.indexOf('\r\n\r\n') + 4),
  ]
  assert.match(head, /^HTTP\/1\.1 200 [\s\S]*content-length: 1000000/)
  assert.equal(body.length, 3 * 131_072, 'the connection ends before the block that changed')
  assert.ok(Buffer.from(body, 'latin1').equals(LARGE.subarray(0, body.length)))
  await until('the damage is marked', async () => (await marks(edge)).length > 0)
  await until('the mark is read', async () => (await part('bytes=0-99')).status === 503)
  requireRefused(await part('bytes=400000-600000'), 'a range with the byte')
  requireRefused(await get(edge, '/large.bin', { method: 'GET' }), 'the whole file')
  assert.equal((await get(edge, '/large.bin', { method: 'HEAD' })).status, 503)
  await takeFaults(edge, 1)
})

test('a file without recorded block hashes is verified too', async (t) => {
  const { edge, pathOf } = await startSite(t, { 'old.bin': LARGE, 'spoilt.bin': LARGE.subarray(1) })
  await edge.ctx.db.updateTable('upload_files').set({ block_hashes: null }).execute()
  const range = { headers: { range: 'bytes=700000-700009' } }
  const part = await get(edge, '/old.bin', range)
  assert.deepEqual([part.status, part.body], [206, LARGE.subarray(700_000, 700_010)])
  await changeByte(await pathOf('spoilt.bin'), 0.1, 1)
  requireRefused(await get(edge, '/spoilt.bin', range), 'the whole of it is not what was uploaded')
  await until('the damage is marked', async () => (await marks(edge)).length > 0)
  await takeFaults(edge, 1)
})

test('a wrong list of block hashes is not cached: once it is corrected, the file is served', async (t) => {
  const { edge, keyOf } = await startSite(t, { 'large.bin': LARGE })
  const object_key = await keyOf('large.bin')
  const record = (block_hashes: Buffer | null) =>
    edge.ctx.db.updateTable('upload_files').set({ block_hashes }).where('object_key', '=', object_key).execute()
  await record(Buffer.alloc(8 * 32))
  requireRefused(await get(edge, '/large.bin'), 'nothing proves the bytes')
  await until('the file is marked', async () => (await marks(edge)).length > 0)
  await record(digestOf(LARGE).block_hashes)
  await unmark(edge)
  const response = await until('the file is served', async () => {
    const again = await get(edge, '/large.bin')
    return again.status === 200 ? again : null
  })
  assert.deepEqual(response.body, LARGE)
  await takeFaults(edge, 1)
})

test('a range that begins with the damage is refused before its first byte', async (t) => {
  const { edge, pathOf } = await startSite(t, { 'large.bin': LARGE })
  assert.equal((await get(edge, '/large.bin')).status, 200)
  await changeByte(await pathOf('large.bin'), 0.5, 1)
  requireRefused(await get(edge, '/large.bin', { headers: { range: 'bytes=500000-500000' } }), 'the byte itself')
  await until('the damage is marked', async () => (await marks(edge)).length > 0)
  await takeFaults(edge, 1)
})

test('a file that is shorter, longer, swapped with another one, or gone is refused', async (t) => {
  const { edge, pathOf } = await startSite(t, {
    'a.bin': LARGE,
    'b.bin': randomBytes(1_000_000),
    'c.bin': SMALL,
    'd.bin': LARGE.subarray(1),
  })
  const [a, b, c, d] = await Promise.all(['a.bin', 'b.bin', 'c.bin', 'd.bin'].map(pathOf))
  await rename(a!, `${a}.swap`)
  await rename(b!, a!)
  await rename(`${a}.swap`, b!)
  await rm(c!)
  await truncate(d!, 900_000)
  for (const name of ['a.bin', 'b.bin', 'c.bin', 'd.bin']) requireRefused(await get(edge, `/${name}`), name)
  await until('all four files are marked', async () => (await marks(edge)).length === 4)
  const reasons = (await marks(edge)).map(({ reason }) => reason).sort()
  assert.deepEqual(reasons, ['bytes', 'bytes', 'length', 'missing'])
  await takeFaults(edge, 4)
})

test('a client that disconnects during a response leaves no open file', async (t) => {
  const { edge, pathOf } = await startSite(t, { 'large.bin': randomBytes(20_000_000) })
  const path = await pathOf('large.bin')
  const client = rawClient(t, edge.port)
  client.socket.pause()
  client.write(`GET /large.bin HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`)
  await until('the file is open', () => isOpen(path))
  client.socket.destroy()
  await until('the file is closed', () => !isOpen(path))
})

function marks(edge: TestEdge) {
  return edge.ctx.db.selectFrom('damaged_objects').selectAll().execute()
}

/** A HEAD reads no bytes, so only the mark refuses it. A read instead would mark the object again. */
async function isMarked(edge: TestEdge, name: string): Promise<boolean> {
  return (await get(edge, `/${name}`, { method: 'HEAD' })).status === 503
}

async function unmark(edge: TestEdge): Promise<void> {
  await edge.ctx.db.deleteFrom('damaged_objects').execute()
  await edge.ctx.listener.notify('damaged_objects')
}

/** Waits for the errors in the log: the edge logs each damaged object once, a moment after its mark. */
async function takeFaults(edge: TestEdge, count: number): Promise<void> {
  await until('the damage is logged', () => edge.faults.length >= count)
  const faults = edge.faults.splice(0)
  assert.equal(faults.length, count, faults.join(''))
  assert.ok(faults.every((line) => line.includes('a stored object is damaged')))
}

function isOpen(path: string): boolean {
  return readdirSync('/proc/self/fd').some((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`) === path
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
      throw error
    }
  })
}
