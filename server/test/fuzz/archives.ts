// The fuzzing of archives: generated and damaged tar, tar.gz, zip and others go through the check that completes an upload
// and through the unpacker. The laws: a verdict with a reason and no other error, the same from both and each time,
// nothing outside the target, nothing left of a refused archive, and every cap holds.
import assert from 'node:assert/strict'
import { lstat, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { brotliCompressSync, deflateRawSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { ApiError } from '@musterhost/contract'
import fc from 'fast-check'
import { type ArchiveLimits, checkArchive, unpackArchive } from '../../src/objects/archive/archive.ts'
import { paxItem, TAR_END, type TarItem, tarItem, type ZipItem, zipOf } from '../archives/forgery.ts'
import { type Campaign, examineAll, inLanes, literal } from './campaign.ts'

/** Small enough for generated archives to reach each of them. */
const LIMITS: ArchiveLimits = {
  ...{ entries_max: 12, bytes_max: 40_000, ratio_max: 20, ratio_free_bytes: 10_000, path_bytes_max: 60, depth_max: 4 },
}

/** Much of what an unpacking does is waiting for the disk. */
const LANES = 8

export async function fuzzArchives(t: TestContext, campaign: Campaign): Promise<void> {
  const verdicts = new Map<string, number>()
  await inLanes(LANES, campaign, async (_lane, own, stop) => {
    const yard = await openYard(t)
    const examine = async (archive: Buffer) => {
      const verdict = await yard.examine(archive)
      verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1)
    }
    await examineAll({ cases: archives, examine, toTest, stop }, own)
  })
  const told = [...verdicts].sort(([, a], [, b]) => b - a).map(([verdict, count]) => `${count} ${verdict}`)
  t.diagnostic(`seed ${campaign.seed}: ${told.join(', ')}`)
  // A generator of which nothing is taken, or of which everything is, would show nothing.
  assert.ok(verdicts.has('accepted') && verdicts.size > 10)
}

/** One archive, for a test that keeps what was found. */
export async function examineArchive(t: TestContext, archive: Buffer): Promise<void> {
  await (await openYard(t)).examine(archive)
}

function toTest(archive: Buffer): string {
  return `test('PROMISE', (t) => examineArchive(t, Buffer.from(${literal(archive.toString('base64'))}, 'base64')))`
}

/** A folder to unpack into, with others beside and above it that nobody may touch. */
async function openYard(t: TestContext) {
  const yard = await mkdtemp(join(tmpdir(), 'muster-fuzz-archives-'))
  t.after(() => rm(yard, { recursive: true, force: true }))
  const builds = join(yard, 'builds')
  const [source, target] = [join(yard, 'archive'), join(builds, 'target')]
  for (const folder of [join(yard, 'canary'), join(builds, 'neighbour')]) {
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, 'file'), 'untouched')
  }
  await writeFile(source, '')
  const before = await treeOf(yard)

  return {
    /** Throws when a law is broken; returns the verdict: accepted, or the reason of the refusal. */
    async examine(archive: Buffer): Promise<string> {
      await writeFile(source, archive)
      const checked = await verdictOf(checkArchive(source, LIMITS))
      requireSame(await verdictOf(checkArchive(source, LIMITS)), checked)
      try {
        requireSame(await verdictOf(unpackArchive({ path: source }, target, LIMITS)), checked)
        if (checked.reason === 'accepted') await requireWithinCaps(target, checked)
      } finally {
        await rm(target, { recursive: true, force: true })
      }
      assert.deepEqual(await treeOf(yard), before, 'something was left or changed')
      return checked.reason
    },
  }
}

type Verdict = { reason: string; entries: number; bytes: number }

/** Bytes are read ahead of entries: of an archive with two faults either may be found first. */
function requireSame(verdict: Verdict, before: Verdict): void {
  const is_accepted = [verdict, before].some(({ reason }) => reason === 'accepted')
  if (is_accepted) assert.deepEqual(verdict, before, 'the same archive has two verdicts')
}

async function verdictOf(work: Promise<{ entries: number; bytes: number }>): Promise<Verdict> {
  try {
    const { entries, bytes } = await work
    return { reason: 'accepted', entries, bytes }
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'ARCHIVE_INVALID') throw error
    const { entry, reason } = error.metadata
    assert.ok(entry === null || typeof entry === 'string')
    return { reason: String(reason), entries: 0, bytes: 0 }
  }
}

