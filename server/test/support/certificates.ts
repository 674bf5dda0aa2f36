// Certificates for tests, of an authority that a test makes: good ones and bad ones.
import { KeyObject, randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  type PublicKeyType,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509'

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const HOUR_MS = 3_600_000

export type TestCertificate = { cert: string; key: string }
export type TestAuthority = {
  /** PEM, to be trusted. */
  cert: string
  issue: (names: readonly string[], options?: { from_ms?: number; until_ms?: number }) => Promise<TestCertificate>
  /** For a key of somebody else; PEM. */
  sign: (
    names: readonly string[],
    key: PublicKeyType,
    options?: { from_ms?: number; until_ms?: number },
  ) => Promise<string>
}

export async function makeAuthority(): Promise<TestAuthority> {
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const own = await X509CertificateGenerator.createSelfSigned({
    name: `CN=Authority of a test ${randomBytes(4).toString('hex')}`,
    keys,
    signingAlgorithm: ALGORITHM,
    serialNumber: randomBytes(16).toString('hex'),
    notBefore: new Date(Date.now() - 1_000 * HOUR_MS),
    notAfter: new Date(Date.now() + 100_000 * HOUR_MS),
    extensions: [
      new BasicConstraintsExtension(true, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
    ],
  })
  const sign: TestAuthority['sign'] = async (names, key, { from_ms = -HOUR_MS, until_ms = HOUR_MS } = {}) => {
    const made = await X509CertificateGenerator.create({
      subject: `CN=${names[0]}`,
      issuer: own.subject,
      publicKey: key,
      signingKey: keys.privateKey,
      signingAlgorithm: ALGORITHM,
      serialNumber: randomBytes(16).toString('hex'),
      notBefore: new Date(Date.now() + from_ms),
      notAfter: new Date(Date.now() + until_ms),
      extensions: [
        new SubjectAlternativeNameExtension(
          names.map((value) => ({ type: isIP(value) === 0 ? ('dns' as const) : ('ip' as const), value })),
        ),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
      ],
    })
    return `${made.toString('pem')}\n`
  }
  return {
    cert: `${own.toString('pem')}\n`,
    sign,
    async issue(names, options) {
      const leaf = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
      const key = String(KeyObject.from(leaf.privateKey).export({ type: 'pkcs8', format: 'pem' }))
      return { cert: await sign(names, leaf.publicKey, options), key }
    },
  }
}
