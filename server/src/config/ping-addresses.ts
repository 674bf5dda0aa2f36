// Where a client measures its latency to a region: at the edges that players of its lobbies are sent to.
import { mainUrl, rawPortsHost } from './addresses.ts'
import type { Config } from './config.ts'
import { edgeUrl, type PublicEdge } from './lobby-addresses.ts'

/** Path of the response without content, on hosts whose paths are all the platform's. */
export const PING_PATH = '/ping'
/** The same on every host but those of lobbies: a site may have a file of the other name. */
export const WELL_KNOWN_PING_PATH = '/.well-known/muster-ping'

/** `udp`: `hostname:port` of the echo. */
export type PingAddress = { url: string; udp?: string }

/** `edge`: null: any edge, at the addresses of the platform. `ping_port`: null: it has no echo. */
export function pingAddress(
  config: Config,
  region: string,
  edge: PublicEdge | null,
  ping_port: number | null,
): PingAddress {
  const is_secure = config.public_scheme === 'https' && edge?.https_port !== null
  const url = `${(edge && edgeUrl(edge, is_secure)) ?? mainUrl(config)}${PING_PATH}`
  if (ping_port === null) return { url }
  const own = config.mode === 'development' ? config.edge_ports.host : null
  return { url, udp: `${edge?.public_host ?? own ?? rawPortsHost(config.domains, region)}:${ping_port}` }
}
