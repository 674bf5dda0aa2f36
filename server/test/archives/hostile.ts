// Archives that must be refused, each with its reason. Most begin with a harmless file, so that a file was written before
// the refusal.
import { deflateRawSync, gzipSync } from 'node:zlib'
import {
  paxItem,
  TAR_END,
  type TarItem,
  tarItem,
  tarOf,
  type ZipForm,
  type ZipItem,
  zip64End,
  zipOf,
} from './forgery.ts'

export type Hostile = { label: string; archive: Buffer; reason: string | RegExp }

const HELLO = Buffer.from('hello')
const FIRST_TAR: TarItem = { name: 'first.txt', body: HELLO }
const FIRST_ZIP: ZipItem = { name: 'first.txt', body: HELLO }
/** An entry, and another one that contains it as its bytes. A thousand such unpack to a million times the archive. */
const INNER: ZipItem = { name: 'inner.txt', body: HELLO, method: 0 }
const OUTER = { name: 'outer.txt', body: zipOf([INNER]), method: 0 }

/** Names of files. `outside`: an absolute path whose folder must not change. */
function badNames(outside: string): [string | Buffer, string | RegExp][] {
  const levels = (count: number): string => '../'.repeat(count)
  return [
    ['../evil', 'dots'],
    [`${levels(2)}canary/file`, 'dots'],
    [`${levels(40)}tmp/evil`, 'dots'],
    ['a/../../evil', 'dots'],
    ['a/..', 'dots'],
    ['a/./b', 'dots'],
    ['..', 'dots'],
    ['a/../b', 'dots'],
    ['.../x', 'trailing_dot_or_space'],
    ['.. /x', 'trailing_dot_or_space'],
    ['..\\evil', 'backslash'],
    ['a\\..\\..\\evil', 'backslash'],
    ['\\\\server\\share\\x', 'backslash'],
    ['/etc/evil', 'absolute'],
    [`${outside}/evil`, 'absolute'],
    ['//evil', 'absolute'],
    ['.//evil', 'absolute'],
    ['C:/evil', 'colon'],
    ['C:evil', 'colon'],
    ['a/C:/evil', 'colon'],
    ['x.txt:stream', 'colon'],
    ['C:\\evil', 'backslash'],
    ['a//b', 'empty_name'],
    ['new\nline', 'control_character'],
    ['tab\tname', 'control_character'],
    ['bell\x07', 'control_character'],
    ['delete\x7f', 'control_character'],
    ['c1\u0085', 'control_character'],
    ['\u202egnp.exe', 'control_character'],
    ['zero\u200bwidth', 'control_character'],
    ['\ufeffbom', 'control_character'],
    ['line\u2028separator', 'control_character'],
    ['%2e%2e/evil', 'percent_encoded'],
    ['%2E%2e%2fevil', 'percent_encoded'],
    ['a%5cb', 'percent_encoded'],
    ['a%00', 'percent_encoded'],
    ['dot.', 'trailing_dot_or_space'],
    ['space ', 'trailing_dot_or_space'],
    [' space', 'trailing_dot_or_space'],
    ['a./b', 'trailing_dot_or_space'],
    ['CON', 'reserved_name'],
    ['con.txt', 'reserved_name'],
    ['a/NUL/b', 'reserved_name'],
    ['aux.h', 'reserved_name'],
    ['COM1', 'reserved_name'],
    ['lpt9.log', 'reserved_name'],
    ['com¹', 'reserved_name'],
    ['CONIN$', 'reserved_name'],
    [Buffer.from([0x66, 0xff, 0xfe]), 'encoding'],
    [Buffer.from([0x61, 0xc0, 0xae, 0xc0, 0xae]), 'encoding'],
    [Buffer.from([0x61, 0xed, 0xa0, 0x80]), 'encoding'],
    ['first.txt', 'duplicate'],
    ['FIRST.TXT', 'twin'],
    ['First.txt/x', 'twin'],
    ['first.txt/x', 'not_a_folder'],
    ['ﬁrst.txt', 'twin'],
    ['./first.txt', 'duplicate'],
  ]
}

/** A name too long for the field of a tar header. */
const LONG_NAMES: [string, string][] = [
  ['a'.repeat(256), 'path_too_long'],
  ['é'.repeat(128), 'path_too_long'],
  [Array(65).fill('a').join('/'), 'path_too_deep'],
  [Array(6).fill('a'.repeat(200)).join('/'), 'path_too_long'],
  [Array(2048).fill('a').join('/'), 'path_too_long'],
  [`${'../'.repeat(50)}evil`, 'dots'],
]

