// The DNS records of a platform with domains of its own: the main host, any site and any lobby.
import { networkInterfaces } from 'node:os'
import { lobbyWildcard } from '../config/addresses.ts'
import type { Config } from '../config/config.ts'
import { createDns, DnsFailure } from '../outbound/dns.ts'
import { type Finding, failed, ok, skipped, warning } from './finding.ts'

/** A label that no game has: it shows whether the wildcard record exists. */
const PROBE_LABEL = 'muster-doctor'
/** In the remedy, where this machine has no public address. */
const ADDRESS_WORD = 'ADDRESS'

export async function examineNames(config: Config): Promise<Finding[]> {
  if (config.mode === 'development') return [skipped('DNS', 'localhost needs no records')]
  const { domains, regions } = config
  const dns = createDns(config.dns_servers)
  const records = [domains.main, `*.${domains.cdn}`, ...regions.map(({ name }) => lobbyWildcard(domains, name))]
  const own = ownAddresses()
  const looked_up = records.map(async (record): Promise<Finding> => {
    const name = record.replace('*', PROBE_LABEL)
    const remedy = `add to the zone: ${record}. 300 IN A ${own[0] ?? ADDRESS_WORD}`
    try {
      const addresses = await dns.addresses(name)
      if (addresses.some((address) => own.includes(address))) return ok('DNS', `${record} is ${addresses.join(', ')}`)
      const message = `${record} is ${addresses.join(', ')}, which is no address of this machine.`
      return warning('DNS', message, `dig +short ${name}    (right behind a load balancer or address translation)`)
    } catch (error) {
      if (error instanceof DnsFailure) return failed('DNS', error.message, remedy)
      throw error
    }
  })
  return Promise.all(looked_up)
}

/** The addresses of the machine's network interfaces, without loopback and link-local ones. */
function ownAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
    .map(({ address }) => address)
}
