// The keys of entries. A key is any text. Slashes in it form directories, unless a backslash precedes them.
import { ApiError, KV_BATCH_MAX, KV_KEY_BYTES_MAX } from '@musterhost/contract'

/** The part before the last unescaped slash; empty when there is none. */
export function directoryOf(key: string): string {
  for (let end = key.length - 1; end >= 0; end--) {
    if (key[end] === '/' && !isEscaped(key, end)) return key.slice(0, end)
  }
  return ''
}

/** An even number of backslashes escapes nothing. */
function isEscaped(key: string, at: number): boolean {
  let start = at
  while (key[start - 1] === '\\') start--
  return (at - start) % 2 === 1
}

/** The directory named by `text`, which may end in a slash. */
export function directoryNamed(text: string): string {
  const last = text.length - 1
  return text[last] === '/' && !isEscaped(text, last) ? text.slice(0, last) : text
}

/** Throws KV_KEY_VALIDATION_ERROR with the path of the key. */
export function requireKey(key: string, path: readonly string[]): void {
  const bytes = Buffer.byteLength(key)
  if (bytes >= 1 && bytes <= KV_KEY_BYTES_MAX && !key.includes('\0') && key.isWellFormed()) return
  throw new ApiError('KV_KEY_VALIDATION_ERROR', { path, bytes, bytes_max: KV_KEY_BYTES_MAX })
}

/** Returns each key once, in order. Throws KV_KEYS_MISSING, KV_BATCH_TOO_LARGE or KV_KEY_VALIDATION_ERROR. */
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

/** The payload of the channel `kv`, for watches of the key. */
export function topicOf(namespace_id: string, key: string): string {
  return `${namespace_id} ${key}`
}