export function hostileArchives(outside: string): Hostile[] {
  return [...hostileNames(outside), ...hostileTars(outside), ...hostileZips(outside), ...truncated(), ...notArchives()]
}

function hostileNames(outside: string): Hostile[] {
  const found: Hostile[] = []
  for (const [index, [name, reason]] of [...badNames(outside), ...LONG_NAMES].entries()) {
    const label = `${index} ${JSON.stringify(name.toString('latin1').slice(0, 60))}`
    const evil: TarItem = { name: 'x', body: HELLO }
    if (Buffer.byteLength(name) <= 100) {
      const plain = tarOf(FIRST_TAR, { name, body: HELLO })
      found.push({ label: `tar ${label}`, archive: plain, reason })
      found.push({ label: `tar.gz ${label}`, archive: gzipSync(plain), reason })
    }
    const long = tarItem({
      name: '././@LongLink',
      type: 'L',
      body: Buffer.concat([Buffer.from(name), Buffer.alloc(1)]),
    })
    found.push({ label: `tar, pax path ${label}`, archive: tarOf(FIRST_TAR, paxItem({ path: name }), evil), reason })
    found.push({ label: `tar, GNU long path ${label}`, archive: tarOf(FIRST_TAR, long, evil), reason })
    found.push({ label: `zip ${label}`, archive: zipOf([FIRST_ZIP, { name, body: HELLO }]), reason })
    found.push({ label: `zip, stored ${label}`, archive: zipOf([FIRST_ZIP, { name, body: HELLO, method: 0 }]), reason })
  }
  const nul = 'a\0b'
  found.push({
    label: 'tar, NUL in a pax path',
    archive: tarOf(paxItem({ path: nul }), FIRST_TAR),
    reason: 'control_character',
  })
  found.push({ label: 'zip, NUL in a name', archive: zipOf([{ name: nul, body: HELLO }]), reason: 'control_character' })
  found.push({ label: 'tar, prefix', archive: tarOf({ name: 'evil', prefix: '..', body: HELLO }), reason: 'dots' })
  found.push({
    label: 'tar, absolute prefix',
    archive: tarOf({ name: 'evil', prefix: outside, body: HELLO }),
    reason: 'absolute',
  })
  found.push({
    label: 'tar, a name for all',
    archive: tarOf(paxItem({ path: '../evil' }, 'g'), paxItem({ mtime: '1' }), FIRST_TAR),
    reason: 'dots',
  })
  found.push({ label: 'tar, folder', archive: tarOf(FIRST_TAR, { name: '../evil/', type: '5' }), reason: 'dots' })
  found.push({ label: 'zip, folder', archive: zipOf([FIRST_ZIP, { name: '../evil/', mode: 0o40755 }]), reason: 'dots' })
  return found
}

