// CAA records (RFC 8659): the owner of a domain names the authorities that may certify it. The records of the domain count,
// or those of the closest domain above that has any. The authority refuses an order that they forbid, with words of its own,
// and counts it against its limits. So the platform reads them first, and names the record that is missing.
import { type Dns, DnsFailure } from '../../outbound/dns.ts'

/** Domains that are asked for one name: itself and those above it. */
const LEVELS_MAX = 16

/**
 * Why CAA records forbid a certificate of `name`, as a sentence; null: they allow it, or cannot be read. `name`: a host, or
 * `*.` and a domain. `identities`: the domains by which the authority is named in CAA records; none: it names none.
 */
export async function findCaaFault(
  names: Dns,
  name: string,
  identities: readonly string[],
  signal?: AbortSignal,
): Promise<string | null> {
  if (identities.length === 0) return null
  const is_wildcard = name.startsWith('*.')
  const labels = (is_wildcard ? name.slice(2) : name).split('.')
  for (let first = 0; first < Math.min(labels.length, LEVELS_MAX); first++) {
    const domain = labels.slice(first).join('.')
    const records = await readCaa(names, domain, signal)
    if (records === 'unknown') return null
    if (records.length > 0) return faultOf(records, { name, domain, identities, is_wildcard })
  }
  return null
}

type Caa = Awaited<ReturnType<Dns['caa']>>

/** Empty: the domain has none. */
async function readCaa(names: Dns, domain: string, signal?: AbortSignal): Promise<Caa | 'unknown'> {
  try {
    return await names.caa(domain, signal)
  } catch (error) {
    if (!(error instanceof DnsFailure)) throw error
    return error.reason === 'not_found' ? [] : 'unknown'
  }
}

type Asked = { name: string; domain: string; identities: readonly string[]; is_wildcard: boolean }

function faultOf(records: Caa, { name, domain, identities, is_wildcard }: Asked): string | null {
  const issue = records.flatMap((record) => record.issue ?? [])
  const issue_wild = records.flatMap((record) => record.issuewild ?? [])
  const is_wild_rule = is_wildcard && issue_wild.length > 0
  const rules = is_wild_rule ? issue_wild : issue
  if (rules.length === 0) return null
  const allowed = rules.map((rule) => rule.split(';', 1)[0]!.trim().toLowerCase())
  if (identities.some((identity) => allowed.includes(identity.toLowerCase()))) return null
  const named = [...new Set(allowed)].filter((authority) => authority !== '')
  const whom = named.length === 0 ? 'no authority' : `only ${named.join(', ')}`
  const record = `${domain}. CAA 0 ${is_wild_rule ? 'issuewild' : 'issue'} "${identities[0]}"`
  return `The CAA records of ${domain} allow ${whom} to certify ${name}. Add the record: ${record}`
}
