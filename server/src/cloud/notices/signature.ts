// The signature of a webhook: HMAC SHA-256 over the id, the time and the body, with dots between. The headers are those of
// the Standard Webhooks specification, so its libraries verify them.
import { createHmac, randomBytes } from 'node:crypto'

const KEY_BYTES = 32
const KEY_PREFIX = 'whsec_'

export type Signed = { 'webhook-id': string; 'webhook-timestamp': string; 'webhook-signature': string }

export function newSigningKey(): string {
  return `${KEY_PREFIX}${randomBytes(KEY_BYTES).toString('base64')}`
}

/** `ms`: when it is sent. */
export function signatureOf(signing_key: string, { id, ms, body }: { id: string; ms: number; body: string }): Signed {
  const time = String(Math.floor(ms / 1_000))
  const key = Buffer.from(signing_key.slice(KEY_PREFIX.length), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': `v1,${signature}` }
}
