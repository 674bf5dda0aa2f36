// Numbers of JSON that no double can hold. Unsigned 64-bit lengths are compared by their digits: one that would be
// rounded is refused with exactly what was sent, and never reaches a room.
import { type ErrorDetail, validationError } from '@muster/contract'
import { shown } from '../schema-check.ts'

/** The first ones help most. */
const ERRORS_MAX = 32
/** What is repeated of a number that is thousands of digits long. */
const DIGITS_SHOWN_MAX = 64

/** Stands in a parsed body where such a number was. */
export class InexactNumber {
  readonly source: string
  readonly reason: 'too_high' | 'too_low' | 'not_exact'

  private constructor(source: string, reason: InexactNumber['reason']) {
    this.source = source
    this.reason = reason
  }

  /** Null when `value` is exactly what `source` says, or is no whole number: those are rounded everywhere. */
  static of(source: string, value: number): InexactNumber | null {
    if (value > Number.MAX_SAFE_INTEGER) return new InexactNumber(source, 'too_high')
    if (value < Number.MIN_SAFE_INTEGER) return new InexactNumber(source, 'too_low')
    if (!Number.isInteger(value) || isSame(source, value)) return null
    return new InexactNumber(source, 'not_exact')
  }
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/** Whether the digits are those of the whole number, which is a safe one. */
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

/** Without those at the end. An expression that looks for them takes the square of millions of zeros. */
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
    for (const [name, member] of Object.entries(value)) collect(member, [...path, shown(name)], errors)
    return
  }
  const { source, reason } = value
  const digits = source.length > DIGITS_SHOWN_MAX ? `${source.slice(0, DIGITS_SHOWN_MAX)}…` : source
  const name = path.length === 0 ? 'The body' : path.join('.')
  const message = `${name} is ${digits}, and whole numbers are taken from -(2^53 - 1) to 2^53 - 1, exactly.`
  errors.push({ path: [...path], reason, message })
}