function hostileTars(outside: string): Hostile[] {
  const of = (label: string, reason: string | RegExp, ...items: (TarItem | Buffer)[]): Hostile[] => {
    const archive = tarOf(FIRST_TAR, ...items)
    return [
      { label: `tar, ${label}`, archive, reason },
      { label: `tar.gz, ${label}`, archive: gzipSync(archive), reason },
    ]
  }
  const through = { name: 'link/evil', body: HELLO }
  return [
    ...of('link to /', 'link', { name: 'link', type: '2', link: '/' }, through),
    ...of('link to a folder outside', 'link', { name: 'link', type: '2', link: outside }, through),
    ...of('link to ..', 'link', { name: 'link', type: '2', link: '..' }, through),
    ...of('link inside', 'link', { name: 'link', type: '2', link: 'first.txt' }),
    ...of('link with a long target', 'link', paxItem({ linkpath: outside }), { name: 'link', type: '2' }, through),
    ...of(
      'chain of links',
      'link',
      { name: 'a', type: '2', link: '.' },
      { name: 'a/b', type: '2', link: '..' },
      { name: 'a/b/evil', body: HELLO },
    ),
    ...of('hard link to /etc/shadow', 'link', { name: 'shadow', type: '1', link: '/etc/shadow' }),
    ...of('hard link inside', 'link', { name: 'second.txt', type: '1', link: 'first.txt' }),
    ...of('character device', 'device', { name: 'null', type: '3' }),
    ...of('block device', 'device', { name: 'disk', type: '4' }),
    ...of('pipe', 'fifo', { name: 'pipe', type: '6' }),
    ...of('GNU sparse file', 'sparse', { name: 'sparse', type: 'S' }),
    ...of('pax sparse file', 'sparse', paxItem({ 'GNU.sparse.major': '1', 'GNU.sparse.name': '../evil' }), {
      name: 'sparse',
      body: HELLO,
    }),
    ...of('GNU dumped folder', 'unknown_type', { name: 'd', type: 'D' }),
    ...of('volume', 'unknown_type', { name: 'v', type: 'V' }),
    ...of('unknown type', 'unknown_type', { name: 'z', type: 'Z' }),
    ...of('folder with bytes', 'size_mismatch', {
      name: 'd',
      type: '5',
      body: tarItem({ name: '../evil', body: HELLO }),
    }),
    ...of('2^63 bytes', 'size_mismatch', { name: 'big', size: Buffer.from('800000008000000000000000', 'hex') }),
    ...of('negative length', 'size_mismatch', { name: 'big', size: Buffer.alloc(12, 0xff) }),
    ...of('length that is no number', 'size_mismatch', { name: 'big', size: '0x10\0' }),
    ...of('empty length', 'size_mismatch', { name: 'big', size: Buffer.alloc(12) }),
    ...of('7 GiB that are not there', 'truncated', { name: 'big', size: '70000000000\0' }),
    ...of('more than the cap', 'too_many_bytes', { name: 'big', size: '777777777777' }),
    ...of('pax length too long', /corrupt|size_mismatch|truncated/, paxItem({ size: '99999' }), {
      name: 'x',
      body: HELLO,
    }),
    ...of('pax length too short', 'size_mismatch', paxItem({ size: '1' }), { name: 'x', body: HELLO }),
    ...of('pax length of nothing', /corrupt|size_mismatch/, paxItem({ size: '0' }), { name: 'x', body: HELLO }),
    ...of('pax length below nothing', 'corrupt', paxItem({ size: '-1' }), { name: 'x', body: HELLO }),
    ...of('pax length that is no number', 'corrupt', paxItem({ size: 'many' }), { name: 'x', body: HELLO }),
    ...of('pax length for all', 'size_mismatch', paxItem({ size: '512' }, 'g'), paxItem({ mtime: '1' }), {
      name: 'x',
      body: HELLO,
    }),
    ...of('extended header of 1 MiB', 'extended_header', paxItem({ path: 'x'.repeat(1024 * 1024) }), { name: 'x' }),
    ...of('extended headers without end', 'corrupt', ...Array.from({ length: 100 }, () => paxItem({ path: 'x' })), {
      name: 'x',
    }),
    ...of('extended header of nothing', 'corrupt', paxItem({ path: 'x' })),
    ...of('wrong checksum', 'corrupt', { name: 'x', checksum: '0000000\0' }),
    ...of('no magic', 'corrupt', { name: 'x', magic: '\0' }),
    ...of('one empty block in the middle', 'corrupt', Buffer.alloc(512), { name: 'x', body: HELLO }),
    ...of('second archive behind the end', 'trailing_data', TAR_END, { name: '../evil', body: HELLO }),
    {
      label: 'tar, a byte behind the end',
      archive: Buffer.concat([tarOf(FIRST_TAR), Buffer.from('x')]),
      reason: 'trailing_data',
    },
    {
      label: 'tar, a block behind the end',
      archive: Buffer.concat([tarOf(FIRST_TAR), Buffer.alloc(512, 1)]),
      reason: 'trailing_data',
    },
    {
      label: 'tar, 2 MiB of padding',
      archive: Buffer.concat([tarOf(FIRST_TAR), Buffer.alloc(2 ** 21)]),
      reason: 'trailing_data',
    },
    {
      label: 'tar.gz, zeros behind the end',
      archive: Buffer.concat([gzipSync(tarOf(FIRST_TAR)), Buffer.alloc(9)]),
      reason: 'trailing_data',
    },
    {
      label: 'tar.gz, garbage behind the end',
      archive: Buffer.concat([gzipSync(tarOf(FIRST_TAR)), Buffer.from('garbage')]),
      reason: 'corrupt',
    },
    { label: 'tar without an end', archive: tarItem(FIRST_TAR), reason: 'truncated' },
    {
      label: 'tar with half an end',
      archive: Buffer.concat([tarItem(FIRST_TAR), Buffer.alloc(512)]),
      reason: 'truncated',
    },
    { label: 'tar of nothing', archive: TAR_END, reason: 'not_an_archive' },
    { label: 'tar.gz of nothing', archive: gzipSync(TAR_END), reason: 'empty' },
    { label: 'tar of folders', archive: tarOf({ name: 'a/', type: '5' }), reason: 'empty' },
    { label: 'gzip of a gzip', archive: gzipSync(gzipSync(tarOf(FIRST_TAR))), reason: /not_an_archive|truncated/ },
    { label: 'gzip of text', archive: gzipSync('hello '.repeat(1000)), reason: 'not_an_archive' },
    {
      label: 'gzip of a zip',
      archive: gzipSync(zipOf([FIRST_ZIP, { name: 'x', body: Buffer.alloc(9999) }])),
      reason: /not_an_archive|truncated/,
    },
  ]
}

