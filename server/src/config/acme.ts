// Settings of certificates that are ordered by ACME, and of the DNS records that prove wildcards.
import { readFileSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { parseTsigKey, type TsigKey } from '../text/tsig-key.ts'
import { isUrl, type SettingsReader } from './read.ts'

export type Acme = {
  directory_url: string
  email: string | null
  /** Orders within three hours, at most. */
  orders_max: number
  /** Orders within a week for one registrable domain, at most. */
  domain_orders_max: number
  dns: AcmeDns | null
}

/** How wildcard certificates are proven (DNS-01). */
export type AcmeDns = {
  /** The domains below which wildcards are ordered. */
  domains: readonly AcmeDnsDomain[]
  /** A name server that accepts signed updates (RFC 2136), or a program. The key is null in a process that orders nothing. */
  publisher: { kind: 'server'; server: string; key: TsigKey | null } | { kind: 'hook'; path: string }
  /** Name servers that must serve the record before the authority checks it; empty: those of the record's zone. */
  check_servers: readonly string[]
}
const ACME_DNS_DOMAINS = ['job', 'cdn'] as const
export type AcmeDnsDomain = (typeof ACME_DNS_DOMAINS)[number]

/** Null: no certificates are ordered. `is_ordering`: whether this process places the orders. */
export function readAcme(read: SettingsReader, mode: 'development' | 'production', is_ordering: boolean): Acme | null {
  const { mistakes } = read
  const directory_url = read.textOrNull('MUSTER_ACME')
  if (directory_url !== null && !isUrl(directory_url, /^https:\/\//)) {
    mistakes.push('MUSTER_ACME must begin with https://.')
  }
  if (directory_url !== null && mode === 'development') {
    mistakes.push('MUSTER_ACME needs a MUSTER_DOMAIN_MAIN: no authority certifies localhost.')
  }
  const email = read.textOrNull('MUSTER_ACME_EMAIL')
  if (email !== null && !/^[^\s@,]+@[^\s@,]+$/.test(email)) mistakes.push('MUSTER_ACME_EMAIL is not an address.')
  const dns = readAcmeDns(read, is_ordering)
  if (dns !== null && directory_url === null) {
    mistakes.push('MUSTER_ACME_DNS_SERVER and MUSTER_ACME_DNS_HOOK need MUSTER_ACME, the authority that is asked.')
  }
  if (directory_url === null) return null
  return {
    directory_url,
    email,
    orders_max: read.number('MUSTER_ACME_ORDERS_MAX'),
    domain_orders_max: read.number('MUSTER_ACME_DOMAIN_ORDERS_MAX'),
    dns,
  }
}

/** Null: wildcard certificates are not ordered. */
function readAcmeDns(read: SettingsReader, is_ordering: boolean): AcmeDns | null {
  const { mistakes } = read
  const [server, ...more] = read.nameServers('MUSTER_ACME_DNS_SERVER')
  const key_file = read.textOrNull('MUSTER_ACME_DNS_KEY')
  const hook = read.textOrNull('MUSTER_ACME_DNS_HOOK')
  const rest = { domains: readDnsDomains(read), check_servers: read.nameServers('MUSTER_ACME_DNS_CHECK') }
  if (more.length > 0) mistakes.push('MUSTER_ACME_DNS_SERVER is one name server: the one that takes updates.')
  if ((server === undefined) !== (key_file === null)) {
    mistakes.push('MUSTER_ACME_DNS_SERVER and MUSTER_ACME_DNS_KEY need each other: updates are signed.')
  }
  if (hook !== null) {
    if (server !== undefined) mistakes.push('MUSTER_ACME_DNS_SERVER and MUSTER_ACME_DNS_HOOK exclude each other.')
    if (!isAbsolute(hook)) mistakes.push('MUSTER_ACME_DNS_HOOK must be an absolute path.')
    return { ...rest, publisher: { kind: 'hook', path: hook } }
  }
  if (server === undefined) return null
  // An edge on another machine does not need the key, and must not have it.
  const key = is_ordering && key_file !== null ? readTsigKey(key_file, mistakes) : null
  return { ...rest, publisher: { kind: 'server', server, key } }
}

function readDnsDomains(read: SettingsReader): readonly AcmeDnsDomain[] {
  const texts = read.list('MUSTER_ACME_DNS_FOR')
  const domains = texts.flatMap((text) => ACME_DNS_DOMAINS.find((item) => item === text) ?? [])
  if (domains.length < texts.length) {
    read.mistakes.push(`MUSTER_ACME_DNS_FOR must be of ${ACME_DNS_DOMAINS.join(', ')}.`)
  }
  return domains.length === 0 ? ['job'] : domains
}

function readTsigKey(path: string, mistakes: string[]): TsigKey | null {
  try {
    return parseTsigKey(readFileSync(path, 'utf8'))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    mistakes.push(
      `MUSTER_ACME_DNS_KEY names ${path}, which ${code === undefined ? message : `cannot be read (${code})`}.`,
    )
    return null
  }
}
