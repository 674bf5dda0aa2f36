// What every store of objects promises, on each of them: a folder, a small S3, and OpenStack Swift.
import assert from 'node:assert'
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openFilesystemObjects } from '../../src/objects/filesystem.ts'
import { newObjectKey, ObjectNotFound, type Objects, type StoredObject } from '../../src/objects/objects.ts'
import { openS3Objects } from '../../src/objects/s3/s3-objects.ts'
import { clientOf, type S3TestService, startSmallS3 } from '../s3/service.ts'
import { startSwift, swiftObstacle } from '../s3/swift.ts'

/** Longer than what an S3 store sends in one request. */
const LONG_BYTES = 33 * 1024 * 1024

async function* inChunks(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

function described(bytes: Buffer): StoredObject {
  return { content_length: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
}

async function contentOf(objects: Objects, key: string, range?: { start: number; end: number }): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of await objects.read(key, range)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

type Store = { objects: Objects; incoming_folder: string }

async function newFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-objects-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

async function s3Store(t: TestContext, service: S3TestService): Promise<Store> {
  const incoming_folder = join(await newFolder(t), 'incoming')
  const client = clientOf(t, service, 'a/b')
  return { objects: openS3Objects(client, { incoming_folder, upload_endpoint: service.endpoint }), incoming_folder }
}

const STORES: Record<string, (t: TestContext) => Promise<Store | null>> = {
  folder: async (t) => {
    const folder = await newFolder(t)
    return { objects: openFilesystemObjects(folder), incoming_folder: join(folder, 'incoming') }
  },
  'a small S3': async (t) => s3Store(t, await startSmallS3(t)),
  'OpenStack Swift': async (t) => {
    const obstacle = swiftObstacle()
    if (obstacle === null) return s3Store(t, await startSwift(t))
    t.skip(obstacle)
    return null
  },
}

/** Every file below: what a put has left on this machine. */
async function filesOf(folder: string): Promise<string[]> {
  const items = await readdir(folder, { recursive: true, withFileTypes: true })
  return items.filter((item) => item.isFile()).map((item) => item.name)
}

for (const [name, open] of Object.entries(STORES)) {
  test(`objects in ${name}`, async (t) => {
    const store = await open(t)
    if (store === null) return
    const { objects, incoming_folder } = store

    await t.test('a stored object is read whole, by range and in parts, and its hash is known', async () => {
      for (const length of [0, 1, 65_536, 300_001]) {
        const key = newObjectKey()
        const bytes = randomBytes(length)
        assert.strictEqual(await objects.stat(key), null)
        assert.deepStrictEqual(await objects.put(key, inChunks(bytes, 10_000), length), described(bytes))
        assert.deepStrictEqual(await objects.stat(key), described(bytes))
        assert.ok(bytes.equals(await contentOf(objects, key)))
        const opened = await objects.open(key)
        assert.equal(opened.content_length, length)
        if (length > 100) {
          assert.ok(bytes.subarray(7, 100).equals(await contentOf(objects, key, { start: 7, end: 99 })))
          assert.ok(bytes.subarray(50, 100).equals(await opened.read(50, 50)))
          assert.ok(bytes.subarray(length - 5).equals(await opened.read(length - 5, 100)))
        }
        await opened.close()
      }
      assert.deepStrictEqual(await filesOf(incoming_folder), [])
    })

    await t.test('a body of another length is refused, and the object is as before', async () => {
      const key = newObjectKey()
      const before = randomBytes(1000)
      await objects.put(key, inChunks(before, 100), 1000)
      for (const [length, content_length, reason] of [
        [1000, 999, 'too_long'],
        [1000, 1001, 'too_short'],
        [400_000, 400_001, 'too_short'],
      ] as const) {
        const put = objects.put(key, inChunks(randomBytes(length), 100), content_length)
        await assert.rejects(put, { code: 'UPLOAD_INVALID', metadata: { reason, content_length } })
      }
      async function* broken(): AsyncGenerator<Buffer> {
        yield randomBytes(50)
        throw new Error('The connection broke.')
      }
      await assert.rejects(objects.put(key, broken(), 100), /The connection broke/)
      const refuse = () => Promise.reject(new Error('The upload is complete.'))
      await assert.rejects(objects.put(key, inChunks(randomBytes(9), 9), 9, { within: refuse }), /upload is complete/)
      assert.deepStrictEqual(await objects.stat(key), described(before))
      assert.deepStrictEqual(await filesOf(incoming_folder), [])
    })

    await t.test('a copy is an object of its own', async () => {
      const [from, to, gone] = [newObjectKey(), newObjectKey(), newObjectKey()]
      const [bytes, others] = [randomBytes(30_000), randomBytes(10)]
      await objects.put(from, inChunks(bytes, 9_999), bytes.length)
      assert.deepStrictEqual(await objects.copy(from, to), described(bytes))
      await objects.put(from, inChunks(others, 10), others.length)
      assert.deepStrictEqual(await objects.stat(to), described(bytes))
      await objects.delete(from)
      assert.ok(bytes.equals(await contentOf(objects, to)))
      await assert.rejects(objects.copy(gone, from), ObjectNotFound)
    })

    await t.test('an object that is set aside or deleted is gone', async () => {
      const key = newObjectKey()
      await objects.put(key, inChunks(randomBytes(10), 10), 10)
      await objects.setAside(key)
      await objects.setAside(key)
      assert.strictEqual(await objects.stat(key), null)
      await assert.rejects(objects.read(key), ObjectNotFound)
      await assert.rejects(objects.open(key), ObjectNotFound)
      await objects.put(key, inChunks(randomBytes(10), 10), 10)
      await objects.delete(key)
      await objects.delete(key)
      assert.strictEqual(await objects.stat(key), null)
    })

    await t.test('a long object is stored whole', async () => {
      const [key, to] = [newObjectKey(), newObjectKey()]
      const bytes = randomBytes(LONG_BYTES)
      assert.deepStrictEqual(await objects.put(key, inChunks(bytes, 1024 * 1024), bytes.length), described(bytes))
      assert.deepStrictEqual(await objects.stat(key), described(bytes))
      assert.deepStrictEqual(described(await contentOf(objects, key)), described(bytes))
      const opened = await objects.open(key)
      assert.ok(bytes.subarray(20_000_000, 20_100_000).equals(await opened.read(20_000_000, 100_000)))
      await opened.close()
      assert.deepStrictEqual(await objects.copy(key, to), described(bytes))
      await objects.delete(key)
      assert.deepStrictEqual(described(await contentOf(objects, to)), described(bytes))
      await objects.delete(to)
    })

    await t.test('a text that is no key is refused', async () => {
      for (const text of ['', '../x', 'a'.repeat(31), 'A'.repeat(32)]) {
        await assert.rejects(async () => objects.put(text, inChunks(randomBytes(1), 1), 1), /is not an object key/)
        await assert.rejects(async () => objects.read(text), /is not an object key/)
        await assert.rejects(async () => objects.delete(text), /is not an object key/)
      }
    })
  })
}
