// A list of the operator: addresses, CIDR blocks, ranges and AS numbers, one in each line. They belong to the class that the
// file is named after. A # starts a remark. A line that cannot be parsed is left out and counted. A file of which most lines
// cannot be parsed is refused as a whole: it may be the error page of a web server.
import ipaddr from 'ipaddr.js'
import { canonicalAddress } from '../client-ip.ts'
import { type AddressRange, addressKey, createRangeTable, ipv6Key, type RangeTable } from './ranges.ts'

export type AddressList = { ranges: RangeTable; as_numbers: ReadonlySet<number>; entry_count: number }

/** Lines of one list. */
const LINES_MAX = 2_000_000
/** Blocks wider than these are a mistake: they would make everybody a stranger. */
const IPV4_PREFIX_MIN = 8
const IPV6_PREFIX_MIN = 16
/** Largest AS number (RFC 6793). */
const AS_NUMBER_MAX = 4_294_967_295

/** Throws an Error with a sentence when the text is no list. */
export function parseList(text: string): { list: AddressList; bad_lines: number } {
  const ranges: AddressRange[] = []
  const as_numbers = new Set<number>()
  let entry_count = 0
  let bad_lines = 0
  let line_count = 0
  for (const { 0: whole } of text.matchAll(/[^\r\n]+/g)) {
    line_count++
    if (line_count > LINES_MAX) throw new Error(`it has more than ${LINES_MAX} lines`)
    const line = whole.split(/[#;]/, 1)[0]!.trim()
    if (line === '') continue
    const entry = parseEntry(line)
    if (entry === null) bad_lines++
    else {
      entry_count++
      if (typeof entry === 'number') as_numbers.add(entry)
      else ranges.push(entry)
    }
  }
  if (bad_lines > entry_count) throw new Error('most of its lines are neither addresses nor AS numbers')
  return { list: { ranges: createRangeTable(ranges), as_numbers, entry_count }, bad_lines }
}

/** An AS number, or a range of addresses; null: neither. */
function parseEntry(line: string): number | AddressRange | null {
  const as_number = /^ASN?(\d{1,10})$/i.exec(line)?.[1]
  if (as_number !== undefined) {
    const value = Number(as_number)
    return value >= 1 && value <= AS_NUMBER_MAX ? value : null
  }
  if (line.includes('/')) return parseBlock(line)
  const ends = line.split('-')
  const start = keyOf(ends[0]!)
  const end = keyOf(ends.at(-1)!)
  if (ends.length > 2 || start === null || end === null || typeof start !== typeof end || start > end) return null
  const range = { start, end, value: 1 }
  return isTooWide(range) ? null : range
}

function keyOf(text: string) {
  const address = canonicalAddress(text.trim())
  return address === null ? null : addressKey(address)
}

/** The bits behind the prefix are ignored, as the lists that are about have them set now and then. */
function parseBlock(line: string): AddressRange | null {
  const [text = '', prefix = '', ...rest] = line.split('/')
  const address = canonicalAddress(text)
  if (address === null || rest.length > 0 || !/^\d{1,3}$/.test(prefix)) return null
  const bits = Number(prefix)
  if (ipaddr.IPv4.isValid(address)) {
    if (bits < IPV4_PREFIX_MIN || bits > 32 || text.includes(':')) return null
    const size = 2 ** (32 - bits)
    const start = Math.floor((addressKey(address) as number) / size) * size
    return { start, end: start + size - 1, value: 1 }
  }
  if (bits < IPV6_PREFIX_MIN || bits > 128) return null
  const size = 1n << BigInt(Math.max(0, 64 - bits))
  const key = ipv6Key(ipaddr.IPv6.parse(address))
  const start = key - (key % size)
  return { start, end: start + size - 1n, value: 1 }
}

function isTooWide({ start, end }: AddressRange): boolean {
  if (typeof start === 'number') return Number(end) - start >= 2 ** (32 - IPV4_PREFIX_MIN)
  return BigInt(end) - start >= 1n << BigInt(64 - IPV6_PREFIX_MIN)
}
