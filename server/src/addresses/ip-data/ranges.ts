// Ranges of addresses, each with a number, in sorted typed arrays: half a million of them take a few megabytes and no
// objects. An IPv4 address is its number. An IPv6 address counts by its first 64 bits, like a client: no client leaves a
// range by using another address of its own network.
import ipaddr from 'ipaddr.js'

/** Where an address lies: a number for IPv4, the first 64 bits for IPv6. */
export type AddressKey = number | bigint

export type RangeTable = {
  ipv4: { starts: Uint32Array; ends: Uint32Array; values: Uint32Array }
  ipv6: { starts: BigUint64Array; ends: BigUint64Array; values: Uint32Array }
}

/** Both ends belong to it. */
export type AddressRange<K extends AddressKey = AddressKey> = { start: K; end: K; value: number }

/** `address` must be in canonical form, as addresses/client-ip.ts makes it; null for what is none. */
export function addressKey(address: string): AddressKey | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(address)) return ipv4Key(address)
  if (!ipaddr.IPv6.isValid(address)) return null
  return ipv6Key(ipaddr.IPv6.parse(address))
}

function ipv4Key(address: string): number {
  return address.split('.').reduce((key, part) => key * 256 + Number(part), 0)
}

export function ipv6Key({ parts }: ipaddr.IPv6): bigint {
  const [first = 0, second = 0, third = 0, fourth = 0] = parts
  return (BigInt(first * 0x10000 + second) << 32n) | BigInt(third * 0x10000 + fourth)
}

/** Sorts the ranges and joins those that meet and have the same value. Ranges that overlap must have the same value. */
export function createRangeTable(ranges: readonly AddressRange[]): RangeTable {
  const ipv4 = joined(ranges.filter((range): range is AddressRange<number> => typeof range.start === 'number'))
  const ipv6 = joined(ranges.filter((range): range is AddressRange<bigint> => typeof range.start === 'bigint'))
  return {
    ipv4: {
      starts: Uint32Array.from(ipv4, ({ start }) => start),
      ends: Uint32Array.from(ipv4, ({ end }) => end),
      values: Uint32Array.from(ipv4, ({ value }) => value),
    },
    ipv6: {
      starts: BigUint64Array.from(ipv6, ({ start }) => start),
      ends: BigUint64Array.from(ipv6, ({ end }) => end),
      values: Uint32Array.from(ipv6, ({ value }) => value),
    },
  }
}

function joined<K extends AddressKey>(ranges: AddressRange<K>[]): AddressRange<K>[] {
  ranges.sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : 0))
  const whole: AddressRange<K>[] = []
  for (const range of ranges) {
    const last = whole.at(-1)
    if (last !== undefined && last.value === range.value && range.start <= next(last.end)) {
      if (range.end > last.end) last.end = range.end
    } else whole.push({ ...range })
  }
  return whole
}

function next<K extends AddressKey>(key: K): K {
  return (typeof key === 'bigint' ? key + 1n : Number(key) + 1) as K
}

/** The value of the range that the address lies in, or null. */
export function valueIn(table: RangeTable, key: AddressKey): number | null {
  return typeof key === 'bigint' ? search(table.ipv6, key) : search(table.ipv4, key)
}

function search<K extends AddressKey>(
  { starts, ends, values }: { starts: ArrayLike<K>; ends: ArrayLike<K>; values: Uint32Array },
  key: K,
): number | null {
  let low = 0
  let high = starts.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (starts[middle]! <= key) low = middle + 1
    else high = middle
  }
  return low > 0 && key <= ends[low - 1]! ? values[low - 1]! : null
}
