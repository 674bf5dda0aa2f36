import assert from 'node:assert'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { crc32, deflateRawSync, gzipSync } from 'node:zlib'
import { ApiError } from '@musterhost/contract'
import fc from 'fast-check'
import { pack } from 'tar-stream'
import {
  ARCHIVE_LIMITS,
  type ArchiveLimits,
  checkArchive,
  removePartialFolders,
  unpackArchive,
} from '../../src/objects/archive/archive.ts'
import { createMeter } from '../../src/objects/archive/meter.ts'
import { readZip } from '../../src/objects/archive/zip.ts'
import { paxItem, tarItem, tarOf, zipOf } from './forgery.ts'
import { hostileArchives } from './hostile.ts'

const HELLO = Buffer.from('hello')

/** A folder to unpack into, with files beside and above it that must not change. */
async function openYard(t: TestContext) {
  const yard = await mkdtemp(join(tmpdir(), 'muster-archive-'))
  t.after(() => rm(yard, { recursive: true, force: true }))
  const builds = join(yard, 'builds')
  const canary = join(yard, 'canary')
  await mkdir(join(builds, 'neighbour'), { recursive: true })
  await mkdir(canary)
  for (const file of [join(canary, 'file'), join(builds, 'neighbour', 'file')]) await writeFile(file, 'untouched')
  const source = join(yard, 'archive')
  await writeFile(source, '')
  return { yard, builds, canary, source, target: join(builds, 'target') }
}

/** Every file and folder but the archive, with all facts that a write would change. */
async function inodesOf(folder: string, source: string): Promise<string[]> {
  const items = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = items.map((item) => join(item.parentPath, item.name)).filter((path) => path !== source)
  const lines = paths.sort().map(async (path) => {
    const { ino, mode, size, nlink, uid } = await stat(path)
    return [path, ino, mode, size, nlink, uid, size < 100 && !path.endsWith('/') ? await textOf(path) : ''].join(' ')
  })
  return await Promise.all(lines)
}

async function textOf(path: string): Promise<string> {
  return (await stat(path)).isFile() ? await readFile(path, 'utf8') : ''
}

async function reasonOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'ARCHIVE_INVALID') throw error
    const { entry, reason } = error.metadata
    assert.ok(entry === null || typeof entry === 'string')
    return String(reason)
  }
  return 'accepted'
}

/** The unpacked files by path, with mode and bytes; a folder has no bytes. */
async function treeOf(folder: string): Promise<Record<string, [string, string | null]>> {
  const items = await readdir(folder, { recursive: true, withFileTypes: true })
  const tree: Record<string, [string, string | null]> = {}
  for (const item of items) {
    const path = join(item.parentPath, item.name)
    const mode = ((await stat(path)).mode & 0o7777).toString(8)
    tree[path.slice(folder.length + 1)] = [mode, item.isDirectory() ? null : await readFile(path, 'latin1')]
  }
  return tree
}

async function packed(headers: Parameters<ReturnType<typeof pack>['entry']>[0][]): Promise<Buffer> {
  const writer = pack()
  for (const header of headers) writer.entry(header, header.type === 'directory' ? '' : HELLO)
  writer.finalize()
  const chunks: Buffer[] = []
  for await (const chunk of writer as unknown as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks)
}

