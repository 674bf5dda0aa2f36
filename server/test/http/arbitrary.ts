// Values for the schemas of the contract, for fast-check: good ones, good ones with one fault, and nonsense. Whether a
// value is good is for the validator to say; these only see to it that many are nearly so.
import type { Operation } from '@musterhost/contract'
import fc from 'fast-check'
import type { Call } from './calls.ts'

type Schema = {
  type?: string
  format?: string
  pattern?: string
  enum?: unknown[]
  const?: unknown
  minimum?: number
  maximum?: number
  minLength?: number
  maxProperties?: number
  anyOf?: Schema[]
  maxLength?: number
  minItems?: number
  maxItems?: number
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  patternProperties?: Record<string, Schema>
}

/** Longer ones are tried where their limits are tested. */
const TEXT_LENGTH_MAX = 40
const ITEMS_MAX = 3

/** Texts that have been somebody's downfall. */
const TEXTS = [
  '',
  ' ',
  '0',
  'null',
  '__proto__',
  'constructor',
  'toString',
  '../../etc/passwd',
  "'; drop table lobbies; --",
  '%00',
  '\u0000',
  '\ud800',
  '\u202e',
  'e\u0301',
  '👩‍👩‍👧',
  'a\nb',
  'a\u2028b',
  'x'.repeat(2_000),
  '{{7*7}}',
  '$1',
  '\\',
]
const NUMBERS = [0, -0, -1, 1, 1.5, 255, 256, 257, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 53, 1e21, -1e308]

const junk = fc.oneof(
  fc.constantFrom(...TEXTS),
  fc.constantFrom(...NUMBERS),
  fc.constantFrom(null, true, false, [], {}, [[]], [null], { a: { b: { c: [] } } }),
  fc.jsonValue({ maxDepth: 3 }),
)

const patterned = new Map<string, fc.Arbitrary<string>>()

const NAMES = ['game', 'default', 'a-b', 'a1', 'A_b', 'x'.repeat(16), 'x'.repeat(65)]

/** The engine that makes texts for patterns knows no look-ahead: those that have one get plain names. */
function ofPattern(pattern: string, length_max = Number.POSITIVE_INFINITY): fc.Arbitrary<string> {
  const key = `${length_max} ${pattern}`
  const before = patterned.get(key)
  if (before !== undefined) return before
  const expression = new RegExp(pattern, 'u')
  const fitting = NAMES.filter((name) => name.length <= length_max && expression.test(name))
  const names = fc.constantFrom(...(fitting.length > 0 ? fitting : NAMES))
  const made = pattern.includes('(?=')
    ? names
    : fc.oneof(
        { weight: 3, arbitrary: fc.stringMatching(expression).map((text) => text.slice(0, length_max)) },
        { weight: fitting.length > 0 ? 1 : 0, arbitrary: names },
      )
  patterned.set(key, made)
  return made
}

function textOf(schema: Schema, ids: readonly string[]): fc.Arbitrary<unknown> {
  if (schema.format === 'uuid') return fc.constantFrom(...ids)
  if (schema.format === 'email') return ofPattern('^[a-z0-9]{8,16}@[a-z]{1,8}[.][a-z]{2,3}$')
  if (schema.format === 'date-time') return ofPattern('^202[67]-0[1-9]-[0-2][1-9]T00:00:00[.]000Z$')
  if (schema.format === 'instant') return ofPattern('^(?:2026-0[1-9]-[0-3][0-9]T00:00:00Z|1[0-9]{12})$')
  if (schema.pattern !== undefined) return ofPattern(schema.pattern, schema.maxLength)
  const maxLength = Math.min(schema.maxLength ?? TEXT_LENGTH_MAX, TEXT_LENGTH_MAX)
  return fc.oneof(
    fc.constantFrom('default', 'custom', 'tagged', 'sized', 'local'),
    fc.string({ minLength: schema.minLength ?? 0, maxLength, unit: 'grapheme' }),
  )
}

