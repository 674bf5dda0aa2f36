// A certificate with its key, ready for a handshake, and the choice of the certificate that covers a name.
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContext, type SecureVersion } from 'node:tls'

export const TLS_VERSION_MIN: SecureVersion = 'TLSv1.2'

export type Certificate = {
  /** DNS names, in lower case; `*.` stands for exactly one label. */
  names: readonly string[]
  valid_from_ms: number
  expire_ms: number
  /** PEM: the certificate first, then its intermediate certificates. */
  chain: string
  key: string
  context: SecureContext
}

/** One of a certificate's alternative names, as node:crypto writes them. */
const DNS_NAME = /^DNS:((?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)*)$/i

/** `chain` and `key` are PEM. Throws an Error when they are not, or do not belong together. */
export function readCertificate(chain: string, key: string): Certificate {
  const own = new X509Certificate(chain)
  if (!own.checkPrivateKey(createPrivateKey(key))) throw new Error('The key does not belong to the certificate.')
  return {
    names: namesOf(own),
    valid_from_ms: own.validFromDate.getTime(),
    expire_ms: own.validToDate.getTime(),
    chain,
    key,
    context: createSecureContext({ cert: chain, key, minVersion: TLS_VERSION_MIN }),
  }
}

/** Returns the DNS names. The subject's common name is not one of them (RFC 9525). */
function namesOf(certificate: X509Certificate): string[] {
  return (certificate.subjectAltName ?? '').split(', ').flatMap((item) => {
    const name = DNS_NAME.exec(item)?.[1]
    return name === undefined ? [] : [name.toLowerCase()]
  })
}

export type CertificatesByName = ReadonlyMap<string, Certificate>

/** Returns the certificate for each name: of two for the same name, the one that expires later. */
export function byName(certificates: Iterable<Certificate>): CertificatesByName {
  const found = new Map<string, Certificate>()
  for (const certificate of certificates) {
    for (const name of certificate.names) {
      const other = found.get(name)
      if (other === undefined || other.expire_ms < certificate.expire_ms) found.set(name, certificate)
    }
  }
  return found
}

/** Returns the certificate for a canonical host; null when no valid one covers it. */
export function certificateFor(known: CertificatesByName, host: string, now_ms: number): Certificate | null {
  const parent = host.indexOf('.')
  const candidates = [known.get(host), parent === -1 ? undefined : known.get(`*${host.slice(parent)}`)]
  return candidates.find((item) => item !== undefined && isValid(item, now_ms)) ?? null
}

export function isValid(certificate: Certificate, now_ms: number): boolean {
  return certificate.valid_from_ms <= now_ms && now_ms < certificate.expire_ms
}
