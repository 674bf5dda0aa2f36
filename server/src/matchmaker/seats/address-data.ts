// Opens the data about IP addresses, from the sources that the settings name.
import { join } from 'node:path'
import { type IpIntelligence, openIpIntelligence } from '../../addresses/ip-intelligence.ts'
import { instanceName } from '../../config/processes.ts'
import type { Context } from '../../context.ts'
import { createDns } from '../../outbound/dns.ts'
import { parseNetworks } from '../../outbound/public-address.ts'

export function openAddressData({ config, trust, now, elapsed, log }: Context): IpIntelligence {
  const { folder, has_seed, feeds, feed_interval_ms } = config.ip_data
  const rules = {
    schemes: ['https', 'http'] as const,
    names: createDns(config.dns_servers),
    private_networks: parseNetworks(config.fetch_private_networks),
    own_ports: [config.api_port, ...config.matchmaker_ports],
    trust,
  }
  const own_folder = join(config.data_dir, instanceName('ip-feeds', config.process.number))
  return openIpIntelligence({
    folder,
    has_seed,
    feeds: { feeds, folder: own_folder, interval_ms: feed_interval_ms, rules },
    now,
    elapsed,
    log,
  })
}
