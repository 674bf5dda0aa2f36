// How players are told a tcp, tcp_tls or udp port of a lobby: at a number of the edge's, or as the range of the machine's own.
// No such port is named under a host of the main domain, a site or a custom domain: cookies ignore ports.
import type { findLobby, PortConfig, ResponseOf } from '@muster/contract'
import { rawPortsHost } from '../../config/addresses.ts'
import type { Config } from '../../config/config.ts'
import type { Lobby } from '../book/lobby.ts'

type JoinPort = ResponseOf<typeof findLobby>['ports'][string]

/**
 * `lobby_host` is the lobby's own name for the port, which leads to the edge and to the machine of the lobby alike. In
 * development the address is given instead: native programs do not know the names under localhost.
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
  // A lobby's own name is certified by a wildcard only; this one can be ordered as well.
  const certified = address ?? rawPortsHost(config.domains, lobby.region)
  return { host, hostname, port, is_tls: true, url: `tls://${certified}:${port}` }
}
