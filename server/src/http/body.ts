// Bytes -> the JSON value of a body, or a refusal. JSON.parse without a reviver: it stands on the hot path.
import { isUtf8 } from 'node:buffer'
import { ApiError, validationError } from '@muster/contract'

/** Deeper than any record of the contract; what is free JSON (state, lobby_config) may use it up. */
const JSON_DEPTH_MAX = 64

/** An empty body is no body: undefined. Throws API_BAD_BODY or VALIDATION_ERROR. */
export function parseBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined
  if (!isUtf8(bytes)) throw new ApiError('API_BAD_BODY', {}, { message: 'The body is not valid UTF-8.' })
  const text = bytes.toString('utf8')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new ApiError('API_BAD_BODY')
  }
  if (isSuspicious(text)) requireHarmless(value, [])
  return value
}

/** NUL and half surrogates can only be written as \u escapes, depth only with many brackets: most bodies have neither. */
function isSuspicious(text: string): boolean {
  if (text.includes('\\u') || text.includes('__proto__')) return true
  let brackets = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if ((code === 0x7b || code === 0x5b) && ++brackets > JSON_DEPTH_MAX) return true
  }
  return false
}

function requireHarmless(value: unknown, path: string[]): void {
  if (typeof value === 'string') requireText(value, path)
  if (typeof value !== 'object' || value === null) return
  if (path.length === JSON_DEPTH_MAX) {
    throw validationError([{ path: path.slice(0, 4), reason: 'too_deep', message: 'The body is nested too deeply.' }])
  }
  for (const [name, member] of Object.entries(value)) {
    requireText(name, path)
    if (name === '__proto__') {
      throw validationError([{ path: [...path, name], reason: 'invalid', message: '__proto__ cannot be a member.' }])
    }
    path.push(name)
    requireHarmless(member, path)
    path.pop()
  }
}

function requireText(text: string, path: readonly string[]): void {
  if (!text.includes('\0') && text.isWellFormed()) return
  const name = path.length === 0 ? 'The body' : path.join('.')
  throw validationError([
    { path: [...path], reason: 'invalid', message: `${name} must not contain NUL or half of a surrogate pair.` },
  ])
}