/** Plain files and folders only, as many and as long as the check has said. */
async function requireWithinCaps(target: string, { entries, bytes }: Verdict): Promise<void> {
  const items = await readdir(target, { recursive: true, withFileTypes: true })
  let length = 0
  for (const item of items) {
    const path = join(item.parentPath, item.name)
    const { mode, size } = await lstat(path)
    assert.ok(item.isFile() || item.isDirectory(), `${path} is neither a file nor a folder`)
    assert.ok([0o644, 0o755].includes(mode & 0o7777), `${path} has the mode ${mode.toString(8)}`)
    if (item.isFile()) length += size
    const relative = path.slice(target.length + 1)
    assert.ok(Buffer.byteLength(relative) <= LIMITS.path_bytes_max && relative.split('/').length <= LIMITS.depth_max)
  }
  assert.deepEqual({ entries: items.length, bytes: length }, { entries, bytes })
  assert.ok(entries <= LIMITS.entries_max && bytes <= LIMITS.bytes_max)
}

/** Every file and folder with what a write would change. The archive itself is of no interest. */
async function treeOf(yard: string): Promise<string[]> {
  const items = await readdir(yard, { recursive: true, withFileTypes: true })
  const paths = items.map((item) => join(item.parentPath, item.name)).filter((path) => path !== join(yard, 'archive'))
  const lines = paths.sort().map(async (path) => {
    const stats = await lstat(path)
    const { ino, mode, size, nlink, uid } = stats
    return [path, ino, mode, nlink, uid, ...(stats.isFile() ? [size, await readFile(path, 'latin1')] : [])].join(' ')
  })
  return await Promise.all(lines)
}

const bytesOf = (maxLength: number): fc.Arbitrary<Buffer> => fc.uint8Array({ maxLength }).map((all) => Buffer.from(all))
const body = fc.oneof(
  { weight: 6, arbitrary: bytesOf(60) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(0, 511, 512, 513, 9_000, 39_999, 60_000).map((length) => Buffer.alloc(length)),
  },
  {
    weight: 1,
    arbitrary: fc
      .integer({ min: 1, max: 20 })
      .chain((count) => bytesOf(50).map((some) => Buffer.concat(Array<Buffer>(count * 20).fill(some)))),
  },
)
const name = fc.oneof(
  { weight: 60, arbitrary: fc.stringMatching(/^(?:[a-e]\/){0,3}[a-h]\.(?:txt|sh)$/) },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      ...[
        '../evil',
        '/etc/evil',
        'a/../../evil',
        './a',
        '.',
        '..',
        '',
        'a//b',
        'a/',
        'a\\b',
        'C:x',
        'a\0b',
        'CON',
        'A.TXT',
        'a.txt/x',
      ],
      ...[
        'a'.repeat(61),
        'a/b/c/d/e',
        '%2e%2e/x',
        'x ',
        '\u202ex',
        '\ufb01',
        'e\u0301',
        '\xe9',
        'target/x',
        '../canary/file',
        '../neighbour/file',
      ],
    ),
  },
  { weight: 1, arbitrary: bytesOf(12).map((bytes) => bytes.toString('latin1')) },
)

const tarItems: fc.Arbitrary<Buffer> = fc.oneof(
  {
    weight: 40,
    arbitrary: fc.record({ name, body, mode: fc.constantFrom(0o644, 0o755, 0o4755, 0o000) }).map(tarItem),
  },
  { weight: 3, arbitrary: name.map((text) => tarItem({ name: `${text}/`, type: '5' })) },
  {
    weight: 2,
    arbitrary: fc
      .record({
        name,
        body,
        type: fc.constantFrom('0', '\0', '1', '2', '3', '4', '5', '6', '7', 'L', 'K', 'S', 'x', 'g', 'D', 'V', 'Z'),
        link: fc.constantFrom('', '/', '..', '/etc/passwd', 'a.txt'),
        size: fc.constantFrom<(string | undefined)[]>(
          undefined,
          undefined,
          '0\0',
          '77777777777\0',
          'x',
          ' 5 \0',
          '-1\0',
        ),
        prefix: fc.constantFrom('', '..', '/tmp', 'p'),
        magic: fc.constantFrom('ustar\x0000', 'ustar  \0', '', 'ustar'),
      })
      .map(({ size, ...item }): TarItem => ({ ...item, ...(size === undefined ? {} : { size }) }))
      .map(tarItem),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(
        fc.constantFrom('path', 'size', 'linkpath', 'mtime', 'GNU.sparse.major', 'hdrcharset', ''),
        fc.oneof(name, fc.constantFrom('5', '-1', '99999', 'x')),
        fc.constantFrom('x', 'g'),
      )
      .map(([key, value, type]) => paxItem({ [key]: value }, type)),
  },
  { weight: 1, arbitrary: bytesOf(512) },
)
const tars = fc
  .tuple(
    fc.array(tarItems, { minLength: 1, maxLength: 8 }),
    fc.constantFrom(TAR_END, TAR_END, TAR_END, Buffer.alloc(512), Buffer.alloc(0)),
  )
  .map(([items, end]) => Buffer.concat([...items, end]))

