// Builds archives of any form for the tests, also invalid ones: nothing is checked.
import { crc32, deflateRawSync } from 'node:zlib'

export type TarItem = {
  name?: string | Buffer
  /** The type character of the header. Default: a file. */
  type?: string
  body?: Buffer
  mode?: number
  link?: string
  /** The literal field of the header, for lengths that are not octal or not true. */
  size?: string | Buffer
  magic?: string
  prefix?: string
  checksum?: string
}

export const TAR_END = Buffer.alloc(1024)

/** One header and its data, padded to whole blocks. */
export function tarItem(item: TarItem): Buffer {
  const { name = '', type = '0', body = Buffer.alloc(0), mode = 0o644, link = '', magic = 'ustar\x0000' } = item
  const header = Buffer.alloc(512)
  Buffer.from(name).copy(header, 0, 0, 100)
  header.write(`${octal(mode, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0`, 100, 'latin1')
  Buffer.from(item.size ?? `${octal(body.length, 11)}\0`).copy(header, 124)
  header.write(`${octal(0, 11)}\0        ${type}`, 136, 'latin1')
  header.write(link, 157, 100)
  header.write(magic, 257, 'latin1')
  header.write(item.prefix ?? '', 345, 155)
  let sum = 0
  for (const byte of header) sum += byte
  header.write(item.checksum ?? `${octal(sum, 6)}\0 `, 148, 'latin1')
  return Buffer.concat([header, body, Buffer.alloc((512 - (body.length % 512)) % 512)])
}

/** An extended header of POSIX. Type `x` applies to the next entry, `g` to all that follow. */
export function paxItem(records: Record<string, string | Buffer>, type = 'x'): Buffer {
  const lines = Object.entries(records).map(([key, value]) => {
    const line = Buffer.concat([Buffer.from(` ${key}=`), Buffer.from(value), Buffer.from('\n')])
    let length = line.length + 1
    while (String(length).length + line.length !== length) length = String(length).length + line.length
    return Buffer.concat([Buffer.from(String(length)), line])
  })
  return tarItem({ name: 'pax', type, body: Buffer.concat(lines) })
}

export function tarOf(...items: (TarItem | Buffer)[]): Buffer {
  return Buffer.concat([...items.map((item) => (Buffer.isBuffer(item) ? item : tarItem(item))), TAR_END])
}

export type ZipItem = {
  name: string | Buffer
  body?: Buffer
  /** The name in the local header, if it differs. */
  local_name?: string | Buffer
  mode?: number
  made_by?: number
  method?: number
  flags?: number
  /** Bytes in place of the compressed body. */
  packed?: Buffer
  length?: number
  checksum?: number
  extra?: Buffer
  /** The position of the entry in the directory. */
  offset?: number
  /** The directory lists it, and there is no local header. */
  is_only_listed?: boolean
}

export type ZipForm = { count?: number; directory_offset?: number; before_end?: Buffer }

export function zipOf(items: ZipItem[], form: ZipForm = {}): Buffer {
  const locals: Buffer[] = []
  const directory: Buffer[] = []
  let at = 0
  for (const item of items) {
    const { body = Buffer.alloc(0), method = 8, flags = 0x800, made_by = 3 << 8, extra = Buffer.alloc(0) } = item
    const name = Buffer.from(item.name)
    const local_name = Buffer.from(item.local_name ?? item.name)
    const packed = item.packed ?? (method === 8 ? deflateRawSync(body) : body)
    const common = Buffer.alloc(26)
    common.writeUInt16LE(20, 0)
    common.writeUInt16LE(flags, 2)
    common.writeUInt16LE(method, 4)
    common.writeUInt32LE(item.checksum ?? crc32(body), 10)
    common.writeUInt32LE(packed.length, 14)
    common.writeUInt32LE(item.length ?? body.length, 18)
    common.writeUInt16LE(local_name.length, 22)
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, local_name, packed])
    common.writeUInt16LE(name.length, 22)
    common.writeUInt16LE(extra.length, 24)
    const tail = Buffer.alloc(14)
    tail.writeUInt32LE(((item.mode ?? 0o100644) << 16) >>> 0, 6)
    tail.writeUInt32LE(item.offset ?? at, 10)
    const version = Buffer.alloc(2)
    version.writeUInt16LE(made_by)
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02'), version, common, tail, name, extra]))
    if (item.is_only_listed) continue
    locals.push(local)
    at += local.length
  }
  const listing = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(form.count ?? items.length, 8)
  end.writeUInt16LE(form.count ?? items.length, 10)
  end.writeUInt32LE(listing.length, 12)
  end.writeUInt32LE(form.directory_offset ?? at, 16)
  return Buffer.concat([...locals, listing, form.before_end ?? Buffer.alloc(0), end])
}

/** The records before the end of a zip beyond 4 GiB. `position`: that of their first byte. */
export function zip64End(position: bigint, count: bigint, directory_offset: bigint): Buffer {
  const record = Buffer.alloc(56)
  record.write('PK\x06\x06', 'latin1')
  record.writeBigUInt64LE(44n, 4)
  record.writeBigUInt64LE(count, 24)
  record.writeBigUInt64LE(count, 32)
  record.writeBigUInt64LE(directory_offset, 48)
  const locator = Buffer.alloc(20)
  locator.write('PK\x06\x07', 'latin1')
  locator.writeBigUInt64LE(position, 8)
  return Buffer.concat([record, locator])
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, '0')
}
