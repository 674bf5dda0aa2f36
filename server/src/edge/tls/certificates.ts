// Which certificate is shown for a name. From files that the operator keeps, from those that were ordered by ACME, and on a
// laptop from an authority of the machine's own. A name that none covers has none: nobody is ever shown the certificate of somebody else.
import type { SecureContext } from 'node:tls'
import { hasHttps } from '../../config.ts'
import type { Context } from '../../context.ts'
import type { HostMeaning } from '../hosts.ts'
import type { Lookups } from '../lookups.ts'
import { type Certificate, certificateFor, isValid } from './certificate.ts'
import { openFileCertificates } from './files.ts'
import { createStoredCertificates } from './stored.ts'

export type Certificates = {
  /** For a canonical host; null when none covers it. `source` asks; see lookups.ts, as which it throws. */
  find: (host: string, source: string) => SecureContext | null | Promise<SecureContext | null>
  /** Whether one covers the host now, as far as is known. What is not is looked up meanwhile, and ordered. */
  covers: (host: string, source: string) => boolean
  /** Of a laptop: what is shown to who asks for its address. Null elsewhere. */
  own: () => Certificate | null
  close: () => void
}

/** Null: nothing says where certificates would come from. Throws a StartError when they cannot be had. */
export async function createCertificates(
  ctx: Context,
  { meaningOf, lookups }: { meaningOf: (host: string) => HostMeaning | null; lookups: Lookups },
): Promise<Certificates | null> {
  if (!hasHttps(ctx.config)) return null
  const { certificates_dir } = ctx.config
  const files = certificates_dir === null ? null : await openFileCertificates(ctx, certificates_dir)
  // Loaded on a laptop only: a restart of the edge must not wait for what makes certificates.
  const local = ctx.config.mode === 'development' ? await (await import('./local.ts')).openLocalCertificates(ctx) : null
  const stored = ctx.config.acme === null ? null : createStoredCertificates(ctx, lookups)
  // A lobby lives too short for an order, and there are too many: theirs is a wildcard from files.
  const isOrdered = (host: string) => meaningOf(host)?.kind !== 'lobby'
  const inFiles = (host: string) => (files === null ? null : certificateFor(files.current(), host, ctx.now()))

  return {
    find(host, source) {
      const found = inFiles(host)
      if (found !== null) return found.context
      if (stored !== null && isOrdered(host)) {
        const ordered = stored.find(host, source)
        if (ordered instanceof Promise) return ordered.then((item) => validOf(ctx, item))
        return validOf(ctx, ordered)
      }
      if (local === null || meaningOf(host) === null) return null
      const own = local.find(host)
      return own instanceof Promise ? own.then(({ context }) => context) : (own?.context ?? null)
    },
    covers: (host, source) =>
      inFiles(host) !== null ||
      (stored !== null && isOrdered(host) && validOf(ctx, stored.peek(host, source)) !== null),
    own: () => local?.own() ?? null,
    close() {
      files?.close()
      stored?.close()
    },
  }
}

function validOf(ctx: Context, certificate: Certificate | null): SecureContext | null {
  return certificate !== null && isValid(certificate, ctx.now()) ? certificate.context : null
}
