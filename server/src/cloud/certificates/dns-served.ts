// Whether the name servers of a zone serve a TXT record: an authority that looks too early counts a failure, and may remember
// that the record was not there.
import { setTimeout as delay } from 'node:timers/promises'
import { createDns, type Dns, DnsFailure } from '../../outbound/dns.ts'

/** With their pauses and time-outs about four minutes. */
const POLLS_MAX = 20
const PAUSE_MS_MIN = 500
/** Longest pause between two queries of the name servers. */
const PAUSE_MS_MAX = 10_000

/** A name server has several addresses, not all of which this machine may reach. */
export type ServerAddresses = { server: string; addresses: readonly string[] }

/** `servers`: the name servers to ask; none: those of the record's zone. Throws an Error that names who does not serve it. */
export async function waitUntilServed(
  names: Dns,
  servers: readonly string[],
  record: { name: string; value: string },
  { polls_max = POLLS_MAX, signal }: { polls_max?: number; signal?: AbortSignal | undefined } = {},
): Promise<void> {
  let waiting =
    servers.length > 0
      ? servers.map((server) => ({ server, addresses: [server] }))
      : await authoritativeServers(names, record.name)
  let pause_ms = PAUSE_MS_MIN
  for (let poll = 1; ; poll++) {
    const are_served = await Promise.all(waiting.map(({ addresses }) => isServed(addresses, record)))
    waiting = waiting.filter((_, index) => !are_served[index])
    if (waiting.length === 0) return
    if (poll === polls_max) break
    await delay(pause_ms, undefined, { signal })
    pause_ms = Math.min(pause_ms * 2, PAUSE_MS_MAX)
  }
  const who = waiting.map(({ server }) => server).join(', ')
  throw new Error(`The TXT record of ${record.name} is not served by ${who} (asked ${polls_max} times).`)
}

/** The name servers of the closest zone above the name. */
export async function authoritativeServers(names: Dns, name: string): Promise<ServerAddresses[]> {
  const labels = name.split('.')
  for (let first = 0; first < labels.length - 1; first++) {
    const servers = await orNone(names.nameServers(labels.slice(first).join('.')))
    if (servers.length === 0) continue
    return Promise.all(servers.map(async (server) => ({ server, addresses: await names.addresses(server) })))
  }
  throw new Error(`No zone of ${name} was found. MUSTER_ACME_DNS_CHECK names the name servers to ask.`)
}

async function isServed(
  addresses: readonly string[],
  { name, value }: { name: string; value: string },
): Promise<boolean> {
  const found = await Promise.all(addresses.map((address) => createDns([address]).texts(name).catch(ignoreDnsFailure)))
  return found.some((values) => values?.includes(value) === true)
}

async function orNone(query: Promise<string[]>): Promise<string[]> {
  try {
    return await query
  } catch (error) {
    if (error instanceof DnsFailure && error.reason === 'not_found') return []
    throw error
  }
}

/** It is asked again. */
function ignoreDnsFailure(error: unknown): null {
  if (error instanceof DnsFailure) return null
  throw error
}
