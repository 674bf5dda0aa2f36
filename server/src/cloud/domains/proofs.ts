// What DNS says about a claim to a custom domain. There are two proofs: a CNAME record of the domain whose target is the
// claim's own random name, and a TXT record of `_muster.DOMAIN` with the claim's own random value. Where traffic of the
// domain arrives proves nothing. A record counts only when it belongs to that very name: a wildcard answers for every
// name below it, so a random sibling is asked for too, and an alias leads into a zone that may belong to somebody else.
import { randomBytes } from 'node:crypto'
import { isIPv6 } from 'node:net'
import { withoutControls } from '@musterhost/contract'
import { getDomain } from 'tldts'
import type { Context } from '../../context.ts'
import { createDns, type Dns, DnsFailure } from '../../outbound/dns.ts'

const SIBLING_BYTES = 10
/** Values of a record that a line shows. */
const VALUES_SHOWN_MAX = 3
/** Characters of each. */
const VALUE_LENGTH_SHOWN_MAX = 80
const OTHER_CLAIM = /^claim-[0-9a-f]+$/

type Claim = { domain: string; cname_label: string; txt_value: string }
type DomainRecord = { type: 'CNAME' | 'TXT'; name: string; value: string }
export type ProofKind = 'cname' | 'txt'
/** By kind: null when DNS proves the claim, else what is wrong, in one line. */
export type Proofs = Record<ProofKind, string | null>

/** The records that prove the claim, any one of them; `txt_only`: a CNAME record is not enough for this claim. */
export function recordsOf(ctx: Context, claim: Claim, txt_only: boolean): DomainRecord[] {
  const txt: DomainRecord = { type: 'TXT', name: txtName(claim.domain), value: claim.txt_value }
  if (txt_only || isApex(claim.domain)) return [txt]
  return [{ type: 'CNAME', name: claim.domain, value: cnameTarget(ctx, claim) }, txt]
}

export function cnameTarget(ctx: Context, { cname_label }: Pick<Claim, 'cname_label'>): string {
  return `${cname_label}.${ctx.config.domains.cdn}`
}

/** The top of a zone has no CNAME record. */
export function isApex(domain: string): boolean {
  return getDomain(domain, { allowPrivateDomains: true }) === domain
}

export async function readProofs(ctx: Context, claim: Claim): Promise<Proofs> {
  const names = createDns(ctx.config.dns_servers)
  const [cname, txt] = await Promise.all([
    inOneLine(() => cnameError(ctx, names, claim)),
    inOneLine(() => txtError(names, claim)),
  ])
  return { cname, txt }
}

async function cnameError(ctx: Context, names: Dns, claim: Claim): Promise<string | null> {
  const { domain } = claim
  if (isApex(domain)) return `${domain} is the top of a zone, which has no CNAME record.`
  const target = cnameTarget(ctx, claim)
  const found = await orFailure(names.alias(domain))
  if (found instanceof DnsFailure) return missingAlias(names, domain, target, found)
  if (found !== target) {
    if (found.startsWith(`${target}.`)) {
      return `The CNAME record of ${domain} is ${found}: its name server appended a zone. End the target with a dot.`
    }
    const suffix = `.${ctx.config.domains.cdn}`
    const is_other = found.endsWith(suffix) && OTHER_CLAIM.test(found.slice(0, -suffix.length))
    return `The CNAME record of ${domain} is ${found}, which is ${is_other ? 'of another claim' : `not ${target}`}.`
  }
  const parent = domain.slice(domain.indexOf('.') + 1)
  const of_sibling = await orNothing(names.alias(siblingIn(parent)))
  return of_sibling === target ? fromWildcard(`The CNAME record of ${domain}`) : null
}

