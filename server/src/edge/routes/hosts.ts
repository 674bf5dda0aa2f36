// What a request's host stands for. A host has one canonical form, and only that form is used after this file. A second
// reading of the same header elsewhere could send a request to the wrong tenant.
import { ApiError } from '@musterhost/contract'
import { mediaHost, rawPortsHost } from '../../config/addresses.ts'
import type { Config } from '../../config/config.ts'
import { HOST_LENGTH_MAX } from '../limits.ts'

export type HostMeaning =
  | { kind: 'main' }
  | { kind: 'media' }
  | { kind: 'site'; game: string; namespace: string }
  | { kind: 'lobby'; lobby_id: string; port_name: string; region: string }
  /** The host of this edge alone, in addresses of lobbies. */
  | { kind: 'edge' }
  /** The host of a region's raw ports; it serves no HTTP. */
  | { kind: 'raw_ports' }

/** The namespace that is also served under the game's own host. */
const NAMESPACE_WITHOUT_NAME = 'prod'

const HOST = /^([a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*)\.?(?::\d{1,5})?$/
const IPV6_HOST = /^(\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/
/** Characters of a DNS label (RFC 1035, 2.3.4). */
const LABEL_LENGTH_MAX = 63

const NAME_ID = /^[a-z0-9]+(?:-[a-z0-9]+)*$/
const LOBBY_LABEL = /^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})-([a-z0-9][a-z0-9-]{0,15})$/

/**
 * Returns the host in lower case, without port and trailing dot; an IPv6 literal keeps its brackets. Null when it is not a
 * host. Names are accepted in their ASCII form only (xn--), so that each has one spelling.
 */
export function canonicalHost(host: string): string | null {
  if (host.length > HOST_LENGTH_MAX) return null
  const lower = host.toLowerCase()
  const name = HOST.exec(lower)?.[1] ?? IPV6_HOST.exec(lower)?.[1]
  if (name === undefined || name.split('.').some((label) => label.length > LABEL_LENGTH_MAX)) return null
  return name
}

/** Returns the Host header unchanged. Throws API_BAD_REQUEST unless there is exactly one. */
export function requireHostHeader(hosts: readonly string[]): string {
  const header = hosts[0]
  if (header === undefined || hosts.length > 1)
    throw new ApiError('API_BAD_REQUEST', {}, { message: 'A request has one Host header.' })
  return header
}

/** Returns the canonical form of a Host header. Throws API_BAD_REQUEST when it is not a host. */
export function requireHost(header: string): string {
  const host = canonicalHost(header)
  if (host === null) throw new ApiError('API_BAD_REQUEST', {}, { message: 'The Host header is not a host.' })
  return host
}

/**
 * Returns a request's target in origin form (a path with its query). An absolute target must have the host of the Host
 * header. Throws API_BAD_REQUEST for every other target.
 */
export function requirePath(target: string, host_header: string): string {
  if (target.startsWith('/')) return target
  const absolute = ABSOLUTE_TARGET.exec(target)
  if (absolute === null)
    throw new ApiError('API_BAD_REQUEST', {}, { message: 'The target of the request is not a path.' })
  if (absolute[1]?.toLowerCase() !== host_header.toLowerCase()) {
    throw new ApiError('API_BAD_REQUEST', {}, { message: 'The target and the Host header name different hosts.' })
  }
  const rest = absolute[2] ?? ''
  return rest.startsWith('/') ? rest : `/${rest}`
}

const ABSOLUTE_TARGET = /^https?:\/\/([^/?]+)((?:\/|\?).*)?$/i

/** Returns a function from a canonical host to its meaning; null: not a host of this platform. */
export function createHosts(
  config: Pick<Config, 'mode' | 'domains' | 'edge_public_host'> & {
    regions: readonly Pick<Config['regions'][number], 'name'>[]
  },
): (host: string) => HostMeaning | null {
  const { main, cdn, job } = config.domains
  const main_hosts = new Set(config.mode === 'development' ? [main, 'localhost', '127.0.0.1', '[::1]'] : [main])
  const MAIN: HostMeaning = { kind: 'main' }
  const MEDIA: HostMeaning = { kind: 'media' }
  const RAW_PORTS: HostMeaning = { kind: 'raw_ports' }
  const EDGE: HostMeaning = { kind: 'edge' }
  const media_host = mediaHost(config.domains)
  const cdn_suffix = `.${cdn}`
  const raw_hosts = new Set(config.regions.map((region) => rawPortsHost(config.domains, region.name)))
  const lobby_suffixes = config.regions.map((region) => ({
    region: region.name,
    suffix: `.lobby.${region.name.toLowerCase()}.${job}`,
  }))

  return (host) => {
    if (main_hosts.has(host)) return MAIN
    if (host === config.edge_public_host) return EDGE
    if (host === media_host) return MEDIA
    if (raw_hosts.has(host)) return RAW_PORTS
    if (host.endsWith(cdn_suffix)) return siteOf(host.slice(0, -cdn_suffix.length))
    const found = lobby_suffixes.find(({ suffix }) => host.endsWith(suffix))
    const label = found && LOBBY_LABEL.exec(host.slice(0, -found.suffix.length))
    if (!found || !label) return null
    return { kind: 'lobby', lobby_id: label[1]!, port_name: label[2]!, region: found.region }
  }
}

/** Whether a raw port may be reached under this host: it serves no page, session or site of the platform. */
export function isRawPortHost(meaning: HostMeaning | null): boolean {
  return meaning?.kind === 'lobby' || meaning?.kind === 'raw_ports' || meaning?.kind === 'edge'
}

/** A name id has no double dash, so `<game>--<namespace>` has one reading. */
function siteOf(label: string): HostMeaning | null {
  const [game, namespace = NAMESPACE_WITHOUT_NAME, ...more] = label.split('--')
  if (game === undefined || more.length > 0 || !NAME_ID.test(game) || !NAME_ID.test(namespace)) return null
  return { kind: 'site', game, namespace }
}
