// JSON numbers and members that JSON.parse would change silently. Free JSON of a request (verification_data, lobby_config, the
// state of a lobby) must arrive exactly as it was sent, so its numbers are kept to the last digit (../exact-json.ts). A text
// with a duplicate member is refused: JSON.parse keeps the last one, which would deceive a program that checks the first.
// Elsewhere a whole number that a double cannot hold is refused with its digits. So unsigned 64-bit lengths are exact.
import { type ErrorDetail, shownName, validationError } from '@musterhost/contract'
import Type, { type TSchema } from 'typebox'
import { mayChange, parseExact } from '../text/exact-json.ts'
import { refuseDuplicate } from './error-positions.ts'

/** The parts of a body that may be any JSON: the whole body, or members by name. */
export type FreeJson = 'body' | readonly string[]

/** `schema`: the schema of an operation's body. */
export function freeJsonOf(schema: TSchema): FreeJson {
  if (Type.IsUnknown(schema)) return 'body'
  const members = Type.IsObject(schema) ? Object.entries<TSchema>(schema.properties) : []
  return members.filter(([, member]) => Type.IsUnknown(member)).map(([name]) => name)
}

/** Matches an unterminated string too, so that no part of the text is scanned twice. */
const STRINGS = /"(?:[^"\\]|\\.)*"?/gs

/**
 * Returns `body` with the numbers of its free JSON as `text` has them. `body` is what JSON.parse made of `text`. Throws
 * VALIDATION_ERROR.
 */
export function keepExactData(body: unknown, text: string, free: FreeJson): unknown {
  if (free === 'body') {
    if (hasDuplicateMember(body, text)) refuseDuplicate(text)
    return mayChange(text) ? parseExact(text) : body
  }
  if (free.length === 0 || typeof body !== 'object' || body === null) return body
  const sent = free.filter((name) => Object.hasOwn(body, name))
  if (sent.length === 0) return body
  if (hasDuplicateMember(body, text)) refuseDuplicate(text)
  if (!mayChange(text)) return body
  const exact = parseExact(text) as Record<string, unknown>
  return { ...body, ...Object.fromEntries(sent.map((name) => [name, exact[name]])) }
}

/** Whether an object in `text` has a duplicate member. `value`: `text` parsed by JSON.parse, which keeps the last one. */
export function hasDuplicateMember(value: unknown, text: string): boolean {
  return text.replace(STRINGS, '').split(':').length - 1 !== memberCount(value)
}

/** Counts members recursively, at most as deep as a body may be. */
function memberCount(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const members: unknown[] = Object.values(value)
  const below = members.reduce<number>((sum, member) => sum + memberCount(member), 0)
  return Array.isArray(value) ? below : below + members.length
}

/** Further errors are left out: the first ones help most. */
const ERRORS_MAX = 32
/** A longer number is cut in the message. */
const DIGITS_SHOWN_MAX = 64

/** Replaces a number that a double cannot hold in a parsed body. */
export class InexactNumber {
  readonly source: string
  readonly reason: 'too_high' | 'too_low' | 'not_exact'

  private constructor(source: string, reason: InexactNumber['reason']) {
    this.source = source
    this.reason = reason
  }

  /** Null when `value` equals `source`, or is not a whole number: fractions are rounded everywhere. */
  static of(source: string, value: number): InexactNumber | null {
    if (value > Number.MAX_SAFE_INTEGER) return new InexactNumber(source, 'too_high')
    if (value < Number.MIN_SAFE_INTEGER) return new InexactNumber(source, 'too_low')
    if (!Number.isInteger(value) || isSame(source, value)) return null
    return new InexactNumber(source, 'not_exact')
  }
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/** Whether `source` writes exactly `value`, a safe integer. */
function isSame(source: string, value: number): boolean {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = NUMBER.exec(source) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  const significant = withoutZeros(digits)
  if (significant === '') return true
  const zeros = digits.length - significant.length - fraction.length + Number(exponent)
  // Its value is a safe integer, so there are at most 16 digits in all.
  if (zeros < 0 || zeros > 16) return false
  return Number(`${sign}${significant}${'0'.repeat(zeros)}`) === value && significant.length + zeros <= 16
}

/** Removes trailing zeros. A regular expression would take quadratic time over millions of zeros. */
function withoutZeros(digits: string): string {
  let end = digits.length
  while (digits.charCodeAt(end - 1) === 0x30) end--
  return digits.slice(0, end)
}

/** Throws VALIDATION_ERROR that names every such number in the value, with its digits. */
export function requireExact(value: unknown): void {
  const errors: ErrorDetail[] = []
  collect(value, [], errors)
  throw validationError(errors)
}

function collect(value: unknown, path: readonly string[], errors: ErrorDetail[]): void {
  if (errors.length === ERRORS_MAX || typeof value !== 'object' || value === null) return
  if (!(value instanceof InexactNumber)) {
    for (const [name, member] of Object.entries(value)) collect(member, [...path, shownName(name)], errors)
    return
  }
  const { source, reason } = value
  const digits = source.length > DIGITS_SHOWN_MAX ? `${source.slice(0, DIGITS_SHOWN_MAX)}…` : source
  const name = path.length === 0 ? 'The body' : path.join('.')
  const message = `${name} is ${digits}, and whole numbers are taken from -(2^53 - 1) to 2^53 - 1, exactly.`
  errors.push({ path: [...path], reason, message })
}
