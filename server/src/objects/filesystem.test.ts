import assert from 'node:assert'
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { appendFile, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openFilesystemObjects } from './filesystem.ts'
import { isObjectKey, newObjectKey, ObjectNotFound, type Objects, type StoredObject } from './objects.ts'

async function openStore(t: TestContext): Promise<{ folder: string; objects: Objects }> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-objects-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return { folder, objects: openFilesystemObjects(folder) }
}

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

/** Every file in the store. */
async function filesOf(folder: string): Promise<string[]> {
  const items = await readdir(folder, { recursive: true, withFileTypes: true })
  return items.filter((item) => item.isFile()).map((item) => item.name)
}

test('a stored object is read whole and by range, and its hash is known', async (t) => {
  const { objects } = await openStore(t)
  for (const length of [0, 1, 65_536, 300_001]) {
    const key = newObjectKey()
    const bytes = randomBytes(length)
    assert.strictEqual(await objects.stat(key), null)
    assert.deepStrictEqual(await objects.put(key, inChunks(bytes, 10_000), length), described(bytes))
    assert.deepStrictEqual(await objects.stat(key), described(bytes))
    assert.ok(bytes.equals(await contentOf(objects, key)))
    assert.ok(bytes.equals(await readFile(String(objects.localPath(key)))))
    if (length > 100) assert.ok(bytes.subarray(7, 100).equals(await contentOf(objects, key, { start: 7, end: 99 })))
  }
})

test('a body of another length is refused and leaves no file', async (t) => {
  const { folder, objects } = await openStore(t)
  const bytes = randomBytes(1000)
  for (const [content_length, reason] of [
    [999, 'too_long'],
    [0, 'too_long'],
    [1001, 'too_short'],
  ] as const) {
    const key = newObjectKey()
    const put = objects.put(key, inChunks(bytes, 100), content_length)
    await assert.rejects(put, { code: 'UPLOAD_INVALID', metadata: { reason, content_length } })
    assert.strictEqual(await objects.stat(key), null)
  }
  assert.deepStrictEqual(await filesOf(folder), [])
})

test('an endless body is read only until it is too long', async (t) => {
  const { folder, objects } = await openStore(t)
  let sent = 0
  async function* endless(): AsyncGenerator<Buffer> {
    for (;;) {
      sent += 1000
      yield Buffer.alloc(1000)
    }
  }
  await assert.rejects(objects.put(newObjectKey(), endless(), 5000), { code: 'UPLOAD_INVALID' })
  assert.strictEqual(sent, 6000)
  assert.deepStrictEqual(await filesOf(folder), [])
})

test('a body that breaks off leaves the object before it unchanged', async (t) => {
  const { folder, objects } = await openStore(t)
  const key = newObjectKey()
  const before = randomBytes(100)
  await objects.put(key, inChunks(before, 100), 100)
  async function* broken(): AsyncGenerator<Buffer> {
    yield randomBytes(50)
    throw new Error('The connection broke.')
  }
  await assert.rejects(objects.put(key, broken(), 100), /The connection broke/)
  assert.ok(before.equals(await contentOf(objects, key)))
  assert.deepStrictEqual((await filesOf(folder)).sort(), [key, `${key}.json`])
})

test('one of many puts of one key at once wins, whole, with its own hash', async (t) => {
  const { folder, objects } = await openStore(t)
  const key = newObjectKey()
  const bodies = Array.from({ length: 20 }, () => randomBytes(50_000))
  await Promise.all(bodies.map((body, index) => objects.put(key, inChunks(body, 1000 + index), body.length)))
  const won = await contentOf(objects, key)
  assert.ok(bodies.some((body) => body.equals(won)))
  assert.deepStrictEqual(await objects.stat(key), described(won))
  assert.deepStrictEqual((await filesOf(folder)).sort(), [key, `${key}.json`])
})

test('a later put replaces the object, and a reader of the earlier one reads that to its end', async (t) => {
  const { objects } = await openStore(t)
  const key = newObjectKey()
  const [first, second] = [randomBytes(400_000), randomBytes(300_000)]
  await objects.put(key, inChunks(first, 65_536), first.length)
  const reading = await objects.read(key)
  await objects.put(key, inChunks(second, 65_536), second.length)
  const chunks: Buffer[] = []
  for await (const chunk of reading) chunks.push(chunk)
  assert.ok(first.equals(Buffer.concat(chunks)))
  assert.ok(second.equals(await contentOf(objects, key)))
})

