// A lobby's tcp, tcp_tls or udp port as clients reach it: a port number of the edge, or the machine's own port range. Its host
// is never one of the main domain, a site or a custom domain, because cookies ignore ports.
import type { findLobby, PortConfig, ResponseOf } from '@muster/contract'
import { rawPortsHost } from '../../config/addresses.ts'
import type { Config } from '../../config/config.ts'
import type { Lobby } from '../book/lobby.ts'

type JoinPort = ResponseOf<typeof findLobby>['ports'][string]

/**
 * `lobby_host`: the lobby's host name for the port, which resolves to the edge and to the lobby's machine. In development
 * the address is returned instead: native programs cannot resolve names under localhost.
 */
export function streamPort(config: Config, lobby: Lobby, item: PortConfig, lobby_host: string): JoinPort {
  const { name, protocol, port_range } = item
  const address = config.mode === 'development' ? config.edge_ports.host : null
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