function hostileZips(outside: string): Hostile[] {
  const of = (label: string, reason: string | RegExp, ...items: ZipItem[]): Hostile => {
    return { label: `zip, ${label}`, archive: zipOf([FIRST_ZIP, ...items]), reason }
  }
  const whole = (label: string, reason: string | RegExp, form: ZipForm, items = [FIRST_ZIP]): Hostile => {
    return { label: `zip, ${label}`, archive: zipOf(items, form), reason }
  }
  const target = Buffer.from(outside)
  const deflated = deflateRawSync(HELLO)
  // Too long to be inflated at once.
  const long = Buffer.from(Array.from({ length: 200_000 }, (_, at) => (at * at) % 251))
  const long_deflated = deflateRawSync(long)
  const directory_start = zipOf([FIRST_ZIP]).indexOf('PK\x01\x02')
  const inner_offset = directory_start + 30 + Buffer.byteLength(OUTER.name)
  const end_start = BigInt(zipOf([FIRST_ZIP]).length - 22)
  const huge = 2n ** 63n
  return [
    of('link', 'link', { name: 'link', mode: 0o120777, body: target }, { name: 'link/evil', body: HELLO }),
    of('link made on Windows', 'link', { name: 'link', mode: 0o120777, made_by: 0, body: target }),
    of('device', 'device', { name: 'null', mode: 0o20666 }),
    of('block device', 'device', { name: 'disk', mode: 0o60666 }),
    of('pipe', 'fifo', { name: 'pipe', mode: 0o10666 }),
    of('socket', 'socket', { name: 'socket', mode: 0o140666 }),
    of('unknown type', 'unknown_type', { name: 'x', mode: 0o170666 }),
    of('folder called as a file', 'unknown_type', { name: 'x', mode: 0o40755 }),
    of('file called as a folder', 'unknown_type', { name: 'x/', mode: 0o100644 }),
    of('folder with bytes', 'size_mismatch', { name: 'x/', mode: 0o40755, body: HELLO }),
    of('encrypted', 'encrypted', { name: 'x', flags: 0x801, method: 0, body: HELLO, packed: Buffer.alloc(17) }),
    of('strongly encrypted', 'corrupt', { name: 'x', flags: 0x841, body: HELLO }),
    of('bzip2', 'compression_method', { name: 'x', method: 12, body: HELLO }),
    of('another name in front of the bytes', 'corrupt', { name: 'x', local_name: '../evil', body: HELLO }),
    of('wrong checksum', 'checksum', { name: 'x', body: HELLO, checksum: 1 }),
    of('wrong checksum, stored', 'checksum', { name: 'x', body: HELLO, checksum: 1, method: 0 }),
    of('says it is shorter', 'size_mismatch', { name: 'x', body: HELLO, length: 4 }),
    of('says it is longer', 'size_mismatch', { name: 'x', body: HELLO, length: 6 }),
    of('says it is longer, stored', 'corrupt', { name: 'x', body: HELLO, length: 6, method: 0 }),
    of('no deflate', 'corrupt', { name: 'x', body: HELLO, packed: Buffer.alloc(20, 0xff) }),
    of('deflate that ends too early', 'truncated', { name: 'x', body: HELLO, packed: deflated.subarray(0, -1) }),
    of('bytes behind the deflate', 'corrupt', { name: 'x', body: HELLO, packed: Buffer.concat([deflated, HELLO]) }),
    of('long, wrong checksum', 'checksum', { name: 'x', body: long, checksum: 1 }),
    of('long, says it is shorter', 'size_mismatch', { name: 'x', body: long, length: 199_999 }),
    of('long, says it is short', 'size_mismatch', { name: 'x', body: long, length: 4 }),
    of('long, says it is longer', 'size_mismatch', { name: 'x', body: long, length: 200_001 }),
    of('long, deflate that ends too early', 'truncated', {
      ...{ name: 'x', body: long, packed: long_deflated.subarray(0, -1) },
    }),
    of('long, bytes behind the deflate', 'corrupt', {
      ...{ name: 'x', body: long, packed: Buffer.concat([long_deflated, HELLO]) },
    }),
    of('entry on top of another', /corrupt|overlap/, { name: 'x', body: HELLO, offset: 0 }),
    of('entry inside the bytes of another', 'overlap', OUTER, { ...INNER, is_only_listed: true, offset: inner_offset }),
    of('entry far behind the end', 'truncated', { name: 'x', body: HELLO, offset: 0xfffffff0 }),
    of('entry in the directory', 'corrupt', { name: 'x', body: HELLO, offset: directory_start + 100 }),
    of('64 bit offset of 2^63', 'truncated', { name: 'x', body: HELLO, offset: 0xffffffff, extra: extraOf(huge) }),
    of('64 bit length of 2^63', 'too_many_bytes', {
      name: 'x',
      length: 0xffffffff,
      packed: HELLO,
      extra: extraOf(huge),
    }),
    of('extra field that is too long', 'corrupt', { name: 'x', body: HELLO, extra: Buffer.from([1, 0, 255, 255]) }),
    whole('more entries counted than there are', /corrupt|truncated/, { count: 2 }),
    whole('an entry that is not counted', 'trailing_data', { count: 1 }, [FIRST_ZIP, { name: '../evil', body: HELLO }]),
    whole('no entry counted', /empty|trailing_data/, { count: 0 }),
    whole('65,535 entries counted', /corrupt|truncated/, { count: 0xffff }),
    whole('directory elsewhere', 'corrupt', { directory_offset: 0 }),
    whole('directory behind the end', 'truncated', { directory_offset: 0xfffffff0 }),
    whole('64 bit end at 2^63', 'truncated', { before_end: zip64End(huge, 1n, 0n) }),
    whole('64 bit end elsewhere', 'corrupt', { before_end: zip64End(0n, 1n, 0n) }),
    whole('64 bit directory at 2^63', /corrupt|truncated/, { before_end: zip64End(end_start, 1n, huge) }),
    whole('2^63 entries', 'too_many_entries', { before_end: zip64End(end_start, huge, 0n) }),
    { label: 'zip of nothing', archive: zipOf([]), reason: 'empty' },
    { label: 'zip of folders', archive: zipOf([{ name: 'a/', mode: 0o40755 }]), reason: 'empty' },
    {
      label: 'zip, a byte behind the end',
      archive: Buffer.concat([zipOf([FIRST_ZIP]), Buffer.from('x')]),
      reason: 'trailing_data',
    },
    {
      label: 'zip, a byte before the start',
      archive: Buffer.concat([Buffer.from('x'), zipOf([FIRST_ZIP])]),
      reason: 'not_an_archive',
    },
  ]
}

