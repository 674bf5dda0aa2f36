// Which addresses of game developers are called: over TLS where it matters, in the public internet but for what the
// operator allows, and never the platform's own ports.
import { parseNetworks } from './public-address.ts'
import type { FetchRules } from './safe-fetch.ts'

type Settings = {
  mode: 'development' | 'production'
  fetch_private_networks: readonly string[]
  api_port: number
  matchmaker_port: number
}

export function webhookRules(config: Settings): Omit<FetchRules, 'names'> {
  return {
    schemes: config.mode === 'production' ? ['https'] : ['http', 'https'],
    private_networks: parseNetworks(config.fetch_private_networks),
    own_ports: [config.api_port, config.matchmaker_port],
  }
}