test('`within` decides whether a put is published', async (t) => {
  const { folder, objects } = await openStore(t)
  const key = newObjectKey()
  const bytes = randomBytes(10)
  const refuse = async (): Promise<void> => {
    throw new Error('The upload is complete.')
  }
  await assert.rejects(objects.put(key, inChunks(bytes, 10), 10, { within: refuse }), /The upload is complete/)
  await assert.rejects(objects.put(key, inChunks(bytes, 10), 10, { within: async () => {} }), /neither published/)
  assert.strictEqual(await objects.stat(key), null)
  assert.deepStrictEqual(await filesOf(folder), [])

  let seen: StoredObject | undefined
  await objects.put(key, inChunks(bytes, 10), 10, {
    within: async (publish) => {
      assert.strictEqual(await objects.stat(key), null)
      seen = await publish()
      assert.deepStrictEqual(await objects.stat(key), seen)
    },
  })
  assert.deepStrictEqual(seen, described(bytes))
})

test('a hash that is lost, damaged or of other bytes is computed again', async (t) => {
  const { objects } = await openStore(t)
  const key = newObjectKey()
  await objects.put(key, inChunks(randomBytes(1000), 100), 1000)
  const path = String(objects.localPath(key))
  const spoil: (() => Promise<unknown>)[] = [
    () => rm(`${path}.json`),
    () => truncate(`${path}.json`),
    () => writeFile(`${path}.json`, 'null'),
    () => writeFile(`${path}.json`, '{"sha256":1}'),
    () => appendFile(path, 'more'),
    // As after a crash between the two renames: new bytes with an old hash.
    async () => {
      const old = await readFile(`${path}.json`)
      await objects.put(key, inChunks(randomBytes(1000), 100), 1000)
      await writeFile(`${path}.json`, old)
    },
  ]
  for (const damage of spoil) {
    await damage()
    assert.deepStrictEqual(await objects.stat(key), described(await readFile(path)))
    assert.deepStrictEqual(await objects.stat(key), described(await readFile(path)))
  }
})

test('a deleted object is gone, and deleting it again succeeds', async (t) => {
  const { folder, objects } = await openStore(t)
  const key = newObjectKey()
  await objects.put(key, inChunks(randomBytes(10), 10), 10)
  await objects.delete(key)
  await objects.delete(key)
  assert.strictEqual(await objects.stat(key), null)
  await assert.rejects(objects.read(key), ObjectNotFound)
  assert.deepStrictEqual(await filesOf(folder), [])
})

test('only the platform’s user can read the store', async (t) => {
  const { folder, objects } = await openStore(t)
  const key = newObjectKey()
  await objects.put(key, inChunks(randomBytes(10), 10), 10)
  const path = String(objects.localPath(key))
  for (const [item, mode] of [
    [path, 0o600],
    [`${path}.json`, 0o600],
    [join(folder, key.slice(0, 2)), 0o700],
    [join(folder, 'incoming'), 0o700],
  ] as const) {
    assert.strictEqual((await stat(item)).mode & 0o777, mode, item)
  }
})

test('only a key becomes part of a path', async (t) => {
  const { folder, objects } = await openStore(t)
  const key = newObjectKey()
  assert.ok(isObjectKey(key))
  for (const text of [
    '',
    '..',
    `../${key}`,
    `${key}/x`,
    key.toUpperCase().replace(/\d/g, 'A'),
    `${key}\n`,
    `${key}0`,
  ]) {
    assert.ok(!isObjectKey(text))
    await assert.rejects(objects.put(text, inChunks(randomBytes(1), 1), 1), /is not an object key/)
    await assert.rejects(objects.stat(text), /is not an object key/)
    await assert.rejects(objects.read(text), /is not an object key/)
    await assert.rejects(objects.delete(text), /is not an object key/)
    assert.throws(() => objects.localPath(text), /is not an object key/)
  }
  assert.deepStrictEqual(await filesOf(folder), [])
})

/** Runs `code` in another process, where `objects` is the store of the folder. */
function runInProcess(folder: string, code: string): ChildProcess {
  const source = `
    import { openFilesystemObjects } from ${JSON.stringify(import.meta.resolve('./filesystem.ts'))}
    const objects = openFilesystemObjects(${JSON.stringify(folder)})
    ${code}`
  return spawn(process.execPath, ['--input-type=module', '--eval', source], { stdio: ['ignore', 'pipe', 'inherit'] })
}

async function outputOf(child: ChildProcess): Promise<string> {
  let output = ''
  child.stdout?.on('data', (chunk) => {
    output += chunk
  })
  await once(child, 'close')
  return output
}

