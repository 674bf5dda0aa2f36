import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claimAt, displayNameOf, emailOf, isEmailVerified, isIncomplete, rightsOf, valuesOf } from './claims.ts'

const [ARENA, RACES] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002']
const SETTINGS = {
  groups_claim: 'groups',
  rules: [
    { value: 'arena', group_id: ARENA, role: 'viewer' as const },
    { value: 'arena-dev', group_id: ARENA, role: 'developer' as const },
    { value: 'races', group_id: RACES, role: 'viewer' as const },
  ],
  admin_values: ['operators'],
}

test('a claim is found by its whole name first, and then inside objects', () => {
  assert.equal(claimAt({ 'a.b': 1, a: { b: 2 } }, 'a.b'), 1)
  assert.equal(claimAt({ a: { b: { c: 3 } } }, 'a.b.c'), 3)
  assert.equal(claimAt({ a: 'text' }, 'a.length'), undefined)
  assert.equal(claimAt({}, 'constructor.name'), undefined)
})

test('a claim is a text or a list, and all else of it is ignored', () => {
  assert.deepEqual([...valuesOf({ hd: 'example.com' }, 'hd')], ['example.com'])
  assert.deepEqual([...valuesOf({ groups: ['a', 7, null, 'b', 'a'] }, 'groups')], ['a', 'b'])
  assert.deepEqual([...valuesOf({ groups: { a: true } }, 'groups')], [])
})

test('the higher of two roles in a group holds, in any order of the rules', () => {
  for (const rules of [SETTINGS.rules, SETTINGS.rules.toReversed()]) {
    const rights = rightsOf({ groups: ['arena-dev', 'arena'] }, { ...SETTINGS, rules })
    assert.deepEqual([...rights.memberships], [[ARENA, 'developer']])
  }
})

test('a value of admin_values makes an administrator, and no other value does', () => {
  assert.equal(rightsOf({ groups: ['operators'] }, SETTINGS).is_admin, true)
  assert.equal(rightsOf({ groups: ['operator', 'Operators'] }, SETTINGS).is_admin, false)
  assert.equal(rightsOf({ groups: ['operators'] }, { ...SETTINGS, groups_claim: null }).is_admin, false)
  assert.deepEqual(rightsOf({}, SETTINGS), { memberships: new Map(), is_admin: false, has_value: false })
})

test('an address is verified only when the provider says so', () => {
  assert.deepEqual(
    [true, 'true', false, 'false', 1, undefined].map((email_verified) => isEmailVerified({ email_verified })),
    [...[true, true], ...[false, false, false, false]],
  )
  assert.equal(emailOf({ email: 'Ada@Example.com' }), 'ada@example.com')
  assert.equal(emailOf({ email: 'ada' }), null)
  assert.equal(emailOf({ email: ['ada@example.com'] }), null)
})

test('every person has a valid display name of at most 24 characters', () => {
  assert.equal(displayNameOf({ name: '  Ada\n Lovelace ' }), 'Ada Lovelace')
  assert.equal(displayNameOf({ name: '\u0000', preferred_username: 'ada' }), 'ada')
  assert.equal(displayNameOf({ email: 'ada@example.com' }), 'ada')
  assert.equal(displayNameOf({}), 'Person')
  assert.equal(displayNameOf({ name: 'x'.repeat(99) }).length, 24)
  assert.ok(displayNameOf({ name: `${'x'.repeat(23)}\u{1f600}` }).isWellFormed())
})

test('a provider is asked for more only when a wanted claim is missing', () => {
  const whole = { name: 'Ada', email: 'ada@example.com', groups: [] }
  assert.equal(isIncomplete(whole, 'groups'), false)
  assert.equal(isIncomplete({ ...whole, groups: undefined }, 'groups'), true)
  assert.equal(isIncomplete({ ...whole, groups: undefined }, null), false)
  assert.equal(isIncomplete({ email: 'ada@example.com' }, null), true)
})
