// Why TLS ended before a byte was sent: what is wrong with the certificate of the server, in words for an operator.
import type { PeerCertificate } from 'node:tls'

/**
 * `no_tls`: the server does not speak TLS there. `what`: continues a sentence that begins with the certificate, or with the
 * server where there is none.
 */
export type CertificateFault = { kind: 'other_name' | 'outdated' | 'untrusted' | 'no_tls'; what: string }

type TlsError = NodeJS.ErrnoException & { cert?: PeerCertificate }

const UNTRUSTED = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'INVALID_CA',
])

/** Null: the error is another one. `host`: as the client asked for it. */
export function certificateFault(error: unknown, host: string): CertificateFault | null {
  if (!(error instanceof Error)) return null
  const { code = '', cert } = error as TlsError
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const names = cert?.subjectaltname?.replaceAll(/\b(?:DNS|IP Address):/g, '') ?? cert?.subject?.CN ?? 'no name'
    return { kind: 'other_name', what: `is for ${names}, not for ${host}` }
  }
  if (code === 'CERT_HAS_EXPIRED') return { kind: 'outdated', what: 'has expired' }
  if (code === 'CERT_NOT_YET_VALID') return { kind: 'outdated', what: 'is not valid yet' }
  if (UNTRUSTED.has(code)) return { kind: 'untrusted', what: `is of an authority that is not trusted (${code})` }
  if (code === 'EPROTO' && /wrong version number|packet length too long/i.test(error.message)) {
    return { kind: 'no_tls', what: 'does not speak TLS' }
  }
  return null
}
