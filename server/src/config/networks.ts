// Addresses and networks in settings: CIDR blocks, proxies that are trusted, and the networks that outgoing requests may
// reach.
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { BlockList, isIP } from 'node:net'
import { isAbsolute } from 'node:path'
import type { Config } from './config.ts'
import type { SettingsReader } from './read.ts'

export const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '::1', 'localhost'])

/** Size of sun_path, less the zero at its end. */
const SOCKET_PATH_BYTES_MAX = 107
const LOOPBACK_PROXY =
  "MUSTER_TRUSTED_PROXIES has a loopback address: lobbies share this machine's network, and each could claim any client " +
  'address. A proxy on this machine uses MUSTER_EDGE_SOCKET instead (docs/deploying.md).'

export function readTrustedProxies(read: SettingsReader): Pick<Config, 'trusted_proxies' | 'edge_socket'> {
  const trusted_proxies = readBlocks(read, 'MUSTER_TRUSTED_PROXIES', (block) => {
    if (hasLoopback(block)) read.mistakes.push(LOOPBACK_PROXY)
  })
  const edge_socket = read.textOrNull('MUSTER_EDGE_SOCKET')
  if (edge_socket !== null && (!isAbsolute(edge_socket) || Buffer.byteLength(edge_socket) > SOCKET_PATH_BYTES_MAX)) {
    read.mistakes.push(`MUSTER_EDGE_SOCKET must be an absolute path of at most ${SOCKET_PATH_BYTES_MAX} bytes.`)
  }
  return { trusted_proxies, edge_socket }
}

/** What outgoing requests may reach, and which certificates they trust. */
export function readOutbound(
  read: SettingsReader,
  mode: Config['mode'],
): Pick<Config, 'fetch_private_networks' | 'fetch_localhost' | 'fetch_authorities'> {
  const fetch_private_networks = read.list('MUSTER_FETCH_PRIVATE_NETWORKS')
  for (const network of fetch_private_networks) {
    if (!network.includes('/') || readBlock(network) === null) {
      read.mistakes.push(`MUSTER_FETCH_PRIVATE_NETWORKS names ${JSON.stringify(network)}, which is not a CIDR block.`)
    }
  }
  const fetch_localhost = read.choice('MUSTER_FETCH_LOCALHOST') === 'on'
  if (fetch_localhost && mode === 'production') {
    read.mistakes.push(
      'MUSTER_FETCH_LOCALHOST must be off in production: games could call the services of this machine.',
    )
  }
  return { fetch_private_networks, fetch_localhost, fetch_authorities: readAuthorities(read) }
}

/** A list of CIDR blocks or single addresses. `check`: of each one that can be read. */
export function readBlocks(
  read: SettingsReader,
  name: 'MUSTER_INTERNAL_PLAIN_FROM' | 'MUSTER_TRUSTED_PROXIES',
  check: (block: Block) => void = () => {},
): string[] {
  const texts = read.list(name)
  for (const text of texts) {
    const block = readBlock(text)
    if (block === null) read.mistakes.push(`${name} names ${JSON.stringify(text)}, which is not a CIDR block.`)
    else check(block)
  }
  return texts
}

type Block = { address: string; family: 'ipv4' | 'ipv6'; bits: number }

/** Reads a CIDR block or a single address; null for any other text. */
function readBlock(cidr: string): Block | null {
  const [address = '', prefix, ...rest] = cidr.split('/')
  const version = isIP(address)
  const bits_max = version === 4 ? 32 : 128
  const bits = prefix === undefined ? bits_max : Number(prefix)
  const is_prefix = prefix === undefined || /^\d{1,3}$/.test(prefix)
  if (version === 0 || rest.length > 0 || !is_prefix || bits > bits_max) return null
  return { address, family: version === 4 ? 'ipv4' : 'ipv6', bits }
}

/** Whether the block overlaps with loopback. When two blocks overlap, one contains the first address of the other. */
function hasLoopback({ address, family, bits }: Block): boolean {
  const block = new BlockList()
  block.addSubnet(address, bits, family)
  const loopback = new BlockList()
  loopback.addSubnet('127.0.0.0', 8, 'ipv4')
  loopback.addAddress('::1', 'ipv6')
  return (
    loopback.check(address, family) ||
    block.check('127.0.0.0', 'ipv4') ||
    block.check('::ffff:127.0.0.0', 'ipv6') ||
    block.check('::1', 'ipv6')
  )
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** The certificates of the PEM file, one string each. */
function readAuthorities(read: SettingsReader): string[] {
  const path = read.textOrNull('MUSTER_FETCH_AUTHORITIES')
  if (path === null) return []
  try {
    const blocks = readFileSync(path, 'utf8').match(CERTIFICATE) ?? []
    if (blocks.length === 0) read.mistakes.push(`MUSTER_FETCH_AUTHORITIES names ${path}, which has no certificate.`)
    return blocks.map((block) => new X509Certificate(block).toString())
  } catch (error) {
    read.mistakes.push(`MUSTER_FETCH_AUTHORITIES names ${path}, which cannot be read (${(error as Error).message}).`)
    return []
  }
}
