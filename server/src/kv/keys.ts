// The keys of entries. A key is any text; its slashes make directories of it, but for those behind a backslash.
import { ApiError, KV_BATCH_MAX, KV_KEY_BYTES_MAX } from '@muster/contract'

/** What stands before the last slash that is one; empty where there is none. */
export function directoryOf(key: string): string {
  for (let end = key.length - 1; end >= 0; end--) {
    if (key[end] === '/' && !isEscaped(key, end)) return key.slice(0, end)
  }
  return ''
}

/** Two backslashes are one, which escapes nothing. */
function isEscaped(key: string, at: number): boolean {
  let start = at
  while (key[start - 1] === '\\') start--
  return (at - start) % 2 === 1
}

/** The directory that `text` names, with or without a slash at its end. */
export function directoryNamed(text: string): string {
  const last = text.length - 1
  return text[last] === '/' && !isEscaped(text, last) ? text.slice(0, last) : text
}

/** Throws KV_KEY_VALIDATION_ERROR that says which. */
export function requireKey(key: string, path: readonly string[]): void {
  const bytes = Buffer.byteLength(key)
  if (bytes >= 1 && bytes <= KV_KEY_BYTES_MAX && !key.includes('\0') && key.isWellFormed()) return
  throw new ApiError('KV_KEY_VALIDATION_ERROR', { path, bytes, bytes_max: KV_KEY_BYTES_MAX })
}

/** Throws KV_KEYS_MISSING, KV_BATCH_TOO_LARGE or KV_KEY_VALIDATION_ERROR. Each key once, in the order of the first. */
export function requireKeys(keys: readonly string[], count_max: number = KV_BATCH_MAX): string[] {
  if (keys.length === 0) throw new ApiError('KV_KEYS_MISSING', { path: ['query', 'keys'] })
  requireBatch(keys, ['query', 'keys'], count_max)
  for (const [i, key] of keys.entries()) requireKey(key, ['query', 'keys', String(i)])
  return [...new Set(keys)]
}

export function requireBatch(batch: readonly unknown[], path: readonly string[], count_max: number): void {
  if (batch.length <= count_max) return
  throw new ApiError('KV_BATCH_TOO_LARGE', { path, count: batch.length, count_max })
}
