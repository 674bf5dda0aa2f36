// Which certificate is shown for a name. From files that the operator keeps, and on a laptop from an authority of the
// machine's own. A name that none covers has none: nobody is ever shown the certificate of somebody else.
import type { SecureContext } from 'node:tls'
import { hasHttps } from '../config.ts'
import type { Context } from '../context.ts'
import { type Certificate, certificateFor } from './certificates/certificate.ts'
import { openFileCertificates } from './certificates/files.ts'
import { openLocalCertificates } from './certificates/local.ts'
import type { HostMeaning } from './hosts.ts'

export type Certificates = {
  /** For a canonical host; null when none covers it. */
  find: (host: string) => SecureContext | null | Promise<SecureContext | null>
  /** Whether a certificate from the operator's files covers the host now. */
  covers: (host: string) => boolean
  /** Of a laptop: what is shown to who asks for its address. Null elsewhere. */
  own: () => Certificate | null
  close: () => void
}

/** Null: nothing says where certificates would come from. Throws a StartError when they cannot be had. */
export async function createCertificates(
  ctx: Context,
  meaningOf: (host: string) => HostMeaning | null,
): Promise<Certificates | null> {
  if (!hasHttps(ctx.config)) return null
  const { certificates_dir } = ctx.config
  const files = certificates_dir === null ? null : await openFileCertificates(ctx, certificates_dir)
  const local = ctx.config.mode === 'development' ? await openLocalCertificates(ctx) : null
  const inFiles = (host: string) => (files === null ? null : certificateFor(files.current(), host, ctx.now()))

  return {
    find(host) {
      const found = inFiles(host)
      if (found !== null) return found.context
      if (local === null || meaningOf(host) === null) return null
      const own = local.find(host)
      return own instanceof Promise ? own.then(({ context }) => context) : (own?.context ?? null)
    },
    covers: (host) => inFiles(host) !== null,
    own: () => local?.own() ?? null,
    close: () => files?.close(),
  }
}
