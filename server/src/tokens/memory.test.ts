import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Token } from './claims.ts'
import { createMemory } from './memory.ts'

const token: Token = { kind: 'access', name: 'a', token_id: 'b', issue_ms: 0, expire_ms: null }

test('the memory never holds more than it may, and keeps what is asked for', () => {
  const memory = createMemory(100)
  memory.set('kept', token)
  for (let count = 0; count < 1000; count++) {
    memory.set(`token ${count}`, token)
    assert.ok(memory.size() <= 100)
    assert.equal(memory.get('kept'), token)
    assert.equal(memory.get(`token ${count - 10}`), count < 10 ? undefined : token)
  }
  assert.equal(memory.get('token 0'), undefined)
})
