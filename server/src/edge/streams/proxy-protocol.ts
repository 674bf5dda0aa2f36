// PROXY protocol, version 2 (haproxy.org/download/3.0/doc/proxy-protocol.txt): a header with the client's address, in front of
// its bytes. The edge writes it to lobbies that request it, and reads it from balancers that the operator trusts.
import { isIPv4, type Socket, SocketAddress } from 'node:net'
import { PROXY_HEADER_BYTES_MAX, PROXY_HEADER_MS_MAX } from '../limits.ts'

export type Endpoint = { address: string; port: number }

const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')
const FIXED_BYTES = 16
const VERSION_2 = 0x20
const LOCAL = 0
const PROXY = 1
const INET = 0x10
const INET6 = 0x20
const STREAM = 0x1
const DATAGRAM = 0x2
const UNIQUE_ID = 0x05
const MAPPED = '::ffff:'

/**
 * Returns the header. Addresses of different families are both written as IPv6. `player_id`: added as the unique id of the
 * connection (PP2_TYPE_UNIQUE_ID).
 */
export function proxyHeader(
  kind: 'stream' | 'datagram',
  source: Endpoint,
  target: Endpoint,
  player_id: string | null = null,
): Buffer {
  const from = plain(source.address)
  const to = plain(target.address)
  const is_v4 = isIPv4(from) && isIPv4(to)
  const addresses = [from, to].map((address) => (is_v4 ? ipv4Bytes(address) : ipv6Bytes(address)))
  const ports = Buffer.alloc(4)
  ports.writeUInt16BE(source.port, 0)
  ports.writeUInt16BE(target.port, 2)
  const body = Buffer.concat([...addresses, ports, ...(player_id === null ? [] : [uniqueId(player_id)])])
  const fixed = Buffer.alloc(4)
  fixed[0] = VERSION_2 | PROXY
  fixed[1] = (is_v4 ? INET : INET6) | (kind === 'stream' ? STREAM : DATAGRAM)
  fixed.writeUInt16BE(body.length, 2)
  return Buffer.concat([SIGNATURE, fixed, body])
}

function uniqueId(text: string): Buffer {
  const value = Buffer.from(text)
  const head = Buffer.from([UNIQUE_ID, 0, 0])
  head.writeUInt16BE(value.length, 1)
  return Buffer.concat([head, value])
}

/**
 * Reads the header from the start of a paused connection, and leaves the rest in the connection, paused again. Resolves with
 * null when the header is missing, malformed, too long or too late. `source`: null for a connection of the balancer itself
 * (LOCAL).
 */
export function takeProxyHeader(socket: Socket): Promise<{ source: Endpoint | null } | null> {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0)
    const finish = (header: { source: Endpoint | null } | null): void => {
      clearTimeout(timer)
      socket.off('data', onData)
      socket.off('end', onEnd)
      socket.off('close', onEnd)
      socket.pause()
      resolve(header)
    }
    const onEnd = (): void => finish(null)
    const onData = (chunk: Buffer): void => {
      bytes = Buffer.concat([bytes, chunk])
      const length = headerLength(bytes)
      if (length === null) finish(null)
      if (length === null || bytes.length < length) return
      const rest = bytes.subarray(length)
      finish(readHeader(bytes.subarray(0, length)))
      if (rest.length > 0) socket.unshift(rest)
    }
    const timer = setTimeout(onEnd, PROXY_HEADER_MS_MAX)
    socket.on('data', onData)
    socket.once('end', onEnd)
    socket.once('close', onEnd)
    socket.resume()
  })
}

/** Returns the header's length, at least that of the fixed part. Null: these bytes are no header. */
function headerLength(bytes: Buffer): number | null {
  const known = Math.min(bytes.length, SIGNATURE.length)
  if (!bytes.subarray(0, known).equals(SIGNATURE.subarray(0, known))) return null
  if (bytes.length < FIXED_BYTES) return FIXED_BYTES
  const length = FIXED_BYTES + bytes.readUInt16BE(14)
  return length > PROXY_HEADER_BYTES_MAX ? null : length
}

/** Reads a whole header. TLVs after the addresses are ignored. */
function readHeader(header: Buffer): { source: Endpoint | null } | null {
  const [version, family] = [header[12]!, header[13]!]
  if (version === (VERSION_2 | LOCAL)) return { source: null }
  if (version !== (VERSION_2 | PROXY)) return null
  const body = header.subarray(FIXED_BYTES)
  if (family === (INET | STREAM) && body.length >= 12) {
    return { source: { address: body.subarray(0, 4).join('.'), port: body.readUInt16BE(8) } }
  }
  if (family === (INET6 | STREAM) && body.length >= 36) {
    return { source: { address: ipv6Text(body.subarray(0, 16)), port: body.readUInt16BE(32) } }
  }
  return null
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

function ipv6Text(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(index * 2).toString(16))
  return new SocketAddress({ address: groups.join(':'), family: 'ipv6' }).address
}
