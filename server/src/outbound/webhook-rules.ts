// Which addresses of game developers are called: over TLS where it matters, in the public internet but for what the
// operator allows, and never the platform's own ports.
import { serversOf } from '../text/database-url.ts'
import { parseNetworks } from './public-address.ts'
import type { FetchRules } from './safe-fetch.ts'

type Settings = {
  mode: 'development' | 'production'
  fetch_private_networks: readonly string[]
  fetch_localhost: boolean
  api_port: number
  matchmaker_ports: readonly number[]
  database_url: string | null
}

const LOOPBACK = ['127.0.0.1/32', '::1/128']

export function webhookRules(config: Settings): Omit<FetchRules, 'names'> {
  const database_ports = config.database_url === null ? [] : serversOf(config.database_url).map(({ port }) => port)
  return {
    schemes: config.mode === 'production' ? ['https'] : ['http', 'https'],
    private_networks: parseNetworks([...config.fetch_private_networks, ...(config.fetch_localhost ? LOOPBACK : [])]),
    calls_localhost: config.fetch_localhost,
    own_ports: [config.api_port, ...config.matchmaker_ports, ...database_ports],
    own_addresses: 'refused',
  }
}
