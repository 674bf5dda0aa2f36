// Requests to servers that the operator's settings name, which may be in any network.
import type { Config } from '../config/config.ts'
import { readCertificateAuthorities } from '../outbound/certificate-authorities.ts'
import { createDns } from '../outbound/dns.ts'
import { parseNetworks } from '../outbound/public-address.ts'
import { type Fetched, safeFetch } from '../outbound/safe-fetch.ts'

/** From the look-up of the name to the last byte. */
const RESPONSE_MS_MAX = 8_000
/** Bytes of a response that are read. */
const RESPONSE_BYTES_MAX = 256 * 1024

/** Throws a FetchFailure. */
export function askOperatorsServer(
  { dns_servers, fetch_authorities }: Config,
  request: { url: string; method: 'GET' | 'HEAD' },
): Promise<Fetched> {
  return safeFetch(
    { ...request, timeout_ms: RESPONSE_MS_MAX, body_bytes_max: RESPONSE_BYTES_MAX },
    {
      schemes: ['http', 'https'],
      names: createDns(dns_servers),
      private_networks: parseNetworks(['0.0.0.0/0', '::/0']),
      own_ports: [],
      trust: readCertificateAuthorities(fetch_authorities),
    },
  )
}
