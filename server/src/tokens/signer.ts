// One key of the ring at work. Its header is the text that tokens made with it carry, and the only one by which it is
// found again: what a token says about its algorithm is compared, never obeyed.
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
  /** False for every signature but those that `sign` makes, in exactly that spelling. */
  verify: (text: string, signature: string) => boolean
}

export function createEd25519Signer(key: RingKey): Signer {
  const privateKey = createPrivateKey({ key: Buffer.from(key.secret, 'base64url'), format: 'der', type: 'pkcs8' })
  assert(privateKey.asymmetricKeyType === 'ed25519', `The key ${key.kid} of the ring is not an Ed25519 key.`)
  const publicKey = createPublicKey(privateKey)
  return {
    algorithm: 'ed25519',
    header: headerOf('EdDSA', key.kid),
    sign: (text) => sign(null, Buffer.from(text), privateKey).toString('base64url'),
    verify: (text, signature) => {
      const bytes = fromBase64url(signature)
      return bytes !== null && verify(null, Buffer.from(text), publicKey, bytes)
    },
  }
}

export function createHmacSigner(key: RingKey): Signer {
  const secretKey = createSecretKey(key.secret, 'base64url')
  const mac = (text: string): string => createHmac('sha256', secretKey).update(text).digest('base64url')
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

/** Null unless the text is the one spelling of its bytes: Buffer alone skips what it does not know. */
export function fromBase64url(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : null
}

function headerOf(alg: string, kid: string): string {
  return Buffer.from(JSON.stringify({ typ: 'JWT', alg, kid })).toString('base64url')
}