function goodOf(schema: Schema, ids: readonly string[]): fc.Arbitrary<unknown> {
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if ('const' in schema) return fc.constant(schema.const)
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map((choice) => goodOf(choice, ids)))
  switch (schema.type) {
    case 'string':
      return textOf(schema, ids)
    case 'boolean':
      return fc.boolean()
    case 'integer':
    case 'number': {
      const [min, max] = [schema.minimum ?? -1_000, schema.maximum ?? 1_000_000]
      return fc.oneof(fc.constantFrom(min, max), fc.integer({ min, max: Math.min(max, 2 ** 31 - 1) }))
    }
    case 'array': {
      const maxLength = Math.min(schema.maxItems ?? ITEMS_MAX, ITEMS_MAX)
      return fc.array(goodOf(schema.items ?? {}, ids), { minLength: schema.minItems ?? 0, maxLength })
    }
    case 'object': {
      const [entry] = Object.entries(schema.patternProperties ?? {})
      if (entry !== undefined) {
        const [pattern, member] = entry
        const name = pattern === '^.*$' ? textOf({}, ids) : ofPattern(pattern)
        return fc.dictionary(name as fc.Arbitrary<string>, goodOf(member, ids), {
          maxKeys: Math.min(schema.maxProperties ?? ITEMS_MAX, ITEMS_MAX),
        })
      }
      const members = Object.entries(schema.properties ?? {}).map(([name, member]) => [name, goodOf(member, ids)])
      return fc.record(Object.fromEntries(members), { requiredKeys: schema.required ?? [] } as never)
    }
    default:
      return junk
  }
}

/** The value with nonsense in the place of one of its members, near the top or far below. */
function faulty(value: unknown, at: number, fault: unknown): unknown {
  if (typeof value !== 'object' || value === null) return fault
  const names = Object.keys(value)
  if (names.length === 0) return fault
  const name = names[at % names.length]!
  const rest = Math.floor(at / names.length)
  const copy: Record<string, unknown> = Array.isArray(value) ? ([...value] as never) : { ...value }
  if (rest % 3 === 0) delete copy[name]
  else if (rest % 3 === 1) copy[name] = fault
  else copy[name] = faulty(copy[name], Math.floor(rest / 3), fault)
  return copy
}

export function arbitraryOf(schema: unknown, ids: readonly string[]): fc.Arbitrary<unknown> {
  const good = goodOf(schema as Schema, ids)
  return fc.oneof(
    { arbitrary: good, weight: 3 },
    {
      arbitrary: fc.tuple(good, fc.nat(10_000), junk).map(([value, at, fault]) => faulty(value, at, fault)),
      weight: 3,
    },
    { arbitrary: junk, weight: 1 },
  )
}

export type Request = {
  params: Record<string, string>
  query: Record<string, string | readonly string[]>
  body: unknown
}

/** Ids in the path are mostly right, so that what is behind them is reached. */
export function requestsOf(operation: Operation, good: Call, ids: readonly string[]) {
  const params = Object.keys(operation.params.properties).map((name) => [
    name,
    fc.oneof(
      { arbitrary: fc.constant(good.params?.[name] ?? ids[0]!), weight: 8 },
      { arbitrary: fc.constantFrom(...ids), weight: 2 },
      { arbitrary: fc.constantFrom(...TEXTS.filter((text) => text.isWellFormed() && text !== '')), weight: 1 },
    ),
  ])
  const query = Object.keys(operation.query.properties).map((name) => [
    name,
    fc.oneof(
      { arbitrary: fc.constantFrom('true', 'false', '', 'x', ids[0]!, ['x', 'x'], [ids[0]!, ids[0]!]), weight: 1 },
      { arbitrary: fc.constant(good.query?.[name] ?? ids[0]!), weight: 2 },
    ),
  ])
  return fc.record({
    params: fc.record(Object.fromEntries(params)),
    query: fc.record(Object.fromEntries(query), { requiredKeys: [] }),
    body: fc.oneof(
      { arbitrary: fc.constant(good.body), weight: 1 },
      { arbitrary: fc.tuple(fc.nat(10_000), junk).map(([at, fault]) => faulty(good.body, at, fault)), weight: 2 },
      { arbitrary: arbitraryOf(operation.body, ids), weight: 3 },
    ),
  }) as fc.Arbitrary<Request>
}
