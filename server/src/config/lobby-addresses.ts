// How clients reach the ports of a lobby: as find, join and create return it, and as the lobby's server finds it in its
// environment. No host here is one of the main domain, a site or a custom domain, because cookies ignore ports.
import type { findLobby, PortConfig, ResponseOf } from '@musterhost/contract'
import { hasHttps, mainUrl, publicUrl, rawPortsHost } from './addresses.ts'
import type { Config } from './config.ts'

export type LobbyAddress = ResponseOf<typeof findLobby>['ports'][string]

/** `edge_ports`: the numbers of the edge that belong to its tcp and udp ports. */
export type AddressedLobby = {
  lobby_id: string
  region: string
  edge_ports: readonly { name: string; port: number }[]
}

/** An edge that players reach at a host of its own. `https_port`: null: it has no HTTPS. */
export type PublicEdge = { public_host: string; http_port: number; https_port: number | null }

/** The edge of this node. Null: players reach it at the addresses of the platform only. */
export function ownPublicEdge(config: Config): PublicEdge | null {
  const { edge_public_host, edge_http_port, edge_https_port } = config
  if (edge_public_host === null) return null
  const https_port = hasHttps(config) ? edge_https_port : null
  return { public_host: edge_public_host, http_port: edge_http_port, https_port }
}

type AddressedPort = Pick<PortConfig, 'name' | 'protocol' | 'port_range'>

/**
 * HTTP and HTTPS ports are given as the lobby's host name and an advertised port; `url` is ready to use. For HTTPS the URL
 * is the path route. The main domain has a certificate wherever HTTPS is served; a lobby's host name has one only with a
 * wildcard certificate. `edge`: of the lobby's node, or one that has the port; null: any edge, at the addresses of the platform.
 */
export function lobbyAddress(
  config: Config,
  lobby: AddressedLobby,
  item: AddressedPort,
  edge: PublicEdge | null,
): LobbyAddress {
  const { lobby_id, region } = lobby
  const { name, protocol } = item
  const hostname = `${lobby_id}-${name}.lobby.${region}.${config.domains.job}`
  if (protocol !== 'http' && protocol !== 'https') return streamAddress(config, lobby, item, { hostname, edge })
  const is_tls = protocol === 'https'
  const port = is_tls ? config.advertised_https_port : config.advertised_http_port
  const path = `/lobbies/${lobby_id}/${name}`
  const is_secure = is_tls || (config.mode === 'development' && config.public_scheme === 'https')
  const own_url = edge && edgeUrl(edge, is_secure)
  if (own_url !== null) return { host: `${hostname}:${port}`, hostname, port, is_tls, url: `${own_url}${path}` }
  const url =
    config.mode === 'production' && !is_tls ? publicUrl(config, hostname, 'http') : `${mainUrl(config)}${path}`
  return { host: `${hostname}:${port}`, hostname, port, is_tls, url }
}

/** Null: this edge cannot serve a client that needs HTTPS. */
export function edgeUrl({ public_host, http_port, https_port }: PublicEdge, is_secure: boolean): string | null {
  const ports = { advertised_http_port: http_port, advertised_https_port: https_port ?? 0 }
  if (is_secure && https_port === null) return null
  return publicUrl({ public_scheme: 'http', ...ports }, public_host, is_secure ? 'https' : 'http')
}

/**
 * A tcp, tcp_tls or udp port: a port number of the edge, or the machine's own port range. `lobby_host`: the lobby's host name
 * for the port, which resolves to the edge and to the lobby's machine. In development the address is returned instead:
 * native programs cannot resolve names under localhost.
 */
function streamAddress(
  config: Config,
  lobby: AddressedLobby,
  item: AddressedPort,
  { hostname: lobby_host, edge }: { hostname: string; edge: PublicEdge | null },
): LobbyAddress {
  const { name, protocol, port_range } = item
  const address = edge?.public_host ?? (config.mode === 'development' ? config.edge_ports.host : null)
  const hostname = address ?? lobby_host
  if (port_range !== null) {
    return { hostname, port_range, is_tls: false, url: `${protocol}://${hostname}:${port_range.min}` }
  }
  const given = lobby.edge_ports.find((edge_port) => edge_port.name === name)
  if (given === undefined) throw new Error(`the lobby ${lobby.lobby_id} has no number for its port ${name}`)
  const { port } = given
  const host = `${hostname}:${port}`
  if (protocol !== 'tcp_tls') return { host, hostname, port, is_tls: false, url: `${protocol}://${host}` }
  // A lobby's own name is covered only by a wildcard certificate. A certificate for this name can also be ordered.
  const certified = address ?? rawPortsHost(config.domains, lobby.region)
  return { host, hostname, port, is_tls: true, url: `tls://${certified}:${port}` }
}
