// Settings of the edge: the ports it listens on, and those it leaves to lobbies.
import { isIP, isIPv4 } from 'node:net'
import { resolve } from 'node:path'
import type { PortRange } from '@musterhost/contract'
import type { Config } from './config.ts'
import { LOOPBACK } from './networks.ts'
import type { SettingsReader } from './read.ts'

/** Where lobbies listen for the edge. */
export const LOBBY_PORTS: PortRange = { min: 20_000, max: 25_999 }

/** Where raw ports listen on a laptop. A browser would send the hub's cookies to every port of the hub's host. */
const RAW_PORTS_LOOPBACK = '127.0.0.2'
const PUBLIC_HOST = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/
/** A version config may name this many ports. */
const EDGE_PORTS_SPARE_MIN = 16

export function readEdge(
  read: SettingsReader,
  mode: Config['mode'],
  { edge_http_port, edge_https_port }: Pick<Config, 'edge_http_port' | 'edge_https_port'>,
): Pick<
  Config,
  | 'edge_hosts'
  | 'edge_public_host'
  | 'advertised_http_port'
  | 'advertised_https_port'
  | 'certificates_dir'
  | 'edge_ports'
  | 'edge_ping_port'
  | 'host_port_ranges'
> {
  const certificates_dir = read.textOrNull('MUSTER_TLS_CERTIFICATES')
  const edge_public_host = readPublicHost(read)
  return {
    edge_hosts: readEdgeHosts(read, mode),
    edge_public_host,
    advertised_http_port: read.number('MUSTER_ADVERTISED_HTTP_PORT', edge_http_port),
    advertised_https_port: read.number('MUSTER_ADVERTISED_HTTPS_PORT', edge_https_port),
    certificates_dir: certificates_dir === null ? null : resolve(certificates_dir),
    edge_ports: { ...readEdgePorts(read), host: readEdgePortsHost(read, mode, ownAddress(mode, edge_public_host)) },
    edge_ping_port: read.number('MUSTER_EDGE_PING_PORT') || null,
    host_port_ranges: readHostPortRanges(read),
  }
}

/**
 * The address that a node in development names to players, where the public host is one. It has no cookies of the hub, whose
 * host is a name of this machine. Null: there is none, or all addresses are used.
 */
function ownAddress(mode: Config['mode'], public_host: string | null): string | null {
  if (mode !== 'development' || public_host === null || !isIPv4(public_host)) return null
  return public_host.startsWith('127.') ? null : public_host
}

function readEdgeHosts(read: SettingsReader, mode: Config['mode']): readonly (string | null)[] {
  const host = read.textOrNull('MUSTER_EDGE_HOST')
  if (host === 'all') return [null]
  if (host === null) return mode === 'development' ? ['127.0.0.1', '::1'] : [null]
  if (isIP(host) === 0) {
    read.mistakes.push(`MUSTER_EDGE_HOST is ${JSON.stringify(host)}, which is neither an address nor "all".`)
  }
  return [host]
}

/** It is no host that has another meaning: those of the platform are checked with the domains. */
function readPublicHost(read: SettingsReader): string | null {
  const host = read.textOrNull('MUSTER_EDGE_PUBLIC_HOST')?.toLowerCase() ?? null
  if (host !== null && !PUBLIC_HOST.test(host)) {
    read.mistakes.push('MUSTER_EDGE_PUBLIC_HOST must be a host name or an IPv4 address, such as fra-2.example.com.')
  }
  return host
}

function readEdgePorts(read: SettingsReader): PortRange & { spare: number } {
  const [range = { min: 0, max: 0 }, ...more] = read.portRanges('MUSTER_EDGE_PORTS')
  if (more.length > 0) read.mistakes.push('MUSTER_EDGE_PORTS is one range.')
  const spare = read.number('MUSTER_EDGE_PORTS_SPARE')
  if (spare < EDGE_PORTS_SPARE_MIN) {
    read.mistakes.push(
      `MUSTER_EDGE_PORTS_SPARE must be ${EDGE_PORTS_SPARE_MIN} at least: a lobby may have as many ports.`,
    )
  }
  return { ...range, spare }
}

function readEdgePortsHost(read: SettingsReader, mode: Config['mode'], own_address: string | null): string | null {
  const of_mode = mode === 'development' ? (own_address ?? RAW_PORTS_LOOPBACK) : null
  const host = read.textOrNull('MUSTER_EDGE_PORTS_HOST') ?? of_mode
  if (host === null || host === own_address) return host
  if (isIP(host) === 0) {
    read.mistakes.push(`MUSTER_EDGE_PORTS_HOST is ${JSON.stringify(host)}, which is not an address.`)
  } else if (mode === 'development' && (LOOPBACK.has(host) || !host.startsWith('127.'))) {
    read.mistakes.push(
      'MUSTER_EDGE_PORTS_HOST must be in 127.0.0.0/8 in development, and not 127.0.0.1: ' +
        'a browser sends the cookies of the hub to every port of its host.',
    )
  }
  return host
}

function readHostPortRanges(read: SettingsReader): PortRange[] {
  const ranges = read.portRanges('MUSTER_HOST_PORT_RANGES')
  for (const range of ranges) {
    if (range.min <= LOBBY_PORTS.max && range.max >= LOBBY_PORTS.min) {
      read.mistakes.push(
        `MUSTER_HOST_PORT_RANGES must keep out of ${LOBBY_PORTS.min}-${LOBBY_PORTS.max}, which lobbies have.`,
      )
    }
  }
  return ranges
}
