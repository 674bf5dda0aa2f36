// The certificate authority of a development machine. It is created in the data folder at the first start, and certifies this
// machine's own names to clients that trust it. Its own certificate limits it to localhost and loopback addresses. So a thief
// of its key cannot certify any name of the Internet.
import { KeyObject, randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'
import { type Certificate, readCertificate } from './certificate.ts'

export type LocalAuthority = {
  /** The path of the certificate that clients must trust. */
  file: string
  /** Issues a certificate for names and addresses, valid for CERTIFICATE_LIFETIME_MS. */
  certify: (hosts: readonly LocalHost[], now_ms: number) => Promise<Certificate>
}

export type LocalHost = { type: 'dns' | 'ip'; value: string }

const SUBJECT = 'CN=Muster on this machine, O=Muster'
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const DAY_MS = 24 * 60 * 60_000
const AUTHORITY_LIFETIME_MS = 3_650 * DAY_MS
export const CERTIFICATE_LIFETIME_MS = 397 * DAY_MS
/** Clocks of a machine and of a virtual one on it differ. */
const BEFORE_NOW_MS = DAY_MS

/** Opens the authority of `folder`, or creates it. Concurrent processes get the same one. Throws when its file is damaged. */
export async function openLocalAuthority(folder: string, now_ms: number): Promise<LocalAuthority> {
  const path = join(folder, 'local-authority.pem')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const text = (await readAuthority(path)) ?? (await createAuthority(path, now_ms))
  const { certificate, key } = await parseAuthority(path, text)
  const file = join(folder, 'local-authority.crt')
  await writeFile(file, `${certificate.toString('pem')}\n`, { mode: 0o644 })

  const own = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const own_key = pemOf(own.privateKey)
  return {
    file,
    async certify(hosts, certify_ms) {
      const leaf = await X509CertificateGenerator.create({
        // OpenSSL applies the authority's name constraints to a common name that looks like a host or an address.
        subject: `CN=${hosts.find(({ type }) => type === 'dns')?.value ?? 'Muster raw ports'}`,
        issuer: certificate.subject,
        publicKey: own.publicKey,
        signingKey: key,
        signingAlgorithm: ALGORITHM,
        serialNumber: randomBytes(16).toString('hex'),
        notBefore: new Date(certify_ms - BEFORE_NOW_MS),
        notAfter: new Date(certify_ms + CERTIFICATE_LIFETIME_MS),
        extensions: [
          new BasicConstraintsExtension(false, undefined, true),
          new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
          new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
          new SubjectAlternativeNameExtension([...hosts]),
          await AuthorityKeyIdentifierExtension.create(certificate.publicKey),
        ],
      })
      return readCertificate(leaf.toString('pem'), own_key)
    },
  }
}

async function readAuthority(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** Writes key and certificate to one file, atomically: the link fails for all processes but the first. */
async function createAuthority(path: string, now_ms: number): Promise<string> {
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: SUBJECT,
    keys,
    signingAlgorithm: ALGORITHM,
    serialNumber: randomBytes(16).toString('hex'),
    notBefore: new Date(now_ms - BEFORE_NOW_MS),
    notAfter: new Date(now_ms + AUTHORITY_LIFETIME_MS),
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
      onlyThisMachine(),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  try {
    await writeFile(draft, `${pemOf(keys.privateKey)}${certificate.toString('pem')}\n`, { mode: 0o600, flush: true })
    await link(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await rm(draft, { force: true })
  }
  return readFile(path, 'utf8')
}

async function parseAuthority(path: string, text: string) {
  try {
    const [pkcs8 = new ArrayBuffer(0), der = new ArrayBuffer(0)] = PemConverter.decode(text)
    const key = await crypto.subtle.importKey('pkcs8', pkcs8, ALGORITHM, false, ['sign'])
    return { certificate: new X509Certificate(der), key }
  } catch (error) {
    throw new Error(`${path} is damaged. Remove it, and trust the new one that is made at the next start.`, {
      cause: error,
    })
  }
}

function pemOf(key: CryptoKey): string {
  return String(KeyObject.from(key).export({ type: 'pkcs8', format: 'pem' }))
}

/** Returns critical name constraints (RFC 5280, 4.2.1.10). The library has no class for them. */
function onlyThisMachine(): Extension {
  const PERMITTED = 0xa0
  const DNS = 0x82
  const ADDRESS = 0x87
  const SEQUENCE = 0x30
  const subtrees = [
    der(DNS, Buffer.from('localhost')),
    der(ADDRESS, Buffer.from([127, 0, 0, 0, 255, 0, 0, 0])),
    der(ADDRESS, Buffer.concat([Buffer.alloc(15), Buffer.from([1]), Buffer.alloc(16, 0xff)])),
  ]
  const permitted = subtrees.map((base) => der(SEQUENCE, base))
  return new Extension('2.5.29.30', true, der(SEQUENCE, der(PERMITTED, Buffer.concat(permitted))))
}

/** Encodes a value of less than 128 bytes. */
function der(tag: number, content: Buffer): Buffer<ArrayBuffer> {
  return Buffer.concat([Buffer.from([tag, content.length]), content])
}
