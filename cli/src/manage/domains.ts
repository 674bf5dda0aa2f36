// Custom domains of a namespace: the DNS record that proves a claim, and waiting until the platform has found it.
import { setTimeout as sleep } from 'node:timers/promises'
import { addNamespaceDomain, getGameNamespaceById, type ResponseOf, removeNamespaceDomain } from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { EXIT, Failure } from '../failure.ts'
import type { GlobalOptions } from '../options.ts'
import { printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { ago } from '../times.ts'
import { openNamespace } from './games.ts'
import { confirmRemoval, type RemovalOptions } from './removal.ts'

type Params = { game_id: string; namespace_id: string }
type Domain = ResponseOf<typeof getGameNamespaceById>['namespace']['config']['cdn']['domains'][number]

/** The platform checks a new claim about once a minute. */
const CHECK_PAUSE_MS = 5000
/** Width of the column of record types. */
const TYPE_WIDTH = 'CNAME'.length

export async function listDomains(terminal: Terminal, options: GlobalOptions): Promise<void> {
  const { session, params, where } = await openNamespace(terminal, options)
  const domains = await domainsOf(session.client, params)
  terminal.note(`Domains of ${where}`)
  if (terminal.is_json) return terminal.json({ domains })
  printTable(
    terminal,
    domains,
    [
      { title: 'DOMAIN', text: ({ domain }) => domain, is_whole: true },
      { title: 'STATUS', text: ({ verification_status }) => verification_status },
      { title: 'CERTIFICATE', text: ({ certificate }) => certificateText(terminal, certificate) },
      { title: 'CLAIMED', text: ({ create_ts }) => ago(terminal, create_ts) },
    ],
    'The namespace has no domain of its own. Claim one: muster domains add play.example.com',
  )
  for (const domain of domains.filter(({ verification_status }) => verification_status !== 'active')) {
    showRecords(terminal, domain)
  }
  for (const { domain, certificate } of domains) {
    if (certificate?.error !== undefined) terminal.note(`The certificate of ${domain}: ${certificate.error}`)
  }
}

/** `-`: not requested, or the domain needs none of its own. */
function certificateText(terminal: Terminal, certificate: Domain['certificate']): string {
  if (certificate === undefined) return '-'
  if (certificate.expire_ts !== undefined) return `expires ${ago(terminal, certificate.expire_ts)}`
  return certificate.error === undefined ? 'ordered' : 'failed'
}

export async function addDomain(
  terminal: Terminal,
  name: string,
  options: GlobalOptions & { wait: boolean; timeout: number },
): Promise<void> {
  const { session, params, where } = await openNamespace(terminal, options)
  const before = await domainsOf(session.client, params)
  terminal.note(`Claiming ${name} for ${where}`)
  await session.client.call(addNamespaceDomain, { params, body: { domain: name } })
  const after = await domainsOf(session.client, params)
  const known = new Set(before.map(({ domain }) => domain))
  const claimed =
    after.find(({ domain }) => !known.has(domain)) ?? after.find(({ domain }) => domain === name.toLowerCase())
  if (claimed === undefined) throw new Failure(`The namespace does not list ${name}.`)
  showRecords(terminal, claimed)
  const domain = options.wait
    ? await waitUntilActive(terminal, session.client, params, claimed, options.timeout)
    : claimed
  if (terminal.is_json) return terminal.json(domain)
  if (domain.verification_status === 'active') terminal.print(`https://${domain.domain}`)
  else terminal.note('See whether the record was found: muster domains list')
}

export async function removeDomain(
  terminal: Terminal,
  domain: string,
  options: GlobalOptions & RemovalOptions,
): Promise<void> {
  const { session, params, where } = await openNamespace(terminal, options)
  await confirmRemoval(terminal, `Remove ${domain} from ${where}?`, options)
  await session.client.call(removeNamespaceDomain, { params: { ...params, domain } })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`Removed ${domain} from ${where}.`)
}

async function domainsOf(client: Client, params: Params): Promise<Domain[]> {
  return (await client.call(getGameNamespaceById, { params })).namespace.config.cdn.domains
}

function showRecords(terminal: Terminal, { domain, verification_records, verification_errors }: Domain): void {
  const [first, ...others] = verification_records
  if (first === undefined) return
  terminal.note(`${domain} needs ${others.length === 0 ? 'this DNS record' : 'one of these DNS records'}:`)
  const width = Math.max(...verification_records.map(({ name }) => name.length))
  for (const { type, name, value } of verification_records) {
    terminal.note(`  ${`${name}.`.padEnd(width + 1)}  ${type.padEnd(TYPE_WIDTH)}  ${value}`)
  }
  for (const error of verification_errors) terminal.note(`  last check: ${error}`)
}

async function waitUntilActive(
  terminal: Terminal,
  client: Client,
  params: Params,
  claimed: Domain,
  wait_ms_max: number,
): Promise<Domain> {
  terminal.note('Waiting until the platform finds the record. Ctrl-C ends the waiting; the platform checks on.')
  const end_ms = performance.now() + wait_ms_max
  let shown = ''
  while (performance.now() < end_ms) {
    const domain = (await domainsOf(client, params)).find((one) => one.domain === claimed.domain)
    if (domain === undefined) throw new Failure(`${claimed.domain} was removed from the namespace.`)
    if (domain.verification_status === 'active') return domain
    const problem = domain.verification_errors.map((error) => `  ${error}`).join('\n')
    if (problem !== shown && problem !== '') terminal.note(problem)
    shown = problem
    await sleep(Math.min(CHECK_PAUSE_MS, wait_ms_max), undefined, { signal: terminal.signal })
  }
  throw new Failure(`The platform has not found the record of ${claimed.domain} yet.`, {
    exit_code: EXIT.timed_out,
    remedy: 'It checks for some days. See the state: muster domains list',
  })
}
