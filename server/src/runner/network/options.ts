// Which networks lobbies get, by the settings.
import { isIPv4 } from 'node:net'
import type { Config } from '../../config/config.ts'
import type { NetworkOptions } from './lobby-networks.ts'

const LOOPBACK = '127.0.0.1'
const ALL_ADDRESSES = '0.0.0.0'

/** Null: lobbies share the network of this machine. */
export function networkOptions(
  config: Pick<Config, 'lobby_network' | 'internal_host' | 'lobby_api_port'>,
): NetworkOptions | null {
  const { lobby_network: range, internal_host, lobby_api_port: port } = config
  if (range === null) return null
  // A name is one of this machine's own addresses, and localhost by default.
  const address = isIPv4(internal_host) && internal_host !== ALL_ADDRESSES ? internal_host : LOOPBACK
  return { range, platform: { address, port } }
}
