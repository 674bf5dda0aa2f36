// Reads the PROXY header (version 2) of balancers that the operator trusts. Lobbies get theirs from @musterhost/contract/edge.
import { type Socket, SocketAddress } from 'node:net'
import { type Endpoint, PROXY_V2 } from '@musterhost/contract/edge'
import { PROXY_HEADER_BYTES_MAX, PROXY_HEADER_MS_MAX } from '../limits.ts'

const {
  signature: SIGNATURE,
  version: VERSION_2,
  local: LOCAL,
  proxy: PROXY,
  inet: INET,
  inet6: INET6,
  stream: STREAM,
} = PROXY_V2
const FIXED_BYTES = 16

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

function ipv6Text(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(index * 2).toString(16))
  return new SocketAddress({ address: groups.join(':'), family: 'ipv6' }).address
}
