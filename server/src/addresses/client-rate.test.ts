import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientKey } from './client-ip.ts'
import { createClientRateLimiter } from './client-rate.ts'

const NOW_MS = 1_790_000_000_000

test('a client may ask as often as its limit says, its /56 four times and its /48 sixteen times as often', () => {
  const limiter = createClientRateLimiter({ per_minute: 10, keys_max: 10_000 })
  const taken = (client_ips: string[]): number =>
    client_ips.filter((client_ip) => limiter.take(clientKey(client_ip), NOW_MS) === 0).length
  const repeat = (count: number, client_ip: (i: number) => string): string[] =>
    Array.from({ length: count }, (_, i) => client_ip(i))
  assert.equal(taken(repeat(20, () => '192.0.2.1')), 10)
  assert.equal(taken(repeat(20, () => '2001:db8::1')), 10)
  assert.equal(taken(repeat(255, (i) => `2001:db8:0:${(i + 1).toString(16)}::1`)), 40 - 10)
  assert.equal(taken(repeat(255, (i) => `2001:db8:0:${((i + 1) * 256).toString(16)}::1`)), 160 - 40)
  assert.equal(taken(repeat(20, () => '2001:db8:1::1')), 10)
})

test('what one /64 is refused does not use up what its neighbours have', () => {
  const limiter = createClientRateLimiter({ per_minute: 10, keys_max: 10_000 })
  for (let i = 0; i < 1_000; i++) limiter.take(clientKey('2001:db8::1'), NOW_MS)
  assert.equal(limiter.take(clientKey('2001:db8:0:1::1'), NOW_MS), 0)
})

test('0 a minute is no limit', () => {
  const limiter = createClientRateLimiter({ per_minute: 0, keys_max: 4 })
  for (let i = 0; i < 100; i++) assert.equal(limiter.take('192.0.2.1', NOW_MS), 0)
  assert.equal(limiter.size(), 0)
})
