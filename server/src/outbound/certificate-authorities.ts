// Certificate authorities that outgoing calls trust: those that come with Node, and those of the settings. What the
// environment of a process adds (NODE_EXTRA_CA_CERTS, a system's own store) is for others.
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls'

/** Returns the context, which the first call makes: reading all authorities takes some milliseconds. */
export type CertificateAuthorities = () => SecureContext

export function readCertificateAuthorities(authorities: readonly string[]): CertificateAuthorities {
  let context: SecureContext | undefined
  return () => {
    context ??= createSecureContext({ ca: [...rootCertificates, ...authorities], minVersion: 'TLSv1.2' })
    return context
  }
}
