// Certificates in development: every host of the platform under localhost gets its own, issued by the machine's authority at
// its first use. A wildcard is not possible: clients refuse one directly below a top-level name.
import { join } from 'node:path'
import type { Context } from '../../context.ts'
import { BoundedMap } from '../../flow/bounded-map.ts'
import { LOCAL_CERTIFICATES_MAX } from '../limits.ts'
import { type Certificate, isValid } from './certificate.ts'
import { CERTIFICATE_LIFETIME_MS, type LocalHost, openLocalAuthority } from './local-authority.ts'

export type LocalCertificates = {
  /** For localhost and its addresses. */
  own: Certificate
  /** For the address of raw ports, and for no name. */
  own_of_raw_ports: Certificate | null
  /** Returns null for a name that is not under localhost. */
  find: (host: string) => Certificate | null | Promise<Certificate>
}

const OWN: readonly LocalHost[] = [
  { type: 'dns', value: 'localhost' },
  { type: 'ip', value: '127.0.0.1' },
  { type: 'ip', value: '::1' },
]

export async function openLocalCertificates(ctx: Context): Promise<LocalCertificates> {
  const authority = await openLocalAuthority(join(ctx.config.data_dir, 'keys'), ctx.now())
  const known = new BoundedMap<string, Certificate>(LOCAL_CERTIFICATES_MAX)
  const making = new Map<string, Promise<Certificate>>()
  const own = await authority.certify(OWN, ctx.now())
  const { host: raw_address } = ctx.config.edge_ports
  const own_of_raw_ports =
    raw_address === null ? null : await authority.certify([{ type: 'ip', value: raw_address }], ctx.now())

  async function make(host: string): Promise<Certificate> {
    try {
      const made = await authority.certify([{ type: 'dns', value: host }], ctx.now())
      known.set(host, made)
      return made
    } finally {
      making.delete(host)
    }
  }

  return {
    own,
    own_of_raw_ports,
    find(host) {
      if (host === 'localhost') return own
      if (!host.endsWith('.localhost')) return null
      const before = known.get(host)
      // A certificate is replaced in the last third of its lifetime.
      if (before !== undefined && isValid(before, ctx.now() + CERTIFICATE_LIFETIME_MS / 3)) return before
      const under_way = making.get(host)
      if (under_way !== undefined) return under_way
      const made = make(host)
      making.set(host, made)
      return made
    },
  }
}
