// PROXY protocol, version 2 (haproxy.org/download/3.0/doc/proxy-protocol.txt): a header with the client's address, in front of
// its bytes. Lobbies that request it get it.
import { isIPv4 } from 'node:net'
import type { PlayerId } from './players.ts'

export type Endpoint = { address: string; port: number }

/** The values of a header, for its writer and its reader. */
export const PROXY_V2 = {
  signature: Buffer.from('0d0a0d0a000d0a515549540a', 'hex'),
  version: 0x20,
  local: 0,
  proxy: 1,
  inet: 0x10,
  inet6: 0x20,
  stream: 0x1,
  datagram: 0x2,
} as const
const UNIQUE_ID = 0x05
/** The first of the types that the protocol leaves to its users (PP2_TYPE_MIN_CUSTOM): the role of the player. */
const PLAYER_ROLE = 0xe0
const MAPPED = '::ffff:'

/**
 * Returns the header. Addresses of different families are both written as IPv6. `player`: its id is added as the unique id of
 * the connection (PP2_TYPE_UNIQUE_ID), and the role `spectator` as a type of its own, 0xE0.
 */
export function proxyHeader(
  kind: 'stream' | 'datagram',
  source: Endpoint,
  target: Endpoint,
  player: Pick<PlayerId, 'player_id' | 'is_spectator'> | null = null,
): Buffer {
  const from = plain(source.address)
  const to = plain(target.address)
  const is_v4 = isIPv4(from) && isIPv4(to)
  const addresses = [from, to].map((address) => (is_v4 ? ipv4Bytes(address) : ipv6Bytes(address)))
  const ports = Buffer.alloc(4)
  ports.writeUInt16BE(source.port, 0)
  ports.writeUInt16BE(target.port, 2)
  const body = Buffer.concat([...addresses, ports, ...playerEntries(player)])
  const fixed = Buffer.alloc(4)
  fixed[0] = PROXY_V2.version | PROXY_V2.proxy
  fixed[1] = (is_v4 ? PROXY_V2.inet : PROXY_V2.inet6) | (kind === 'stream' ? PROXY_V2.stream : PROXY_V2.datagram)
  fixed.writeUInt16BE(body.length, 2)
  return Buffer.concat([PROXY_V2.signature, fixed, body])
}

function playerEntries(player: Pick<PlayerId, 'player_id' | 'is_spectator'> | null): Buffer[] {
  if (player === null) return []
  const id = entryOf(UNIQUE_ID, player.player_id)
  return player.is_spectator ? [id, entryOf(PLAYER_ROLE, 'spectator')] : [id]
}

function entryOf(type: number, text: string): Buffer {
  const value = Buffer.from(text)
  const head = Buffer.from([type, 0, 0])
  head.writeUInt16BE(value.length, 1)
  return Buffer.concat([head, value])
}

function plain(address: string): string {
  const rest = address.startsWith(MAPPED) ? address.slice(MAPPED.length) : address
  return isIPv4(rest) ? rest : (address.split('%')[0] ?? address)
}

function ipv4Bytes(address: string): Buffer {
  return Buffer.from(address.split('.').map(Number))
}

function ipv6Bytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.concat([Buffer.alloc(10), Buffer.from([0xff, 0xff]), ipv4Bytes(address)])
  const [head = '', tail] = address.split('::')
  const groups = (text: string): number[] =>
    text
      .split(':')
      .filter((group) => group !== '')
      .map((group) => Number.parseInt(group, 16))
  const [left, right] = [groups(head), groups(tail ?? '')]
  const all = [...left, ...Array.from({ length: 8 - left.length - right.length }, () => 0), ...right]
  const bytes = Buffer.alloc(16)
  for (const [index, group] of all.entries()) bytes.writeUInt16BE(group, index * 2)
  return bytes
}
