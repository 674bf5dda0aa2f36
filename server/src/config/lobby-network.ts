// MUSTER_LOBBY_NETWORK: the range of which lobbies get addresses. Each platform of a machine takes one block of it
// (runner/network/addresses.ts).
import { BlockList } from 'node:net'
import { addressOfNumber, numberOfAddress } from '@musterhost/contract/edge'
import type { SettingsReader } from './read.ts'

/** Length of the prefix of one platform's block: 2,048 addresses. */
export const BLOCK_BITS = 21
const RANGE_BITS_MIN = 8

export type AddressBlock = { first: number; bits: number }

/** Ranges that are never routed in the public internet, and that an operator may give to lobbies. */
const USABLE = new BlockList()
for (const [address, bits] of [
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
] as const) {
  USABLE.addSubnet(address, bits)
}

/** Returns null when the text is not a private IPv4 block that has room for one platform. */
export function parseRange(cidr: string): AddressBlock | null {
  const match = /^(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})\/(\d{1,2})$/.exec(cidr)
  if (match === null) return null
  const bits = Number(match[2])
  const octets = match[1]!.split('.').map(Number)
  if (octets.some((octet) => octet > 255) || bits > BLOCK_BITS || bits < RANGE_BITS_MIN) return null
  const first = numberOfAddress(match[1]!)
  if (first % 2 ** (32 - bits) !== 0) return null
  const last = addressOfNumber(first + 2 ** (32 - bits) - 1)
  return USABLE.check(match[1]!) && USABLE.check(last) ? { first, bits } : null
}

export function readLobbyNetwork(read: SettingsReader): AddressBlock | null {
  const text = read.text('MUSTER_LOBBY_NETWORK')
  if (text === 'machine') return null
  const range = parseRange(text)
  if (range === null) {
    read.mistakes.push(
      'MUSTER_LOBBY_NETWORK must be a private IPv4 block of at least 2,048 addresses, such as 198.18.0.0/15, or machine.',
    )
  }
  return range
}