/**
 * Code for a child process: its peak memory so far, in KiB. On Linux resourceUsage().maxRSS begins with the value of the
 * parent process, so it is not used.
 */
const PEAK_KIB = `
  import { readFileSync } from 'node:fs'
  function peak_kib() {
    if (process.platform !== 'linux') return process.resourceUsage().maxRSS
    return Number(/VmHWM:\\s+(\\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))[1])
  }`

test('memory does not grow with the body: 200 MB are stored with less than 16 MB more', async (t) => {
  const { folder, objects } = await openStore(t)
  const key = newObjectKey()
  const code = `${PEAK_KIB}
    const chunk = Buffer.alloc(65536, 7)
    async function* body(length) {
      for (let at = 0; at < length; at += 65536) yield chunk.subarray(0, length - at)
    }
    await objects.put('0'.repeat(32), body(1_000_000), 1_000_000)
    const before_kib = peak_kib()
    await objects.put('${key}', body(200_000_000), 200_000_000)
    console.log(peak_kib() - before_kib)`
  const growth_kib = Number(await outputOf(runInProcess(folder, code)))
  assert.strictEqual((await objects.stat(key))?.content_length, 200_000_000)
  t.diagnostic(`${Math.round(growth_kib / 1024)} MiB more`)
  assert.ok(growth_kib < 16 * 1024, `grew by ${growth_kib} KiB`)
})

test('after a kill during a put no partial object is visible, a retry works, and no space is lost', async (t) => {
  const KILLS = 20
  const AT_ONCE = 4
  for (let first = 0; first < KILLS; first += AT_ONCE) {
    const positions = Array.from({ length: AT_ONCE }, (_, index) => (first + index) / KILLS)
    await Promise.all(positions.map((position) => killInTheMiddle(t, Math.floor(position * 1000))))
  }
})

async function killInTheMiddle(t: TestContext, chunks_before: number): Promise<void> {
  const { folder, objects } = await openStore(t)
  const key = newObjectKey()
  const child = runInProcess(
    folder,
    `async function* body() {
       for (let at = 0; at < 1000; at++) {
         if (at === ${chunks_before}) process.kill(process.pid, 'SIGKILL')
         yield Buffer.alloc(1000, 7)
       }
     }
     await objects.put('${key}', body(), 1_000_000)`,
  )
  const [, signal] = await once(child, 'close')
  assert.strictEqual(signal, 'SIGKILL')
  assert.strictEqual(await objects.stat(key), null)
  assert.strictEqual((await filesOf(folder)).length, 1, 'The killed process has left its half.')

  // Opening the store removes partial files of dead processes, and not those of living ones.
  const held = newObjectKey()
  const bytes = randomBytes(2000)
  async function* reopeningInBetween(): AsyncGenerator<Buffer> {
    yield bytes.subarray(0, 1000)
    openFilesystemObjects(folder)
    assert.strictEqual((await filesOf(folder)).length, 1)
    yield bytes.subarray(1000)
  }
  await objects.put(held, reopeningInBetween(), bytes.length)
  assert.ok(bytes.equals(await contentOf(objects, held)))
  await objects.put(key, inChunks(bytes, 100), bytes.length)
  assert.ok(bytes.equals(await contentOf(objects, key)))
  await objects.delete(held)
  await objects.delete(key)
  assert.deepStrictEqual(await filesOf(folder), [])
}

test('a copy takes no space, and neither object depends on the other', async (t) => {
  const { folder, objects } = await openStore(t)
  const [from, to, gone] = [newObjectKey(), newObjectKey(), newObjectKey()]
  const [bytes, others] = [randomBytes(70_000), randomBytes(10)]
  await objects.put(from, inChunks(bytes, 9_999), bytes.length)
  assert.deepStrictEqual(await objects.copy(from, to), described(bytes))
  assert.strictEqual((await stat(objects.localPath(to)!)).ino, (await stat(objects.localPath(from)!)).ino)
  await objects.put(from, inChunks(others, 10), others.length)
  assert.deepStrictEqual(await contentOf(objects, to), bytes)
  assert.deepStrictEqual(await objects.stat(to), described(bytes))
  await objects.copy(to, from)
  await objects.delete(to)
  assert.deepStrictEqual(await contentOf(objects, from), bytes)
  await objects.setAside(from)
  await assert.rejects(objects.copy(from, gone), ObjectNotFound)
  await assert.rejects(objects.copy(gone, to), ObjectNotFound)
  assert.ok((await filesOf(folder)).every((name) => !name.startsWith(gone) && !name.startsWith(to)))
})
