// The certificate authority of the platform. It certifies the platform's end of links, and the nodes. Its key is in the key
// folder, is made at first use, and leaves the machine only in backups. The hash of its public key is in every invitation.
import { KeyObject, randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'
import { keyHash, nameOfNode } from './names.ts'
import { CERTIFICATE_LIFETIME_MS, PLATFORM_NAME } from './protocol.ts'

/** A certificate and its key, PEM. */
export type OwnCertificate = { certificate: string; key: string }

export type Authority = {
  /** The authority's own certificate, PEM. */
  certificate: string
  /** SHA-256 of its public key, base64url. */
  key_hash: string
  /** Certifies the platform's end of links, with a new key. */
  certifyPlatform: (now_ms: number) => Promise<OwnCertificate>
  /** Certifies a node. `public_key`: SPKI. Throws when it is no P-256 key. */
  certifyNode: (node_id: string, public_key: Uint8Array, now_ms: number) => Promise<string>
}

const FILE = 'platform-authority.pem'
const SUBJECT = 'CN=Muster platform, O=Muster'
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const DAY_MS = 24 * 60 * 60_000
/** Of the authority's certificate, and of the platform's end of links, whose key is in memory only. */
const LONG_LIFETIME_MS = 3_650 * DAY_MS
/** Clocks of machines differ. */
const BEFORE_NOW_MS = DAY_MS

/** Opens the authority of the key folder, or makes it. Concurrent processes get the same one. Throws when its file is damaged. */
export async function openAuthority(keys_folder: string, now_ms: number): Promise<Authority> {
  const path = join(keys_folder, FILE)
  await mkdir(keys_folder, { recursive: true, mode: 0o700 })
  const { certificate, key } = await parseAuthority(path, (await readIfThere(path)) ?? (await create(path, now_ms)))
  const certify = async (leaf: Leaf): Promise<string> => {
    const made = await X509CertificateGenerator.create({
      subject: `CN=${leaf.name}`,
      issuer: certificate.subject,
      publicKey: leaf.public_key,
      signingKey: key,
      signingAlgorithm: ALGORITHM,
      serialNumber: randomBytes(16).toString('hex'),
      notBefore: new Date(leaf.now_ms - BEFORE_NOW_MS),
      notAfter: new Date(leaf.now_ms + leaf.lifetime_ms),
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([leaf.usage]),
        new SubjectAlternativeNameExtension([{ type: 'dns', value: leaf.name }]),
        await AuthorityKeyIdentifierExtension.create(certificate.publicKey),
      ],
    })
    return `${made.toString('pem')}\n`
  }
  return {
    certificate: `${certificate.toString('pem')}\n`,
    key_hash: keyHash(new Uint8Array(certificate.publicKey.rawData)),
    async certifyPlatform(certify_ms) {
      const own = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
      const leaf = { name: PLATFORM_NAME, public_key: own.publicKey, usage: ExtendedKeyUsage.serverAuth }
      const text = await certify({ ...leaf, now_ms: certify_ms, lifetime_ms: LONG_LIFETIME_MS })
      return { certificate: text, key: pemOf(own.privateKey) }
    },
    async certifyNode(node_id, public_key, certify_ms) {
      const imported = await crypto.subtle.importKey('spki', Buffer.from(public_key), ALGORITHM, true, ['verify'])
      const leaf = { name: nameOfNode(node_id), public_key: imported, usage: ExtendedKeyUsage.clientAuth }
      return certify({ ...leaf, now_ms: certify_ms, lifetime_ms: CERTIFICATE_LIFETIME_MS })
    },
  }
}

type Leaf = { name: string; public_key: CryptoKey; usage: string; now_ms: number; lifetime_ms: number }

async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** Key and certificate are in one file, which appears whole: the link fails for all processes but the first. */
async function create(path: string, now_ms: number): Promise<string> {
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: SUBJECT,
    keys,
    signingAlgorithm: ALGORITHM,
    serialNumber: randomBytes(16).toString('hex'),
    notBefore: new Date(now_ms - BEFORE_NOW_MS),
    notAfter: new Date(now_ms + LONG_LIFETIME_MS),
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
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

async function parseAuthority(path: string, text: string): Promise<{ certificate: X509Certificate; key: CryptoKey }> {
  try {
    const [pkcs8 = new ArrayBuffer(0), der = new ArrayBuffer(0)] = PemConverter.decode(text)
    const key = await crypto.subtle.importKey('pkcs8', pkcs8, ALGORITHM, false, ['sign'])
    return { certificate: new X509Certificate(der), key }
  } catch (error) {
    throw new Error(`${path} is damaged. Restore it from a backup; without it every joined node must join again.`, {
      cause: error,
    })
  }
}

function pemOf(key: CryptoKey): string {
  return String(KeyObject.from(key).export({ type: 'pkcs8', format: 'pem' }))
}