test('tar, tar.gz and zip unpack to the same folder, readable by all and writable by the platform only', async (t) => {
  const { source, builds } = await openYard(t)
  const long = `${'deep/'.repeat(30)}größe.txt`
  const expected = {
    'server.sh': ['755', 'hello'],
    data: ['755', null],
    'data/free.txt': ['644', 'hello'],
    'data/owned': ['755', 'hello'],
    empty: ['755', null],
    ...Object.fromEntries(
      Array.from({ length: 30 }, (_, depth) => [
        Array(depth + 1)
          .fill('deep')
          .join('/'),
        ['755', null],
      ]),
    ),
    [long]: ['644', 'hello'],
  }
  const tar = await packed([
    { name: './', type: 'directory', mode: 0o777 },
    { name: './server.sh', mode: 0o6755 },
    { name: './data/free.txt', mode: 0o666 },
    { name: 'data', type: 'directory', mode: 0o1777 },
    { name: 'data/owned', mode: 0o100, uid: 0, gid: 0 },
    { name: 'empty/', type: 'directory', mode: 0o700 },
    { name: long, mode: 0o600 },
  ])
  const zip = zipOf([
    { name: 'server.sh', body: HELLO, mode: 0o106755 },
    { name: 'data/free.txt', body: HELLO, mode: 0o100666, method: 0 },
    { name: 'data/', mode: 0o41777 },
    { name: 'data/owned', body: HELLO, mode: 0o100100 },
    { name: 'empty/', mode: 0o40700 },
    { name: long, body: HELLO, mode: 0o100600 },
  ])
  const previous = process.umask(0o077)
  t.after(() => process.umask(previous))
  for (const [name, bytes] of Object.entries({ tar, tar_gz: gzipSync(tar), zip })) {
    await writeFile(source, bytes)
    const target = join(builds, name)
    assert.deepStrictEqual(await unpackArchive({ path: source }, target), { entries: 36, bytes: 20 })
    assert.deepStrictEqual(await checkArchive(source), { entries: 36, bytes: 20 })
    assert.deepStrictEqual(await treeOf(target), expected)
    assert.strictEqual((await stat(target)).mode & 0o7777, 0o755)
  }
  assert.deepStrictEqual((await readdir(builds)).sort(), ['neighbour', 'tar', 'tar_gz', 'zip'])
})

test('programs and scripts of a zip from Windows, which has no executable bits, become executable', async (t) => {
  const { source, target } = await openYard(t)
  const bodies = {
    'game.x86_64': '\x7fELF\x02',
    'run.sh': '#!/bin/sh\n',
    'read.me': 'hello',
    tiny: '#',
    'script.txt': ' #!',
  }
  const items = Object.entries(bodies).map(([name, text]) => ({
    name,
    body: Buffer.from(text, 'latin1'),
    made_by: 0,
    mode: 0,
  }))
  await writeFile(source, zipOf(items))
  await unpackArchive({ path: source }, target)
  const modes = Object.entries(await treeOf(target)).map(([name, [mode]]) => [name, mode])
  assert.deepStrictEqual(modes.sort(), [
    ['game.x86_64', '755'],
    ['read.me', '644'],
    ['run.sh', '755'],
    ['script.txt', '644'],
    ['tiny', '644'],
  ])
})

test('an ELF file is executable whatever the archive says, because some systems have no such bit', async (t) => {
  const { source, builds } = await openYard(t)
  const items = [
    { name: 'game.x86_64', body: Buffer.from('\x7fELF\x02', 'latin1'), mode: 0o644 },
    { name: 'run.sh', body: Buffer.from('#!/bin/sh\n'), mode: 0o644 },
  ]
  const modes = { 'game.x86_64': '755', 'run.sh': '644' }
  const forms = { tar: tarOf(...items), zip: zipOf(items.map((item) => ({ ...item, mode: item.mode | 0o100000 }))) }
  for (const [name, bytes] of Object.entries(forms)) {
    await writeFile(source, bytes)
    await unpackArchive({ path: source }, join(builds, name))
    const tree = Object.entries(await treeOf(join(builds, name)))
    assert.deepStrictEqual(Object.fromEntries(tree.map(([path, [mode]]) => [path, mode])), modes, name)
  }
})