const zipItem: fc.Arbitrary<ZipItem> = fc
  .record(
    {
      name,
      body,
      method: fc.constantFrom(8, 8, 8, 0, 0, 1, 9, 12, 93, 99),
      mode: fc.constantFrom(0o100644, 0o100755, 0o100644, 0, 0o120777, 0o040755, 0o020644, 0o010644, 0o140644),
      made_by: fc.constantFrom(3 << 8, 0, 19 << 8, 0xffff),
      flags: fc.constantFrom(0x800, 0, 0x800, 1, 8, 0x2000, 0x40),
      local_name: name,
      packed: fc.oneof(
        bytesOf(40),
        body.map((bytes) => deflateRawSync(bytes)),
      ),
      length: fc.constantFrom(0, 1, 5, 0xffff_ffff, 41_000),
      checksum: fc.nat(0xffff_ffff),
      extra: bytesOf(20),
      offset: fc.nat(300),
      is_only_listed: fc.boolean(),
    },
    { requiredKeys: ['name', 'body', 'method'] },
  )
  // Most items have no odd member.
  .chain((item) =>
    fc.constantFrom(
      item,
      { name: item.name, body: item.body },
      { name: item.name, body: item.body, method: item.method },
    ),
  )
const zipForm = fc.record(
  { count: fc.nat(20), directory_offset: fc.nat(500), before_end: bytesOf(30) },
  { requiredKeys: [] },
)
const zips = fc
  .tuple(
    fc.array(zipItem, { maxLength: 8 }),
    fc.oneof({ weight: 6, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: zipForm }),
  )
  .map(([items, form]) => zipOf(items, form))

const MAGIC = [
  'PK\x03\x04',
  'PK\x05\x06',
  '\x1f\x8b\x08',
  '\x28\xb5\x2f\xfd',
  'BZh9',
  '\xfd7zXZ\0',
  '7z\xbc\xaf\x27\x1c',
  'Rar!\x1a\x07',
].map((text) => Buffer.from(text, 'latin1'))
const packed = fc.oneof(
  { weight: 5, arbitrary: tars },
  { weight: 5, arbitrary: tars.map((bytes) => gzipSync(bytes)) },
  { weight: 6, arbitrary: zips },
  {
    weight: 1,
    arbitrary: fc
      .tuple(tars, fc.nat(3_000))
      .map(([tar, at]) => Buffer.concat([gzipSync(tar.subarray(0, at)), gzipSync(tar.subarray(at))])),
  },
  { weight: 1, arbitrary: fc.tuple(tars, bytesOf(20)).map(([tar, after]) => Buffer.concat([gzipSync(tar), after])) },
  { weight: 1, arbitrary: fc.oneof(zips, bytesOf(100)).map((bytes) => gzipSync(bytes)) },
  {
    weight: 1,
    arbitrary: fc
      .oneof(tars, zips)
      .chain((bytes) => fc.constantFrom(zstdCompressSync(bytes), brotliCompressSync(bytes))),
  },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom(...MAGIC), bytesOf(600)).map((parts) => Buffer.concat(parts)) },
)

/** From 0 to just below 1, evenly: fc.double is mostly near 0. */
const share = fc.nat(999_999).map((number) => number / 1_000_000)
const change = fc.record({
  at: share,
  byte: fc.nat(255),
  how: fc.constantFrom('set', 'insert', 'cut'),
})

const archives: fc.Arbitrary<Buffer> = fc
  .tuple(
    packed,
    fc.oneof(
      { weight: 5, arbitrary: fc.constant<{ at: number; byte: number; how: string }[]>([]) },
      { weight: 3, arbitrary: fc.array(change, { minLength: 1, maxLength: 3 }) },
    ),
    fc.oneof({ weight: 9, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: share }),
  )
  .map(([archive, changes, kept]) => {
    const changed = changes.reduce((bytes, { at, byte, how }) => {
      const place = Math.floor(at * bytes.length)
      const put = how === 'cut' ? Buffer.alloc(0) : Buffer.from([byte])
      return Buffer.concat([bytes.subarray(0, place), put, bytes.subarray(how === 'insert' ? place : place + 1)])
    }, archive)
    return changed.subarray(0, Math.ceil(changed.length * kept))
  })
