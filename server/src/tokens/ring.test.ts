import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { openKeys } from './keys.ts'
import { followRing, openRing, placeRing, rotateRing } from './ring.ts'

const POSIX = process.platform !== 'win32'

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-ring-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return join(folder, 'deep', 'keys')
}

test('the first start makes the ring, readable by its owner only, and later starts read the same', async (t) => {
  const folder = await temporaryFolder(t)
  const first = await openRing(folder)
  assert.deepEqual(await openRing(folder), first)
  assert.deepEqual(await readdir(folder), ['ring.json'])
  if (POSIX) {
    assert.equal((await stat(folder)).mode & 0o777, 0o700)
    assert.equal((await stat(join(folder, 'ring.json'))).mode & 0o777, 0o600)
  }
  const before = await openKeys(folder)
  const after = await openKeys(folder)
  const token = before.issue({ kind: 'access', name: 'admin' }, { now_ms: 0, lifetime_ms: null })
  assert.equal(after.verify(token, 0).kind, 'access')
  assert.deepEqual(after.mac('upload', 'x'), before.mac('upload', 'x'))
})

test('processes that start at once have the same keys', async (t) => {
  const folder = await temporaryFolder(t)
  // Each reports that it is loaded, and continues on a message.
  const source = `
    const { openRing } = await import(process.argv[1])
    process.stdout.write('loaded;')
    await new Promise((resolve) => process.stdin.once('data', resolve))
    process.stdout.write(JSON.stringify(await openRing(process.argv[2])))
    process.stdin.destroy()
  `
  const module = import.meta.resolve('./ring.ts')
  const children = Array.from({ length: 6 }, () =>
    spawn(process.execPath, ['--input-type=module', '-e', source, module, folder], {
      stdio: ['pipe', 'pipe', 'inherit'],
    }),
  )
  t.after(() =>
    children.forEach((child) => {
      child.kill('SIGKILL')
    }),
  )
  await Promise.all(children.map((child) => once(child.stdout, 'readable')))
  const outputs = children.map((child) => text(child.stdout))
  for (const child of children) child.stdin.write('go')
  const rings = await Promise.all(outputs)
  assert.equal(new Set(rings).size, 1)
  assert.deepEqual(JSON.parse(rings[0]!.replace('loaded;', '')), await openRing(folder))
  assert.deepEqual(await readdir(folder), ['ring.json'])
})

test('a process that saw no ring but comes second uses the ring of the first', async (t) => {
  const folder = await temporaryFolder(t)
  const first = await openRing(folder)
  assert.deepEqual(await placeRing(folder), first)
  assert.deepEqual(await openRing(folder), first)
  assert.deepEqual(await readdir(folder), ['ring.json'])
})

test('calls that start at once have the same keys', async (t) => {
  const folder = await temporaryFolder(t)
  const rings = await Promise.all(Array.from({ length: 32 }, () => openRing(folder)))
  for (const ring of rings) assert.deepEqual(ring, rings[0])
})

test('a damaged ring stops the start and is not changed', async (t) => {
  const folder = await temporaryFolder(t)
  await openRing(folder)
  const path = join(folder, 'ring.json')
  const good = JSON.parse(await readFile(path, 'utf8')) as { keys: object[] }
  const damaged = [
    '',
    'null',
    '{}',
    '{"keys":[]}',
    '{"keys":[null]}',
    JSON.stringify({ keys: good.keys.slice(1) }),
    JSON.stringify({ keys: [...good.keys, good.keys[0]] }),
    JSON.stringify({ keys: good.keys.map((key) => ({ ...key, secret: 'c2hvcnQ' })) }),
    JSON.stringify(good).slice(0, -1),
    ' '.repeat(100_000),
  ]
  for (const content of damaged) {
    await writeFile(path, content)
    await assert.rejects(openRing(folder), /key ring/, content.slice(0, 100))
    assert.equal(await readFile(path, 'utf8'), content)
  }
})

test('a ring that other users may read stops the start', {
  skip: POSIX ? false : 'modes are a matter of POSIX',
}, async (t) => {
  const folder = await temporaryFolder(t)
  await openRing(folder)
  for (const mode of [0o640, 0o604]) {
    await chmod(join(folder, 'ring.json'), mode)
    await assert.rejects(openRing(folder), /chmod 600/)
  }
})

test('a ring that is followed is read again after each change of its file, and not before', {
  skip: POSIX ? false : 'modes are a matter of POSIX',
}, async (t) => {
  const folder = await temporaryFolder(t)
  const { ring, read } = await followRing(folder)
  await read()
  assert.equal(await read(), await read())
  await rotateRing(folder, { now_ms: 0, grace_ms: 1_000 })
  assert.ok((await read()).keys.length > ring.keys.length)
  await chmod(join(folder, 'ring.json'), 0o640)
  for (let count = 0; count < 2; count++) await assert.rejects(read(), /chmod 600/)
  await chmod(join(folder, 'ring.json'), 0o600)
  assert.deepEqual(await read(), await openRing(folder))
})
