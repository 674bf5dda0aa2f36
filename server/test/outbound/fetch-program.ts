// Fetches each address it is given as the platform would, in a process with an environment of the test's choosing, and
// prints what came of it.

import { createDns } from '../../src/outbound/dns.ts'
import { parseNetworks } from '../../src/outbound/public-address.ts'
import { FetchFailure, safeFetch } from '../../src/outbound/safe-fetch.ts'

const [names = '', ...urls] = process.argv.slice(2)
const outcomes = await Promise.all(
  urls.map((url) =>
    safeFetch(
      { url, timeout_ms: 5_000, body_bytes_max: 100 },
      {
        schemes: ['http', 'https'],
        names: createDns([names]),
        private_networks: parseNetworks(['127.0.0.1/32']),
        own_ports: [],
      },
    ).then(
      ({ body }) => ({ body: body.toString() }),
      (error: unknown) => {
        if (error instanceof FetchFailure) return { reason: error.reason }
        throw error
      },
    ),
  ),
)
process.stdout.write(JSON.stringify(outcomes))
