import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv } from 'ajv'
import { type TSchema, Type } from 'typebox'
import { FORMATS } from './formats.ts'
import { OPERATIONS } from './operations.ts'
import { createFaultFinder, createShapeCheck } from './schema-check.ts'

test('every schema of the contract is one, and says what it says in the strictest reading', () => {
  const strict = new Ajv({ strict: true, strictTypes: false, formats: { ...FORMATS } })
  for (const { id, params, query, body, response } of OPERATIONS) {
    for (const [name, schema] of Object.entries({ params, query, body, response })) {
      assert.doesNotThrow(() => strict.compile(schema), `${name} of ${id}`)
    }
  }
})

test('a schema is compiled at the first value, and once', () => {
  let looks = 0
  const schema = new Proxy(Type.Object({ count: Type.Integer() }), {
    get: (target, name, receiver) => {
      if (name === 'properties') looks++
      return Reflect.get(target, name, receiver)
    },
  })
  const findFaults = createFaultFinder(schema, { coerce: false })
  assert.equal(looks, 0)
  assert.equal(findFaults({ count: 1 }), null)
  const looks_of_one = looks
  assert.ok(looks_of_one > 0)
  assert.equal(findFaults({ count: 2 }), null)
  assert.equal(looks, looks_of_one)
})

test('only what comes by the address is read as what it should be', () => {
  const schema = Type.Object({ count: Type.Integer(), names: Type.Array(Type.String()) })
  const value = { count: '5', names: 'one' }
  assert.equal(createFaultFinder(schema, { coerce: false })(value)?.length, 2)
  assert.deepEqual(value, { count: '5', names: 'one' })
  assert.equal(createFaultFinder(schema, { coerce: true })(value), null)
  assert.deepEqual(value, { count: 5, names: ['one'] })
})

test('an unknown name is repeated only up to a length, and similar ones are reported once', () => {
  const check = createShapeCheck(
    Type.Object({ a: Type.Record(Type.String(), Type.Integer()) }, { additionalProperties: false }),
  )
  const long = 'x'.repeat(100_000)
  const errors = check({ a: { [long]: 'no' }, [`${long}1`]: 1, [`${long}2`]: 2, short: 3 })
  const cut = `${'x'.repeat(256)}…`
  assert.deepEqual(
    errors.map(({ path, reason }) => [path, reason]),
    [
      [[cut], 'unknown'],
      [['short'], 'unknown'],
      [['a', cut], 'wrong_type'],
    ],
  )
  for (const { message } of errors) assert.ok(message.length < 400)
})

test('a misspelled member is reported with the one that was meant, and a value with those that are allowed', () => {
  const check = createShapeCheck(
    Type.Object(
      {
        max_players: Type.Optional(Type.Integer()),
        protocol: Type.Optional(Type.Enum(['http', 'https', 'udp'])),
        mode: Type.Optional(Type.Union([Type.Literal('a'), Type.Literal('b'), Type.Null()])),
        kind: Type.Optional(Type.Literal('process')),
      },
      { additionalProperties: false },
    ),
  )
  const told = (value: unknown) => check(value).map(({ message }) => message)
  assert.deepEqual(told({ max_playerz: 1 }), ['max_playerz is not a member here. Did you mean max_players?'])
  assert.deepEqual(told({ Max_Players: 1 }), ['Max_Players is not a member here. Did you mean max_players?'])
  assert.deepEqual(told({ colour: 1 }), ['colour is not a member here.'])
  assert.deepEqual(told({ ['max_players'.repeat(10)]: 1 }), [`${'max_players'.repeat(10)} is not a member here.`])
  assert.deepEqual(told({ protocol: 'htps' }), ['protocol must be one of http, https, udp. Did you mean https?'])
  assert.deepEqual(told({ protocol: 7 }), ['protocol must be one of http, https, udp.'])
  assert.deepEqual(told({ mode: 'c' }), ['mode must be one of a, b. Did you mean a?'])
  assert.deepEqual(told({ kind: 'docker' }), ['kind must be process.'])
})

test('a null for an optional member that cannot be null is as if it were absent, for every operation', () => {
  let tried = 0
  for (const { id, body } of OPERATIONS) {
    const properties = (body as unknown as { properties?: Record<string, TSchema> }).properties ?? {}
    const required = new Set((body as unknown as { required?: string[] }).required ?? [])
    for (const [name, schema] of Object.entries(properties)) {
      const takes_null = createFaultFinder(schema, { coerce: false })(null) === null
      const value: Record<string, unknown> = { [name]: null }
      const faults = createFaultFinder(body, { coerce: false })(value) ?? []
      const is_wrong = faults.some(({ instancePath }) => instancePath === `/${name}`)
      const is_absent = !takes_null && !required.has(name)
      assert.equal(name in value, !is_absent, `${id} ${name}`)
      assert.equal(is_wrong, !takes_null && required.has(name), `${id} ${name}`)
      tried++
    }
  }
  assert.ok(tried > 100)
})

test('a null that is required, in a list or in a map stays a mistake, and is reported as it came', () => {
  const Inner = Type.Object({ a: Type.Optional(Type.Integer()), b: Type.Integer() }, { additionalProperties: false })
  const check = createFaultFinder(
    Type.Object({
      'x/y~z': Type.Optional(Inner),
      list: Type.Optional(Type.Array(Inner)),
      numbers: Type.Optional(Type.Array(Type.Integer())),
      map: Type.Optional(Type.Record(Type.String(), Type.Integer())),
      free: Type.Optional(Type.Unknown()),
      choice: Type.Optional(Type.Union([Type.String(), Type.Integer()])),
    }),
    { coerce: false },
  )
  const left = (value: unknown) => [
    check(value)?.map(({ instancePath, keyword }) => `${instancePath} ${keyword}`),
    value,
  ]
  assert.deepEqual(left({ 'x/y~z': { a: null, b: 1 }, choice: null }), [undefined, { 'x/y~z': { b: 1 } }])
  assert.deepEqual(left({ list: [{ a: null, b: 1 }], free: null }), [undefined, { list: [{ b: 1 }], free: null }])
  assert.deepEqual(left({ 'x/y~z': { a: null, b: null } }), [['/x~1y~0z/b type'], { 'x/y~z': { b: null } }])
  assert.deepEqual(left({ numbers: [null] }), [['/numbers/0 type'], { numbers: [null] }])
  assert.deepEqual(left({ map: { k: null } }), [['/map/k type'], { map: { k: null } }])
  assert.deepEqual(left({ 'x/y~z': { b: 1, 'un/known': null } }), [undefined, { 'x/y~z': { b: 1 } }])
  assert.deepEqual(left({ 'x/y~z': { b: 1, unknown: 0 } }), [
    ['/x~1y~0z additionalProperties'],
    { 'x/y~z': { b: 1, unknown: 0 } },
  ])
  assert.deepEqual(left(null), [[' type'], null])
})
