// Compares a secret in constant time.
import { createHash, timingSafeEqual } from 'node:crypto'

export function isSecret(text: string, secret: string): boolean {
  return timingSafeEqual(digest(text), digest(secret))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