/** The extra field of lengths and offsets beyond 32 bits. */
function extraOf(value: bigint): Buffer {
  const extra = Buffer.alloc(12)
  extra.writeUInt16LE(1, 0)
  extra.writeUInt16LE(8, 2)
  extra.writeBigUInt64LE(value, 4)
  return extra
}

function truncated(): Hostile[] {
  const items = Array.from({ length: 4 }, (_, index) => ({
    name: `file${index}`,
    body: Buffer.from('hello '.repeat(200)),
  }))
  const tar = tarOf(...items)
  const whole: [string, Buffer][] = [
    ['tar', tar],
    ['tar.gz', gzipSync(tar)],
    ['zip', zipOf(items)],
  ]
  const CUTS = 24
  return whole.flatMap(([format, archive]) =>
    Array.from({ length: CUTS }, (_, cut) => {
      const length = Math.floor((archive.length * cut) / CUTS)
      // A tar is cut between blocks, where only the missing end shows it.
      const cut_length = format === 'tar' ? length - (length % 512) : length
      const label = `${format}, cut ${cut} to ${cut_length} bytes`
      return { label, archive: archive.subarray(0, cut_length), reason: /truncated|not_an_archive/ }
    }),
  )
}

function notArchives(): Hostile[] {
  const starts = [
    '',
    'PK',
    'hello',
    '<!doctype html>',
    '\x7fELF',
    'Rar!\x1a\x07',
    '7z\xbc\xaf\x27\x1c',
    '\xfd7zXZ\0',
    '\x28\xb5\x2f\xfd',
    'BZh91AY',
  ]
  return starts.map((start) => {
    const archive = Buffer.concat([Buffer.from(start, 'latin1'), Buffer.alloc(start === '' ? 0 : 2000)])
    return { label: `no archive: ${JSON.stringify(start)}`, archive, reason: 'not_an_archive' }
  })
}
