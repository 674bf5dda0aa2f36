// What DNS says about a claim to a custom domain. There are two proofs: a CNAME record of the domain whose target is the
// claim's own random name, and a TXT record of `_muster.DOMAIN` with the claim's own random value. Where traffic of the
// domain arrives proves nothing. A record counts only when it belongs to that very name: a wildcard answers for every
// name below it, so a random sibling is asked for too, and an alias leads into a zone that may belong to somebody else.
import { randomBytes } from 'node:crypto'
import { getDomain } from 'tldts'
import type { Context } from '../../context.ts'
import { createDns, type Dns, DnsFailure } from '../../outbound/dns.ts'

const SIBLING_BYTES = 10
const OTHER_CLAIM = /^claim-[0-9a-f]+$/

export type Claim = { domain: string; cname_label: string; txt_value: string }
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
  const found = await names.alias(domain)
  if (found !== target) {
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
  const values = await names.texts(name)
  if (!values.includes(txt_value)) return `No TXT record of ${name} has the value of this claim.`
  const of_sibling = await orNothing(names.texts(siblingIn(domain)))
  return of_sibling?.includes(txt_value) ? fromWildcard(`The TXT record of ${name}`) : null
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
async function orNothing<T>(look: Promise<T>): Promise<T | null> {
  try {
    return await look
  } catch (error) {
    if (error instanceof DnsFailure && error.reason === 'not_found') return null
    throw error
  }
}

async function inOneLine(look: () => Promise<string | null>): Promise<string | null> {
  try {
    return await look()
  } catch (error) {
    if (error instanceof DnsFailure) return error.message
    throw error
  }
}
