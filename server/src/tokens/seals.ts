// Seals: secrets in the database, encrypted with a key of the data folder (AES-256-GCM). A seal belongs to one purpose, its
// row, and does not open for another. After a rotation the old keys still open their seals. A seal of an old key may be
// sealed again with the current one.
import assert from 'node:assert'
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { createRing, followRing, type Ring, type RingKey, SEAL_RING } from './ring.ts'

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const FORMAT = /^s1\.([a-z0-9]{1,32})\.([A-Za-z0-9_-]+)$/

export type Seals = {
  /** Returns `s1.<key id>.<base64url>`. Two seals of the same text differ. */
  seal: (purpose: string, text: string, now_ms: number) => string
  /** Throws an Error when the seal has another purpose, was changed, or its key is not in the ring. */
  open: (purpose: string, seal: string) => string
  /** The beginning of seals of the current key. */
  prefix: (now_ms: number) => string
  /** Loads the ring again, which a rotation may have changed. Throws when it cannot be read; then the old one stays. */
  refresh: () => Promise<void>
}

export async function openSeals(folder: string): Promise<Seals> {
  const { ring, read } = await followRing(folder, SEAL_RING)
  return sealsOf(ring, read)
}

/** In memory only, for nodes that have joined. */
export function createSeals(): Seals {
  return sealsOf(createRing(SEAL_RING))
}

export function sealsOf(first: Ring, read: () => Promise<Ring> = async () => first): Seals {
  let { keys } = first

  const current = (now_ms: number): RingKey => {
    const key = keys.findLast(({ sign_from_ms = 0 }) => sign_from_ms <= now_ms) ?? keys[0]
    assert(key !== undefined, 'The ring of seals has no key.')
    return key
  }
  const secretOf = (key: RingKey): Buffer => Buffer.from(key.secret, 'base64url')
  const boundTo = (purpose: string, kid: string): Buffer => Buffer.from(`muster/seal/${kid}/${purpose}`)

  return {
    seal(purpose, text, now_ms) {
      const key = current(now_ms)
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv(ALGORITHM, secretOf(key), nonce).setAAD(boundTo(purpose, key.kid))
      const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return `s1.${key.kid}.${sealed.toString('base64url')}`
    },

    open(purpose, seal) {
      const [, kid = '', sealed = ''] = FORMAT.exec(seal) ?? []
      const key = keys.find((candidate) => candidate.kid === kid)
      const bytes = Buffer.from(sealed, 'base64url')
      if (key === undefined || bytes.length < NONCE_BYTES + TAG_BYTES) {
        throw new Error(`A secret (${purpose}) was sealed with a key that ${SEAL_RING.file} does not contain: ${kid}.`)
      }
      const nonce = bytes.subarray(0, NONCE_BYTES)
      const decipher = createDecipheriv(ALGORITHM, secretOf(key), nonce, { authTagLength: TAG_BYTES })
      decipher.setAAD(boundTo(purpose, kid)).setAuthTag(bytes.subarray(-TAG_BYTES))
      const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES))
      return Buffer.concat([text, decipher.final()]).toString('utf8')
    },

    prefix: (now_ms) => `s1.${current(now_ms).kid}.`,

    async refresh() {
      keys = (await read()).keys
    },
  }
}
