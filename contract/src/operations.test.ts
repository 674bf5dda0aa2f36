import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OPERATIONS } from './operations.ts'

test('what a cloud token may do to its game, people may too, and which of them is said', () => {
  for (const { id, auth, role, params } of OPERATIONS) {
    const acts_on_group = Object.keys(params.properties).some((name) => name === 'group_id' || name === 'game_id')
    if (acts_on_group && auth.includes('cloud')) assert.ok(auth.includes('user'), `${id} takes no user.`)
    if (acts_on_group && auth.includes('user')) assert.ok(role !== null, `${id} names no role.`)
    if (role !== null) assert.ok(auth.includes('user'), `${id} names a role for nobody.`)
  }
})
