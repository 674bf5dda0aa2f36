// The private keys of stored certificates. The platform's own machine opens their seals; the edge of a node that has joined asks the
// platform for each, because the key of the seals also opens the secrets of games.
import { postOverLink } from '../wire/link-call.ts'
import { CERTIFICATE_KEYS } from './sealed-columns.ts'
import type { Seals } from './seals.ts'

export type CertificateKeys = {
  /** Returns the key, PEM. `sealed`: as it is stored. */
  open: (host: string, sealed: string) => Promise<string>
}

export function ownCertificateKeys(seals: Seals): CertificateKeys {
  return { open: async (host, sealed) => seals.open(CERTIFICATE_KEYS.purposeOf(host), sealed) }
}

/** `link`: the unix socket of the link. */
export function linkedCertificateKeys(link: string): CertificateKeys {
  return {
    async open(host) {
      const refusal = 'The platform gives no key for the certificate'
      const call = { path: '/certificate-keys', body: { host }, refusal }
      return (await postOverLink<{ key: string }>(link, call)).key
    },
  }
}
