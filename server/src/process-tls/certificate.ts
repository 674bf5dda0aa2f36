// Certificates of the platform's own processes. Their authority has no file: its key is derived from the key ring, which is the
// same on all machines of a platform. So each process certifies itself, and recognises the others. A node that has joined does
// not have the ring, and no certificate of this authority. Loaded when it is first needed, because its library loads slowly.
import { createECDH } from 'node:crypto'
import { ExtendedKeyUsage } from '@peculiar/x509'
import type { Keys } from '../tokens/keys.ts'
import { CERTIFICATE_LIFETIME_MS, nameOfProcess, type ProcessRole } from './names.ts'
import { certify, certifyItself, KEY_ALGORITHM, newKeyPair, type PrivateAuthority, pemOf } from './private-authority.ts'

/** PEM. `ca`: the certificate of the authority. */
export type ProcessCertificate = { cert: string; key: string; ca: string }

const PURPOSE = 'process-authority'
/** A MAC is no key of P-256 once in 2^32. Then the next one is used. */
const KEYS_MAX = 8

/** Certifies a new key for a process of the role. Only matchmakers may act as servers to other machines. */
export async function issueProcessCertificate(
  keys: Pick<Keys, 'mac'>,
  role: ProcessRole,
  now_ms: number,
): Promise<ProcessCertificate> {
  const authority = await deriveAuthority(keys, now_ms)
  const own = await newKeyPair()
  const { clientAuth, serverAuth } = ExtendedKeyUsage
  const name = nameOfProcess(role)
  const cert = await certify(authority, {
    common_name: name,
    alternative_names: [{ type: 'dns', value: name }],
    public_key: own.publicKey,
    usages: role === 'edge' ? [clientAuth] : [clientAuth, serverAuth],
    now_ms,
    lifetime_ms: CERTIFICATE_LIFETIME_MS,
  })
  return { cert, key: pemOf(own.privateKey), ca: pemOf(authority.certificate) }
}

async function deriveAuthority(keys: Pick<Keys, 'mac'>, now_ms: number): Promise<PrivateAuthority> {
  const { d, x, y } = derivePoint(keys)
  const point = { kty: 'EC', crv: 'P-256', x, y }
  const privateKey = await crypto.subtle.importKey('jwk', { ...point, d }, KEY_ALGORITHM, false, ['sign'])
  const publicKey = await crypto.subtle.importKey('jwk', point, KEY_ALGORITHM, true, ['verify'])
  const subject = 'CN=Muster processes, O=Muster'
  const certificate = await certifyItself({ privateKey, publicKey }, { subject, extensions: [], now_ms })
  return { certificate, key: privateKey }
}

/** The numbers of a key of P-256, base64url. */
function derivePoint(keys: Pick<Keys, 'mac'>): { d: string; x: string; y: string } {
  const BYTES = 32
  for (let number = 0; number < KEYS_MAX; number++) {
    const secret = keys.mac(PURPOSE, String(number))
    const curve = createECDH('prime256v1')
    try {
      curve.setPrivateKey(secret)
    } catch {
      continue
    }
    const point = curve.getPublicKey()
    const text = (from: number): string => point.subarray(from, from + BYTES).toString('base64url')
    return { d: secret.toString('base64url'), x: text(1), y: text(1 + BYTES) }
  }
  throw new Error('No key of the authority could be derived.')
}
