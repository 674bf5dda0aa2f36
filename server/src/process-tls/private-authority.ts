// A certificate authority of our own: its key and its certificate are in one file, made at first use.
import { KeyObject, randomBytes } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsageExtension,
  type Extension,
  type JsonGeneralName,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'
import { placeFile } from './place-file.ts'

export type PrivateAuthority = { certificate: X509Certificate; key: CryptoKey }

export type AuthorityFile = {
  path: string
  subject: string
  /** Beside those of every authority that certifies no other authority. */
  extensions: readonly Extension[]
  /** What an operator does when the file is damaged: a sentence. */
  remedy: string
}

export type Leaf = {
  common_name: string
  alternative_names: readonly JsonGeneralName[]
  public_key: CryptoKey
  /** `ExtendedKeyUsage`: of a server, of a client, or of both. */
  usages: readonly string[]
  now_ms: number
  lifetime_ms: number
}

export const KEY_ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
export const DAY_MS = 24 * 60 * 60_000
/** Lifetime of an authority's own certificate. */
export const AUTHORITY_LIFETIME_MS = 3_650 * DAY_MS
/** How long before its issue a certificate begins to be valid: clocks of machines differ. */
const BEFORE_NOW_MS = DAY_MS

/** Opens the authority, or makes it. Concurrent processes get the same one. Throws when its file is damaged. */
export async function openPrivateAuthority(file: AuthorityFile, now_ms: number): Promise<PrivateAuthority> {
  await mkdir(dirname(file.path), { recursive: true, mode: 0o700 })
  const text = (await readIfThere(file.path)) ?? (await create(file, now_ms))
  try {
    const [pkcs8 = new ArrayBuffer(0), der = new ArrayBuffer(0)] = PemConverter.decode(text)
    const key = await crypto.subtle.importKey('pkcs8', pkcs8, KEY_ALGORITHM, false, ['sign'])
    return { certificate: new X509Certificate(der), key }
  } catch (error) {
    throw new Error(`${file.path} is damaged. ${file.remedy}`, { cause: error })
  }
}

/** Returns the certificate of one name's key, PEM. It is valid from a day before `now_ms`. */
export async function certify({ certificate, key }: PrivateAuthority, leaf: Leaf): Promise<string> {
  const made = await X509CertificateGenerator.create({
    subject: `CN=${leaf.common_name}`,
    issuer: certificate.subject,
    publicKey: leaf.public_key,
    signingKey: key,
    ...parametersFor(leaf.now_ms, leaf.lifetime_ms),
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([...leaf.usages]),
      new SubjectAlternativeNameExtension([...leaf.alternative_names]),
      await AuthorityKeyIdentifierExtension.create(certificate.publicKey),
    ],
  })
  return pemOf(made)
}

/** Returns the certificate of an authority with these keys. */
export async function certifyItself(
  keys: { publicKey: CryptoKey; privateKey: CryptoKey },
  { subject, extensions, now_ms }: { subject: string; extensions: readonly Extension[]; now_ms: number },
): Promise<X509Certificate> {
  return X509CertificateGenerator.createSelfSigned({
    name: subject,
    keys,
    ...parametersFor(now_ms, AUTHORITY_LIFETIME_MS),
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
      ...extensions,
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
}

export function newKeyPair(): Promise<{ publicKey: CryptoKey; privateKey: CryptoKey }> {
  return crypto.subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify'])
}

/** PEM, with a line break at its end. */
export function pemOf(item: X509Certificate | CryptoKey): string {
  if (item instanceof X509Certificate) return `${item.toString('pem')}\n`
  return String(KeyObject.from(item).export({ type: 'pkcs8', format: 'pem' }))
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

async function create({ path, subject, extensions }: AuthorityFile, now_ms: number): Promise<string> {
  const keys = await newKeyPair()
  const certificate = await certifyItself(keys, { subject, extensions, now_ms })
  placeFile(path, `${pemOf(keys.privateKey)}${pemOf(certificate)}`)
  return readFile(path, 'utf8')
}

function parametersFor(now_ms: number, lifetime_ms: number) {
  return {
    signingAlgorithm: KEY_ALGORITHM,
    serialNumber: randomBytes(16).toString('hex'),
    notBefore: new Date(now_ms - BEFORE_NOW_MS),
    notAfter: new Date(now_ms + lifetime_ms),
  }
}
