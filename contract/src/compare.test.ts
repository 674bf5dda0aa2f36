import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compareContracts } from './compare.ts'
import { openapiDocument } from './openapi.ts'

const copy = () => structuredClone(openapiDocument('0')) as never as Record<string, never>

/** Applies `change` to every object of a document, from the outside in. */
function everyObject(value: unknown, change: (object: Record<string, unknown>) => void): void {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) change(value as Record<string, unknown>)
  for (const member of Object.values(value)) everyObject(member, change)
}

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, member]) => [key, reversed(member)]),
  )
}

test('documents that differ in texts and in the order of members only are identical', () => {
  const changed = copy()
  everyObject(changed, (object) => {
    for (const key of ['summary', 'description']) if (typeof object[key] === 'string') object[key] = 'another text'
    if (typeof object.type === 'string') object.example = 'an example'
  })
  assert.deepEqual(compareContracts(copy(), reversed(changed)), [])
})

test('a removed member, another limit, another path and a member called description are each one difference', () => {
  const before = {
    paths: { '/a/b': { get: { responses: {} } } },
    properties: { id: { maxLength: 8 }, description: { type: 'string' } },
  }
  const cases: readonly [unknown, string][] = [
    [{ ...before, properties: { id: { maxLength: 8 } } }, '/properties/description: {"type":"string"} -> absent'],
    [{ ...before, properties: { ...before.properties, id: { maxLength: 9 } } }, '/properties/id/maxLength: 8 -> 9'],
    [{ ...before, paths: {} }, '/paths/~1a~1b: {"get":{"responses":{}}} -> absent'],
    [{ ...before, required: ['id'] }, '/required: absent -> ["id"]'],
  ]
  for (const [after, difference] of cases) assert.deepEqual(compareContracts(before, after), [difference])
})
