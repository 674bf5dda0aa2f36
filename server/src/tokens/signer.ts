// Signs and verifies with one key of the ring. The header of a token must equal the header of a key exactly. So the
// algorithm in the header is compared, and never chosen by the token.
import assert from 'node:assert'
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  sign,
  timingSafeEqual,
  verify,
} from 'node:crypto'
import type { TokenAlgorithm } from './claims.ts'
import type { RingKey } from './ring.ts'

export type Signer = {
  algorithm: TokenAlgorithm
  /** base64url of the header's JSON. */
  header: string
  /** The signature over the text, base64url. */
  sign: (text: string) => string
  /** True only for the exact text of a signature that `sign` makes. */
  verify: (text: string, signature: string) => boolean
}

export function createEd25519Signer(key: RingKey): Signer {
  const private_key = createPrivateKey({ key: Buffer.from(key.secret, 'base64url'), format: 'der', type: 'pkcs8' })
  assert(private_key.asymmetricKeyType === 'ed25519', `The key ${key.kid} of the ring is not an Ed25519 key.`)
  const public_key = createPublicKey(private_key)
  return {
    algorithm: 'ed25519',
    header: headerOf('EdDSA', key.kid),
    sign: (text) => sign(null, Buffer.from(text), private_key).toString('base64url'),
    verify: (text, signature) => {
      const bytes = fromBase64url(signature)
      return bytes !== null && verify(null, Buffer.from(text), public_key, bytes)
    },
  }
}

export function createHmacSigner(key: RingKey): Signer {
  const secret_key = createSecretKey(key.secret, 'base64url')
  const mac = (text: string): string => createHmac('sha256', secret_key).update(text).digest('base64url')
  return {
    algorithm: 'hmac-sha256',
    header: headerOf('HS256', key.kid),
    sign: mac,
    verify: (text, signature) => {
      const expected = Buffer.from(mac(text))
      const given = Buffer.from(signature)
      return given.length === expected.length && timingSafeEqual(given, expected)
    },
  }
}

/** Null unless the text is the canonical encoding of its bytes, because Buffer skips invalid characters. */
export function fromBase64url(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : null
}

function headerOf(alg: string, kid: string): string {
  return Buffer.from(JSON.stringify({ typ: 'JWT', alg, kid })).toString('base64url')
}
