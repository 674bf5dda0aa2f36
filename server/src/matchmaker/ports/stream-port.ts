// How players are told a tcp, tcp_tls or udp port of a lobby: at a number of the edge's, or as the range of the machine's own.
import type { findLobby, PortConfig, ResponseOf } from '@muster/contract'
import type { Config } from '../../config.ts'
import type { Lobby } from '../book/lobby.ts'

type JoinPort = ResponseOf<typeof findLobby>['ports'][string]

/** Native programs do not know the names under localhost, and in development the edge listens on loopback only. */
const DEVELOPMENT_HOST = '127.0.0.1'

/** `lobby_host` is the lobby's own name for the port, which leads to the edge and to the machine of the lobby alike. */
export function streamPort(config: Config, lobby: Lobby, item: PortConfig, lobby_host: string): JoinPort {
  const { name, protocol, port_range } = item
  const hostname = config.mode === 'production' ? lobby_host : DEVELOPMENT_HOST
  if (port_range !== null) {
    return { hostname, port_range, is_tls: false, url: `${protocol}://${hostname}:${port_range.min}` }
  }
  const given = lobby.edge_ports.find((edge_port) => edge_port.name === name)
  if (given === undefined) throw new Error(`the lobby ${lobby.lobby_id} has no number for its port ${name}`)
  const { port } = given
  const host = `${hostname}:${port}`
  if (protocol !== 'tcp_tls') return { host, hostname, port, is_tls: false, url: `${protocol}://${host}` }
  // As for HTTPS: the main domain has a certificate wherever there is one at all, a lobby's own name with a wildcard only.
  const certified = config.mode === 'production' ? config.domains.main : hostname
  return { host, hostname, port, is_tls: true, url: `tls://${certified}:${port}` }
}
