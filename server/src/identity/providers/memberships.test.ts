import assert from 'node:assert/strict'
import { test } from 'node:test'
import { membershipChanges } from './memberships.ts'

const [OURS, OTHER] = ['p1', 'p2']
const member = (group_id: string, role: 'owner' | 'developer' | 'viewer', provider_id: string | null) => ({
  ...{ group_id, role, provider_id },
})

test('a sign-in makes, changes and takes away only memberships of its provider', () => {
  const current = [
    member('a', 'viewer', OURS),
    member('b', 'developer', OURS),
    member('c', 'viewer', null),
    member('d', 'viewer', OTHER),
    member('e', 'owner', OURS),
  ]
  const wanted = new Map([
    ['a', 'developer'],
    ['c', 'developer'],
    ['d', 'developer'],
    ['f', 'viewer'],
  ] as const)
  assert.deepEqual(membershipChanges(current, wanted, OURS), [
    { group_id: 'a', before: 'viewer', role: 'developer' },
    { group_id: 'b', before: 'developer', role: null },
    { group_id: 'f', before: null, role: 'viewer' },
  ])
})

test('nothing is changed when the claims say what is there', () => {
  const current = [member('a', 'viewer', OURS), member('b', 'developer', null)]
  assert.deepEqual(membershipChanges(current, new Map([['a', 'viewer']] as const), OURS), [])
})
