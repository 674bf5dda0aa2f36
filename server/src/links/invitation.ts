// The text of an invitation: `mj1.<hash of the platform's key>.<secret>`. The new machine compares the hash with the key of
// the platform that it reaches, before it sends the secret. The platform stores only a hash of the secret.
import { hash, randomBytes } from 'node:crypto'

const PREFIX = 'mj1'
const SECRET_BYTES = 24
const FORMAT = /^mj1\.([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{32})$/

export type Invitation = { key_hash: string; secret: string }

export function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url')
}

export function writeInvitation({ key_hash, secret }: Invitation): string {
  return `${PREFIX}.${key_hash}.${secret}`
}

/** Null when the text is no invitation. */
export function readInvitation(text: string): Invitation | null {
  const [, key_hash, secret] = FORMAT.exec(text.trim()) ?? []
  return key_hash === undefined || secret === undefined ? null : { key_hash, secret }
}

/** What the platform stores of a secret of 192 random bits. */
export function hashOfSecret(secret: string): string {
  return hash('sha256', secret, 'base64url')
}
