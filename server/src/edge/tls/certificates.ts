// Which certificate is shown for a name. From files that the operator keeps, from those that were ordered by ACME, and on a
// laptop from an authority of the machine's own. A name that none covers has none: nobody is ever shown the certificate of somebody else.
// Raw ports have a choice of their own. What is behind them was uploaded by strangers, so they show certificates of the job
// domain's names only: a browser then sends them no cookie of the main domain, a site or a custom domain.
import type { SecureContext } from 'node:tls'
import { hasHttps, wildcardNames, wildcardOf } from '../../config/addresses.ts'
import type { Config } from '../../config/config.ts'
import type { Context } from '../../context.ts'
import { type HostMeaning, isRawPortHost } from '../hosts.ts'
import type { Lookups } from '../lookups.ts'
import { type Certificate, type CertificatesByName, certificateFor, isValid } from './certificate.ts'
import { openFileCertificates } from './files.ts'
import { createStoredCertificates, type StoredCertificates } from './stored.ts'

export type CertificateChoice = {
  /** For a canonical host; null when none covers it. `source` asks; see lookups.ts, as which it throws. */
  find: (host: string, source: string) => SecureContext | null | Promise<SecureContext | null>
  /** Of a laptop: what is shown to who asks for its address. Null elsewhere. */
  own: Certificate | null
}

export type Certificates = {
  /** Of the HTTPS port. */
  https: CertificateChoice
  /** Of the raw ports that speak TLS. */
  raw_ports: CertificateChoice
  /** Whether one covers the host now, as far as is known. What is not is looked up meanwhile, and ordered. */
  covers: (host: string, source: string) => boolean
  close: () => void
}

/** Null: nothing says where certificates would come from. Throws a StartError when they cannot be had. */
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
  // Loaded on a laptop only: a restart of the edge must not wait for what makes certificates.
  const local = ctx.config.mode === 'development' ? await (await import('./local.ts')).openLocalCertificates(ctx) : null
  const stored = ctx.config.acme === null ? null : createStoredCertificates(ctx, lookups)
  const wildcards = new Set(wildcardNames(ctx.config))
  /** The names under which a certificate for the host may be stored. A lobby lives too short for an order of its own. */
  const storedNames = (host: string): string[] => {
    const wildcard = wildcardOf(host)
    return [...(wildcards.has(wildcard) ? [wildcard] : []), ...(meaningOf(host)?.kind === 'lobby' ? [] : [host])]
  }
  const inFiles = (known: CertificatesByName | undefined, host: string) =>
    known === undefined ? null : certificateFor(known, host, ctx.now())

  /** The first of the names that has a certificate now. */
  function findStored(
    of_stored: StoredCertificates,
    [name, ...others]: readonly string[],
    source: string,
  ): ReturnType<CertificateChoice['find']> {
    if (name === undefined) return null
    const found = of_stored.find(name, source)
    if (found instanceof Promise)
      return found.then((item) => validOf(ctx, item) ?? findStored(of_stored, others, source))
    return validOf(ctx, found) ?? findStored(of_stored, others, source)
  }

  function findMade(host: string, source: string): ReturnType<CertificateChoice['find']> {
    if (stored !== null) return findStored(stored, storedNames(host), source)
    if (local === null || meaningOf(host) === null) return null
    const own = local.find(host)
    return own instanceof Promise ? own.then(({ context }) => context) : (own?.context ?? null)
  }

  return {
    https: {
      find: (host, source) => inFiles(files?.all(), host)?.context ?? findMade(host, source),
      own: local?.own ?? null,
    },
    raw_ports: {
      find(host, source) {
        if (!isRawPortHost(meaningOf(host))) return null
        return inFiles(files?.ofRawPorts(), host)?.context ?? findMade(host, source)
      },
      own: local?.own_of_raw_ports ?? null,
    },
    covers: (host, source) =>
      inFiles(files?.all(), host) !== null ||
      (stored !== null && storedNames(host).some((name) => validOf(ctx, stored.peek(name, source)) !== null)),
    close() {
      files?.close()
      stored?.close()
    },
  }
}

/** On a laptop the main domain is the job domain, and the CDN's is below it. */
function isJobName({ main, cdn, job }: Config['domains'], name: string): boolean {
  const isWithin = (domain: string) => name === domain || name.endsWith(`.${domain}`)
  return isWithin(job) && name !== main && !isWithin(cdn)
}

function validOf(ctx: Context, certificate: Certificate | null): SecureContext | null {
  return certificate !== null && isValid(certificate, ctx.now()) ? certificate.context : null
}
