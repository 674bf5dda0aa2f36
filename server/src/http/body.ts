// Parses the bytes of a JSON body, or refuses them. JSON.parse runs without a reviver, because this is the hot path. With
// `exact` numbers, a number that a double cannot hold is refused with its digits, instead of being rounded.
import { isUtf8 } from 'node:buffer'
import { ApiError, shownName, validationError } from '@musterhost/contract'
import { refuseDuplicate, syntaxErrorOf } from './error-positions.ts'
import { type FreeJson, hasDuplicateMember, InexactNumber, keepExactData, requireExact } from './exact-json.ts'

/** Deeper than any record of the contract. Free JSON (state, lobby_config) may be as deep. */
const JSON_DEPTH_MAX = 64

/** How numbers are parsed: `exact` refuses numbers that would change, and duplicate members. */
export type NumberParsing = 'exact' | 'rounded'

/**
 * Returns undefined for an empty body. `free_json`: the parts whose numbers are kept exactly even by `rounded`. Throws
 * API_BAD_BODY or VALIDATION_ERROR.
 */
export function parseBody(bytes: Buffer, numbers: NumberParsing = 'rounded', free_json: FreeJson = []): unknown {
  if (bytes.length === 0) return undefined
  if (!isUtf8(bytes)) throw new ApiError('API_BAD_BODY', {}, { message: 'The body is not valid UTF-8.' })
  const text = bytes.toString('utf8')
  let value: unknown
  try {
    value = numbers === 'exact' && MAY_BE_INEXACT.test(text) ? parseExactly(text) : JSON.parse(text)
  } catch (error) {
    if (error instanceof ApiError) throw error
    const message = syntaxErrorOf(text)
    throw new ApiError('API_BAD_BODY', {}, message === null ? {} : { message })
  }
  if (isSuspicious(text)) requireHarmless(value, [])
  if (numbers === 'rounded') return keepExactData(value, text, free_json)
  if (hasDuplicateMember(value, text)) refuseDuplicate(text)
  return value
}

/** NUL and lone surrogates need a \u escape, and depth needs many brackets: most bodies have neither, and are not checked. */
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
    path.push(shownName(name))
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

/** A double holds every number of at most 15 digits without a fraction or exponent. */
const MAY_BE_INEXACT = /\d{16}|\d[.eE]/

/** The types lack the third argument: the text from which the value was parsed (ECMAScript 2026). */
type Reviver = (this: unknown, name: string, value: unknown, context: { source?: string }) => unknown

function parseExactly(text: string): unknown {
  const inexact: InexactNumber[] = []
  const revive: Reviver = (_name, value, { source = '' }) => {
    if (typeof value !== 'number') return value
    const number = InexactNumber.of(source, value)
    if (number === null) return value
    inexact.push(number)
    return number
  }
  const value: unknown = JSON.parse(text, revive as Parameters<typeof JSON.parse>[1])
  if (inexact.length > 0) requireExact(value)
  return value
}
