// Which autonomous system announces an address, read from a pair of files (IPv4 and IPv6) with a line for each range: its
// first and last address as decimal numbers, the AS number, and whose it is. Both files are in ascending order.
import type { RangeTable } from './ranges.ts'

/** Address ranges of the table, per IP version. */
const RANGES_MAX = 4_000_000
/** Two numbers of 32 bits: how many ranges of IPv4 and of IPv6 follow. */
const HEAD_BYTES = 8

/** Throws an Error with a sentence when the texts are not what they should be. */
export function parseAsNumbers(ipv4_text: string, ipv6_text: string): RangeTable {
  const ipv4_max = countLines(ipv4_text)
  const ipv6_max = countLines(ipv6_text)
  if (ipv4_max > RANGES_MAX || ipv6_max > RANGES_MAX) throw new Error(`it has more than ${RANGES_MAX} ranges`)
  const ipv4 = {
    starts: new Uint32Array(ipv4_max),
    ends: new Uint32Array(ipv4_max),
    values: new Uint32Array(ipv4_max),
  }
  const ipv6 = {
    starts: new BigUint64Array(ipv6_max),
    ends: new BigUint64Array(ipv6_max),
    values: new Uint32Array(ipv6_max),
  }
  const ipv4_count = fill(ipv4, ipv4_text, Number)
  // What is narrower than a client's own network is left to the first range that is in it.
  const ipv6_count = fill(ipv6, ipv6_text, (text) => BigInt(text) >> 64n)
  return { ipv4: shortened(ipv4, ipv4_count), ipv6: shortened(ipv6, ipv6_count) }
}

type Columns<K> = { starts: { [index: number]: K }; ends: { [index: number]: K }; values: Uint32Array }

/** Ranges that meet and belong to the same system become one. */
function fill<K extends number | bigint>(columns: Columns<K>, text: string, read: (text: string) => K): number {
  const { starts, ends, values } = columns
  let count = 0
  for (let from = 0; from < text.length; ) {
    const line_end = text.indexOf('\n', from)
    const first = text.indexOf(',', from)
    const second = text.indexOf(',', first + 1)
    const third = text.indexOf(',', second + 1)
    const start = read(text.slice(from, first))
    const end = read(text.slice(first + 1, second))
    const value = Number(text.slice(second + 1, third))
    from = line_end === -1 ? text.length : line_end + 1
    const last = count === 0 ? null : ends[count - 1]!
    if (!(start <= end) || !(value > 0) || (last !== null && starts[count - 1]! > start)) {
      throw new Error('its ranges are not in order')
    }
    if (last !== null && end <= last) continue
    if (last !== null && values[count - 1] === value && BigInt(start) <= BigInt(last) + 1n) {
      ends[count - 1] = end
      continue
    }
    starts[count] = start
    ends[count] = end
    values[count] = value
    count++
  }
  return count
}

function shortened<T extends { slice: (start: number, end: number) => T }>(
  { starts, ends, values }: { starts: T; ends: T; values: Uint32Array },
  count: number,
) {
  return { starts: starts.slice(0, count), ends: ends.slice(0, count), values: values.slice(0, count) }
}

function countLines(text: string): number {
  let count = text.endsWith('\n') || text === '' ? 0 : 1
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count++
  return count
}

/** The table as a file: its head, then each column as it is in memory, those of 64 bits first. */
export function packAsNumbers({ ipv4, ipv6 }: RangeTable): Uint8Array {
  const head = Uint32Array.of(ipv4.values.length, ipv6.values.length)
  const columns = [head, ipv6.starts, ipv6.ends, ipv6.values, ipv4.starts, ipv4.ends, ipv4.values]
  return Buffer.concat(columns.map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength)))
}

/** Throws an Error with a sentence when the bytes are not what `packAsNumbers` makes. */
export function unpackAsNumbers(bytes: Uint8Array): RangeTable {
  // Columns of 64 bits must begin at a multiple of 8 bytes.
  const { buffer } = new Uint8Array(bytes)
  const [ipv4_count = 0, ipv6_count = 0] = new Uint32Array(buffer, 0, Math.min(2, Math.floor(buffer.byteLength / 4)))
  if (buffer.byteLength !== HEAD_BYTES + 20 * ipv6_count + 12 * ipv4_count) throw new Error('its length is wrong')
  let at = HEAD_BYTES
  const next = (bytes_each: number, count: number): number => {
    const start = at
    at += bytes_each * count
    return start
  }
  const longs = (count: number): BigUint64Array<ArrayBuffer> => new BigUint64Array(buffer, next(8, count), count)
  const shorts = (count: number): Uint32Array<ArrayBuffer> => new Uint32Array(buffer, next(4, count), count)
  const ipv6 = { starts: longs(ipv6_count), ends: longs(ipv6_count), values: shorts(ipv6_count) }
  return { ipv4: { starts: shorts(ipv4_count), ends: shorts(ipv4_count), values: shorts(ipv4_count) }, ipv6 }
}
