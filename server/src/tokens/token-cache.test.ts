import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Token } from './claims.ts'
import { createTokenCache } from './token-cache.ts'

const token: Token = { kind: 'access', name: 'a', token_id: 'b', issue_ms: 0, expire_ms: null }

test('the cache stays within its limit, and keeps the entries read last', () => {
  const cache = createTokenCache(100)
  cache.set('kept', token)
  for (let count = 0; count < 1000; count++) {
    cache.set(`token ${count}`, token)
    assert.ok(cache.size() <= 100)
    assert.equal(cache.get('kept'), token)
    assert.equal(cache.get(`token ${count - 10}`), count < 10 ? undefined : token)
  }
  assert.equal(cache.get('token 0'), undefined)
})