async function txtError(names: Dns, { domain, txt_value }: Claim): Promise<string | null> {
  const name = txtName(domain)
  const alias = await orNothing(names.alias(name))
  if (alias !== null) return `${name} is a CNAME record to ${alias}: the TXT record must be its own.`
  const values = await orFailure(names.texts(name))
  if (values instanceof DnsFailure) {
    return `${name} needs a TXT record. ${values.message}${await misplacedText(names, { domain, txt_value })}`
  }
  if (!values.includes(txt_value)) {
    const found = values.length === 0 ? '' : `: it has ${shownList(values.map((value) => `"${value}"`))}`
    return `No TXT record of ${name} has the value of this claim${found}.`
  }
  const of_sibling = await orNothing(names.texts(siblingIn(domain)))
  return of_sibling?.includes(txt_value) ? fromWildcard(`The TXT record of ${name}`) : null
}

/** What `domain` has in place of the CNAME record. */
async function missingAlias(names: Dns, domain: string, target: string, failure: DnsFailure): Promise<string> {
  const addresses = await orEmpty(names.addresses(domain))
  if (addresses.length === 0) return `${domain} needs a CNAME record to ${target}. ${failure.message}`
  const found = shownList(addresses.map((address) => `${isIPv6(address) ? 'AAAA' : 'A'} ${address}`))
  const reason = 'A CDN or name server that flattens names shows only addresses: prove the domain by the TXT record.'
  return `${domain} needs a CNAME record to ${target}, and has ${found}. ${reason}`
}

/** Where the value of the claim was found instead, as a sentence; empty when it was not found. */
async function misplacedText(names: Dns, { domain, txt_value }: Pick<Claim, 'domain' | 'txt_value'>): Promise<string> {
  const zone = getDomain(domain, { allowPrivateDomains: true }) ?? domain
  const doubled = `${txtName(domain)}.${zone}`
  const [of_domain, of_doubled] = await Promise.all([orEmpty(names.texts(domain)), orEmpty(names.texts(doubled))])
  if (of_domain.includes(txt_value)) return ` The value is at ${domain}; move it to ${txtName(domain)}.`
  if (!of_doubled.includes(txt_value)) return ''
  return ` The value is at ${doubled}: its name server appends ${zone}, so enter the name without it.`
}

/** The first values of a record, each in one line. */
function shownList(values: readonly string[]): string {
  const shown = values.slice(0, VALUES_SHOWN_MAX).map((value) => {
    const line = withoutControls(value)
    return line.length > VALUE_LENGTH_SHOWN_MAX ? `${line.slice(0, VALUE_LENGTH_SHOWN_MAX).toWellFormed()}…` : line
  })
  return `${shown.join(', ')}${values.length > shown.length ? ` and ${values.length - shown.length} more` : ''}`
}

function txtName(domain: string): string {
  return `_muster.${domain}`
}

function siblingIn(parent: string): string {
  return `muster-${randomBytes(SIBLING_BYTES).toString('hex')}.${parent}`
}

function fromWildcard(what: string): string {
  return `${what} comes from a wildcard, which proves nothing: make a record of this very name.`
}

/** Null when there is no such record. */
async function orNothing<T>(query: Promise<T>): Promise<T | null> {
  try {
    return await query
  } catch (error) {
    if (error instanceof DnsFailure && error.reason === 'not_found') return null
    throw error
  }
}

/** The failure when there is no such record. */
async function orFailure<T>(query: Promise<T>): Promise<T | DnsFailure> {
  try {
    return await query
  } catch (error) {
    if (error instanceof DnsFailure && error.reason === 'not_found') return error
    throw error
  }
}

/** For a hint: empty when the name servers know nothing, or nothing now. */
async function orEmpty(query: Promise<string[]>): Promise<string[]> {
  try {
    return await query
  } catch (error) {
    if (error instanceof DnsFailure) return []
    throw error
  }
}

async function inOneLine(query: () => Promise<string | null>): Promise<string | null> {
  try {
    return await query()
  } catch (error) {
    if (error instanceof DnsFailure) return error.message
    throw error
  }
}