test('a zip of Windows that separates folders by backslashes is unpacked with its folders', async (t) => {
  const { source, target } = await openYard(t)
  const windows = { made_by: 0, mode: 0 }
  await writeFile(
    source,
    zipOf([
      { name: 'data\\maps\\one.txt', body: HELLO, ...windows },
      { name: 'empty\\', ...windows },
      { name: 'server', body: HELLO, ...windows },
    ]),
  )
  await unpackArchive({ path: source }, target)
  assert.deepStrictEqual(Object.keys(await treeOf(target)).sort(), [
    'data',
    'data/maps',
    'data/maps/one.txt',
    'empty',
    'server',
  ])
  // The new form of a path is checked, and no other system writes such names.
  for (const [name, more, reason] of [
    ['..\\..\\evil', windows, 'dots'],
    ['\\evil', windows, 'absolute'],
    ['C:\\evil', windows, 'colon'],
    ['a\\..\\evil', windows, 'dots'],
    ['a/b\\c', windows, 'backslash'],
    ['a\\b', {}, 'backslash'],
  ] as const) {
    await writeFile(source, zipOf([{ name, body: HELLO, ...more }]))
    await assert.rejects(checkArchive(source), (error: { metadata?: { reason?: string } }) => {
      assert.equal(error.metadata?.reason, reason, name)
      return true
    })
  }
})

test('forms of real packers are accepted: several gzip members, global headers, a repeated length', async (t) => {
  const { source, builds } = await openYard(t)
  const item = { name: 'a.txt', body: HELLO }
  const tar = tarOf(item)
  const forms: Record<string, Buffer> = {
    members: Buffer.concat([gzipSync(tar.subarray(0, 100)), gzipSync(tar.subarray(100))]),
    padded: Buffer.concat([tar, Buffer.alloc(8192)]),
    git: tarOf(paxItem({ comment: 'f691734' }, 'g'), item),
    told_twice: tarOf(paxItem({ size: '5', mtime: '1.5', 'SCHILY.xattr.user.x': '\0' }), item),
    old_gnu: tarOf({ ...item, magic: 'ustar  \0' }),
  }
  for (const [name, bytes] of Object.entries(forms)) {
    await writeFile(source, bytes)
    await unpackArchive({ path: source }, join(builds, name))
    assert.deepStrictEqual(await treeOf(join(builds, name)), { 'a.txt': ['644', 'hello'] }, name)
  }
})

test('each of some hundred hostile archives is refused with its reason, and no file changes', async (t) => {
  const { yard, canary, source, target } = await openYard(t)
  const archives = hostileArchives(canary)
  assert.ok(archives.length >= 400, `There are only ${archives.length}.`)
  assert.strictEqual(new Set(archives.map(({ label }) => label)).size, archives.length)
  const before = await inodesOf(yard, source)
  for (const { label, archive, reason } of archives) {
    await writeFile(source, archive)
    const checked = await reasonOf(checkArchive(source))
    const unpacked = await reasonOf(unpackArchive({ path: source }, target))
    if (typeof reason === 'string') assert.strictEqual(unpacked, reason, label)
    else assert.match(unpacked, reason, label)
    assert.strictEqual(checked, unpacked, `${label}: the check says something else.`)
    assert.deepStrictEqual(await inodesOf(yard, source), before, `${label} has left or changed something.`)
  }
})

