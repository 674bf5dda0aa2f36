// Checks a value against a schema of the contract, and names the members that are wrong and why. One place serves both the
// requests, which are refused, and the validate operations, which only report.

import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import type { Static, TSchema } from 'typebox'
import { removeAbsentNulls, unescapePointer } from './absent-nulls.ts'
import type { ErrorDetail } from './errors.ts'
import { FORMATS } from './formats.ts'
import { didYouMean } from './suggestion.ts'
import { shownName } from './visible-text.ts'

/** A value may be wrong in very many places; the first ones help most. */
const ERROR_DETAILS_MAX = 32

const REASONS: Readonly<Record<string, string>> = {
  required: 'required',
  additionalProperties: 'unknown',
  type: 'wrong_type',
  enum: 'not_allowed',
  const: 'not_allowed',
  minimum: 'too_low',
  maximum: 'too_high',
  minLength: 'too_short',
  maxLength: 'too_long',
  minItems: 'too_few',
  maxItems: 'too_many',
  minProperties: 'too_few',
  maxProperties: 'too_many',
  uniqueItems: 'not_unique',
  pattern: 'invalid',
  format: 'invalid',
}

/** Keywords that only repeat the error of a member below them. */
const COMPOUND_KEYWORDS: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'allOf', 'propertyNames'])

/** What a validator reports of one error; the HTTP framework has the same type. */
export type Fault = Pick<
  ErrorObject,
  'instancePath' | 'schemaPath' | 'keyword' | 'message' | 'params' | 'data' | 'parentSchema'
>

export type ShapeCheck = (value: unknown) => ErrorDetail[]

const OPTIONS = {
  // All errors at once, so that a request needs to be corrected once. Bodies are bounded, and so is the number of errors.
  allErrors: true,
  verbose: true,
  formats: { ...FORMATS },
  // Schemas are the contract's own, and a test holds them to their meta-schema: a process does not at every start.
  meta: false,
  validateSchema: false,
}
/** They keep what they have compiled. */
const EXACT = new Ajv(OPTIONS)
const COERCING = new Ajv({ ...OPTIONS, coerceTypes: 'array' })

/** Returns null for a valid value. */
export type FaultFinder = (value: unknown) => Fault[] | null

/**
 * Compiled when the first value comes: of hundreds of schemas a process meets few, and some take milliseconds.
 * `coerce`: what comes as text (query and path) becomes, in its place, the number, boolean or list of one that the
 * schema asks for. A null for an optional member that cannot be null is removed from the value, as if it were absent.
 */
export function createFaultFinder(schema: TSchema, { coerce }: { coerce: boolean }): FaultFinder {
  let validate: ValidateFunction | null = null
  return (value) => {
    validate ??= (coerce ? COERCING : EXACT).compile(schema)
    const check = validate
    const find = (): Fault[] | null => (check(value) ? null : (check.errors ?? []))
    const faults = find()
    return faults === null ? null : removeAbsentNulls(value, faults, find)
  }
}

/** A check of values against one schema. It returns at most 32 errors. `coerce`: see createFaultFinder. */
export function createShapeCheck(schema: TSchema, { coerce } = { coerce: false }): ShapeCheck {
  const findFaults = createFaultFinder(schema, { coerce })
  return (value) => toDetails(findFaults(value) ?? [])
}

export function hasShape<T extends TSchema>(schema: T, value: unknown): value is Static<T> {
  return EXACT.validate(schema, value)
}

/** The value, if it fits the schema. Throws an Error that names the members that are wrong. */
export function requireShape<T extends TSchema>(schema: T, value: unknown): Static<T> {
  if (hasShape(schema, value)) return value
  const messages = createShapeCheck(schema)(value).map(({ message }) => message)
  throw new Error(messages.join(' '))
}

export function toDetails(faults: readonly Fault[]): ErrorDetail[] {
  const details = new Map<string, ErrorDetail>()
  const simple = faults.filter((fault) => !COMPOUND_KEYWORDS.has(fault.keyword))
  for (const fault of simple.length > 0 ? simple : faults) {
    if (details.size === ERROR_DETAILS_MAX) break
    const names = fault.instancePath.split('/').slice(1).map(unescapePointer)
    const { missingProperty, additionalProperty } = fault.params as Record<string, unknown>
    const member = missingProperty ?? additionalProperty
    if (typeof member === 'string') names.push(member)
    const path = names.map(shownName)
    const reason = REASONS[fault.keyword] ?? 'invalid'
    const key = path.join('\n')
    if (!details.has(key)) details.set(key, { path, reason, message: sentence(path, reason, fault, faults) })
  }
  return [...details.values()]
}

function sentence(path: readonly string[], reason: string, fault: Fault, faults: readonly Fault[]): string {
  const name = path.length === 0 ? 'The body' : path.join('.')
  if (reason === 'required') return `${name} is missing.`
  if (reason === 'unknown') {
    const known = Object.keys((fault.parentSchema?.properties as object | undefined) ?? {})
    return `${name} is not a member here.${didYouMean(path.at(-1) ?? '', known)}`
  }
  if (reason === 'not_allowed') return notAllowed(name, fault, faults)
  const number = typeof fault.data === 'number' ? `, and is ${fault.data}` : ''
  return `${name} ${fault.message ?? 'is not valid'}${number}.`
}

/** A list of values is an `enum`, or a union of constants, each of which is a fault of its own. */
function notAllowed(name: string, { instancePath, data }: Fault, faults: readonly Fault[]): string {
  const allowed = faults
    .filter((fault) => fault.instancePath === instancePath)
    .flatMap(({ keyword, params }) => {
      const { allowedValues, allowedValue } = params as { allowedValues?: unknown[]; allowedValue?: unknown }
      return keyword === 'enum' ? (allowedValues ?? []) : keyword === 'const' ? [allowedValue] : []
    })
  const values = [...new Set(allowed.map((value) => (typeof value === 'string' ? value : JSON.stringify(value))))]
  const meant = typeof data === 'string' ? didYouMean(data, values) : ''
  return `${name} must be ${values.length === 1 ? values[0] : `one of ${values.join(', ')}`}.${meant}`
}
