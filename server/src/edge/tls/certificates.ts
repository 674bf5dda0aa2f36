// Chooses the certificate for a name: from the operator's files, from those ordered by ACME, and in development from an
// authority of this machine. For a name without a certificate none is shown, never that of another name.
//
// Raw ports choose separately. The code behind them was uploaded and is not trusted, so they show only certificates for names
// of the job domain. A browser then sends them no cookie of the main domain, a site or a custom domain.
import { join } from 'node:path'
import type { SecureContext } from 'node:tls'
import { hasHttps, wildcardNames, wildcardOf } from '../../config/addresses.ts'
import type { Config } from '../../config/config.ts'
import type { Context } from '../../context.ts'
import { type HostMeaning, isRawPortHost } from '../routes/hosts.ts'
import type { Lookups } from '../routes/lookups.ts'
import { type Certificate, type CertificatesByName, certificateFor, isValid } from './certificate.ts'
import { openFileCertificates } from './files.ts'
import { createStoredCertificates, type StoredCertificates } from './stored.ts'
import { TicketKeys } from './ticket-keys.ts'

export type CertificateChoice = {
  /** Returns the certificate for a canonical host; null when none covers it. Throws the refusals of lookups.ts. */
  find: (host: string, client_key: string) => SecureContext | null | Promise<SecureContext | null>
  /** In development, the certificate for a client that connects by address. Null in production. */
  own: Certificate | null
}

export type Certificates = {
  /** For the HTTPS port. */
  https: CertificateChoice
  /** For raw ports with TLS. */
  raw_ports: CertificateChoice
  /** Whether a known certificate covers the host now. If not, it is looked up in the background, and ordered if missing. */
  covers: (host: string, client_key: string) => boolean
  /** For every TLS server of the edge. */
  tickets: TicketKeys
  close: () => void
}

/** Returns null when no certificates are configured. Throws a StartError when they cannot be read. */
export async function createCertificates(
  ctx: Context,
  { meaningOf, lookups }: { meaningOf: (host: string) => HostMeaning | null; lookups: Lookups },
): Promise<Certificates | null> {
  if (!hasHttps(ctx.config)) return null
  const { certificates_dir, domains } = ctx.config
  const files =
    certificates_dir === null
      ? null
      : await openFileCertificates(ctx, certificates_dir, (name) => isJobName(domains, name))
  // Loaded in development only, because a restart of the edge must not wait for these modules.
  const local = ctx.config.mode === 'development' ? await (await import('./local.ts')).openLocalCertificates(ctx) : null
  const stored = ctx.config.acme === null ? null : createStoredCertificates(ctx, lookups)
  const tickets = new TicketKeys(ctx, join(ctx.config.data_dir, 'edge'))
  const wildcards = new Set(wildcardNames(ctx.config))
  /** Names under which a certificate for the host may be stored. A lobby ends too soon for a certificate of its own. */
  const storedNames = (host: string): string[] => {
    const wildcard = wildcardOf(host)
    return [...(wildcards.has(wildcard) ? [wildcard] : []), ...(meaningOf(host)?.kind === 'lobby' ? [] : [host])]
  }
  const inFiles = (known: CertificatesByName | undefined, host: string) =>
    known === undefined ? null : certificateFor(known, host, ctx.now())

  function findMade(host: string, client_key: string): ReturnType<CertificateChoice['find']> {
    if (stored !== null) return findStored(ctx, stored, storedNames(host), client_key)
    if (local === null || meaningOf(host) === null) return null
    const own = local.find(host)
    return own instanceof Promise ? own.then(({ context }) => context) : (own?.context ?? null)
  }

  return {
    https: {
      find: (host, client_key) => inFiles(files?.all(), host)?.context ?? findMade(host, client_key),
      own: local?.own ?? null,
    },
    raw_ports: {
      find(host, client_key) {
        if (!isRawPortHost(meaningOf(host))) return null
        return inFiles(files?.ofRawPorts(), host)?.context ?? findMade(host, client_key)
      },
      own: local?.own_of_raw_ports ?? null,
    },
    covers: (host, client_key) =>
      inFiles(files?.all(), host) !== null ||
      (stored !== null && storedNames(host).some((name) => validOf(ctx, stored.peek(name, client_key)) !== null)),
    tickets,
    close() {
      tickets.close()
      files?.close()
      stored?.close()
    },
  }
}

/** Finds the first of the names that has a valid certificate. */
function findStored(
  ctx: Context,
  stored: StoredCertificates,
  [name, ...others]: readonly string[],
  client_key: string,
): ReturnType<CertificateChoice['find']> {
  if (name === undefined) return null
  const found = stored.find(name, client_key)
  if (found instanceof Promise)
    return found.then((item) => validOf(ctx, item) ?? findStored(ctx, stored, others, client_key))
  return validOf(ctx, found) ?? findStored(ctx, stored, others, client_key)
}

/** In development the main domain is the job domain, and the CDN's domain is below it. */
function isJobName({ main, cdn, job }: Config['domains'], name: string): boolean {
  const isWithin = (domain: string) => name === domain || name.endsWith(`.${domain}`)
  return isWithin(job) && name !== main && !isWithin(cdn)
}

function validOf(ctx: Context, certificate: Certificate | null): SecureContext | null {
  return certificate !== null && isValid(certificate, ctx.now()) ? certificate.context : null
}