test('a refusal names the entry, or the one near the damage, and the remedy', async (t) => {
  const { source } = await openYard(t)
  const items = ['a.txt', 'b.txt'].map((name) => ({ name, body: Buffer.alloc(2_000, name) }))
  const tar = tarOf(...items)
  const head = (magic: string) => Buffer.concat([Buffer.from(magic, 'latin1'), Buffer.alloc(600)])
  const long = paxItem({ 'SCHILY.xattr.user.icon': 'x'.repeat(300_000) })
  const cases: [Buffer, string | null, RegExp][] = [
    [tar.subarray(0, 3_500), 'b.txt', /^At "b\.txt": It ends too early\. Pack it again/],
    [Buffer.concat([tar, tar]), 'b.txt', /^At "b\.txt": Data follows/],
    [zipOf([{ name: 'zeros', body: Buffer.alloc(8_000_000) }]), 'zeros', /^At "zeros": .* without compression\.$/],
    [tarOf(items[0]!, { name: 'l', type: '2', link: 'a.txt' }), 'l', /^"l": It is a link.* `tar --dereference/],
    [tarOf(long, items[0]!), null, /^Its extended header is longer.*`tar --no-xattrs --no-acls`/],
    [head('\xfd7zXZ\0'), null, /^It is packed by xz\. Pack it as tar\.gz or zip\.$/],
    [head('\x28\xb5\x2f\xfd'), null, /^It is packed by zstd\./],
    [head('Rar!\x1a\x07'), null, /^It is packed by rar\./],
  ]
  for (const [archive, entry, message] of cases) {
    await writeFile(source, archive)
    await assert.rejects(
      checkArchive(source, { ratio_free_bytes: 1_000_000 }),
      (error: Error & { metadata: { entry: string | null } }) => {
        assert.match(error.message, message)
        assert.strictEqual(error.metadata.entry, entry, error.message)
        return true
      },
    )
  }
})

test('each small file of a zip takes one read of the disk', async (t) => {
  const COUNT = 1_000
  const { source } = await openYard(t)
  await writeFile(source, zipOf(Array.from({ length: COUNT }, (_, at) => ({ name: `folder/file${at}`, body: HELLO }))))
  const handle = await open(source)
  t.after(() => handle.close())
  const read = t.mock.method(handle, 'read')
  const file = { handle, content_length: (await handle.stat()).size }
  let entries = 0
  for await (const { body } of readZip(file, createMeter(ARCHIVE_LIMITS), ARCHIVE_LIMITS)) {
    for await (const chunk of body) assert.deepStrictEqual(chunk, HELLO)
    entries++
  }
  assert.strictEqual(entries, COUNT)
  assert.ok(read.mock.callCount() < COUNT * 1.1, `There were ${read.mock.callCount()} reads.`)
})

test('an archive with any changed bytes is refused or unpacks inside its folder, and never crashes the process', async (t) => {
  const { yard, builds, source, target } = await openYard(t)
  const items = Array.from({ length: 5 }, (_, index) => ({
    name: `folder/file${index}`,
    body: Buffer.from(`hello ${index}`.repeat(50)),
  }))
  const tar = tarOf(paxItem({ path: 'folder/long' }), ...items)
  const before = await inodesOf(yard, source)
  const spoilt = fc.record({
    archive: fc.constantFrom(tar, gzipSync(tar), zipOf(items)),
    changes: fc.array(fc.record({ at: fc.double({ min: 0, max: 0.999999, noNaN: true }), byte: fc.nat(255) }), {
      minLength: 1,
      maxLength: 4,
    }),
  })
  await fc.assert(
    fc.asyncProperty(spoilt, async ({ archive, changes }) => {
      const bytes = Buffer.from(archive)
      for (const { at, byte } of changes) bytes.writeUInt8(byte, Math.floor(at * bytes.length))
      await writeFile(source, bytes)
      const reason = await reasonOf(unpackArchive({ path: source }, target))
      assert.strictEqual(await reasonOf(checkArchive(source)), reason)
      if (reason === 'accepted') await rm(target, { recursive: true })
      assert.deepStrictEqual(await inodesOf(yard, source), before)
    }),
    { numRuns: 400 },
  )
  assert.deepStrictEqual(await readdir(builds), ['neighbour'])
})

test('the limits hold at exactly their number', async (t) => {
  const { source, target } = await openYard(t)
  const three = Array.from({ length: 3 }, (_, index) => ({ name: `f${index}`, body: HELLO }))
  const cases: [Buffer, Partial<ArchiveLimits>, string][] = [
    [zipOf(three), { entries_max: 3 }, 'accepted'],
    [zipOf(three), { entries_max: 2 }, 'too_many_entries'],
    [tarOf(...three), { entries_max: 2 }, 'too_many_entries'],
    [tarOf({ name: 'a/b/c', body: HELLO }), { entries_max: 3 }, 'accepted'],
    [tarOf({ name: 'a/b/c', body: HELLO }), { entries_max: 2 }, 'too_many_entries'],
    [zipOf(three), { bytes_max: 15 }, 'accepted'],
    [zipOf(three), { bytes_max: 14 }, 'too_many_bytes'],
    [tarOf(...three), { bytes_max: 4095 }, 'too_many_bytes'],
    [tarOf(...three), { bytes_max: 4096 }, 'accepted'],
    [gzipSync(tarOf(...three)), { bytes_max: 4095 }, 'too_many_bytes'],
    [gzipSync(tarOf(...three)), { ratio_free_bytes: 0, ratio_max: 2 }, 'ratio'],
    [zipOf(three), { depth_max: 1, path_bytes_max: 2 }, 'accepted'],
    [zipOf(three), { path_bytes_max: 1 }, 'path_too_long'],
  ]
  for (const [archive, limits, reason] of cases) {
    await writeFile(source, archive)
    assert.strictEqual(await reasonOf(checkArchive(source, limits)), reason, JSON.stringify(limits))
    assert.strictEqual(await reasonOf(unpackArchive({ path: source }, target, limits)), reason, JSON.stringify(limits))
    await rm(target, { recursive: true, force: true })
  }
})

test('many processes may unpack the same build at once: all succeed, and the one folder is always complete', async (t) => {
  const { builds, source, target } = await openYard(t)
  const items = Array.from({ length: 50 }, (_, index) => ({ name: `folder/file${index}`, body: randomBytes(1000) }))
  await writeFile(source, gzipSync(tarOf(...items)))
  let running = true
  const watching = (async () => {
    let looks = 0
    for (; running; looks++) {
      const names = await readdir(join(target, 'folder')).catch((error) => {
        if (error.code === 'ENOENT') return null
        throw error
      })
      if (names !== null) assert.strictEqual(names.length, 50)
    }
    return looks
  })()
  const unpacked = await Promise.all(Array.from({ length: 8 }, () => unpackArchive({ path: source }, target)))
  running = false
  assert.ok((await watching) > 10)
  assert.deepStrictEqual(unpacked, Array(8).fill({ entries: 51, bytes: 50_000 }))
  assert.deepStrictEqual((await readdir(builds)).sort(), ['neighbour', 'target'])
})

test('the partial folder of a killed process is never taken for a build, and can be removed', async (t) => {
  const { builds, source, target } = await openYard(t)
  await writeFile(source, tarOf({ name: 'a', body: HELLO }, { name: 'b', body: Buffer.alloc(50_000_000, 1) }))
  const code = `
    import { unpackArchive } from ${JSON.stringify(import.meta.resolve('../../src/objects/archive/archive.ts'))}
    import { watch } from 'node:fs'
    watch(${JSON.stringify(builds)}, { recursive: true }, (_, name) => {
      if (name.endsWith('/b')) process.kill(process.pid, 'SIGKILL')
    })
    await unpackArchive({ path: ${JSON.stringify(source)} }, ${JSON.stringify(target)})`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], { stdio: 'inherit' })
  const [, signal] = await once(child, 'close')
  assert.strictEqual(signal, 'SIGKILL')
  const left = await readdir(builds)
  assert.ok(left.some((name) => name.startsWith('.partial-target-')) && !left.includes('target'), left.join())
  await removePartialFolders(builds)
  assert.deepStrictEqual(await readdir(builds), ['neighbour'])
})

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

/** Writes decompression bombs to files, because making them needs the memory that unpacking them must not. */
async function writeBombs(folder: string): Promise<Record<string, string>> {
  const path = (name: string): string => join(folder, name)
  const zeros = gzipSync(Buffer.alloc(10_000_000))
  // 10 GB of zeros in 10 MB: zlib reads a thousand gzip members as one stream.
  const heads = { gzip: '70000000000\0', gzip_of_100_mb: `${(100_000_000).toString(8).padStart(11, '0')}\0` }
  for (const [name, size] of Object.entries(heads)) {
    await writeFile(path(name), Buffer.concat([gzipSync(tarItem({ name: 'zeros', size })), ...Array(1000).fill(zeros)]))
  }
  const body = Buffer.alloc(150_000_000)
  const item = { packed: deflateRawSync(body), length: body.length, checksum: crc32(body) }
  await writeFile(path('zip'), zipOf(['a', 'b', 'c', 'd'].map((name) => ({ name, ...item }))))
  await writeFile(
    path('entries'),
    Buffer.concat(Array.from({ length: 100_100 }, (_, at) => tarItem({ name: `d/${at}` }))),
  )
  return { gzip: path('gzip'), gzip_of_100_mb: path('gzip_of_100_mb'), zip: path('zip'), entries: path('entries') }
}

test('decompression bombs end at the limit, in little time and memory', async (t) => {
  const { yard, builds, target } = await openYard(t)
  const bombs = await writeBombs(yard)
  const attempts: [keyof typeof bombs, Partial<ArchiveLimits>, string][] = [
    ['gzip', {}, 'ratio'],
    ['gzip_of_100_mb', { ratio_max: 1e9, bytes_max: 100_000_000 }, 'too_many_bytes'],
    ['zip', {}, 'ratio'],
    ['zip', { ratio_max: 1e9, bytes_max: 160_000_000 }, 'too_many_bytes'],
    ['entries', { entries_max: 1000 }, 'too_many_entries'],
    ['entries', {}, 'too_many_entries'],
  ]
  // How long anything takes depends on the machine, so the unit is what 100 MB of zeros take there, packed and unpacked.
  const code = `${PEAK_KIB}
    import { gunzipSync, gzipSync } from 'node:zlib'
    import { checkArchive, unpackArchive } from ${JSON.stringify(import.meta.resolve('../../src/objects/archive/archive.ts'))}
    const [path, limits, writes] = JSON.parse(process.argv[1])
    const cpuMs = () => {
      const { userCPUTime, systemCPUTime } = process.resourceUsage()
      return (userCPUTime + systemCPUTime) / 1000
    }
    const before_kib = peak_kib()
    const before_ms = cpuMs()
    const work = writes ? unpackArchive({ path }, ${JSON.stringify(target)}, limits) : checkArchive(path, limits)
    const reason = await work.then(() => 'accepted', (error) => error.metadata?.reason ?? String(error))
    const growth_kib = peak_kib() - before_kib
    const after_ms = cpuMs()
    for (let round = 0; round < 10; round++) gunzipSync(gzipSync(Buffer.alloc(10_000_000)))
    const units = (after_ms - before_ms) / (cpuMs() - after_ms)
    console.log(JSON.stringify({ reason, growth_kib, units }))`
  for (const [name, limits, expected] of attempts) {
    // The last would make a hundred thousand files before it ends.
    const writes = name !== 'entries' || limits.entries_max !== undefined
    const given = JSON.stringify([bombs[name], limits, writes])
    const child = spawn(process.execPath, ['--input-type=module', '--eval', code, given], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
    })
    await once(child, 'close')
    const { reason, growth_kib, units } = JSON.parse(output)
    const label = `${name} ${JSON.stringify(limits)}`
    t.diagnostic(`${label}: ${reason}, ${Math.round(growth_kib / 1024)} MiB more, ${units.toFixed(1)} units of CPU`)
    assert.strictEqual(reason, expected, label)
    assert.ok(growth_kib < 64 * 1024, `${label} grew by ${growth_kib} KiB`)
    assert.ok(units < 6, `${label} took ${units} units`)
  }
  assert.deepStrictEqual(await readdir(builds), ['neighbour'])
})

test('a fault of the disk is thrown as such, and no file is left', async (t) => {
  const { builds, source } = await openYard(t)
  await writeFile(source, tarOf({ name: 'a', body: HELLO }))
  await assert.rejects(unpackArchive({ path: source }, join(builds, 'neighbour', 'file')), { code: 'ENOTDIR' })
  await assert.rejects(unpackArchive({ path: join(builds, 'missing') }, join(builds, 'target')), { code: 'ENOENT' })
  assert.deepStrictEqual(await readdir(builds), ['neighbour'])
  assert.deepStrictEqual(await readdir(join(builds, 'neighbour')), ['file'])
})
