import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Exchange } from '../http/exchange.ts'
import { Turns } from './client-queue.ts'

const exchangeOf = (source: string, path = ''): Exchange => ({ source, path, turns: null }) as Exchange

test('a client that asks once does not wait for all that another has asked before', () => {
  const turns = new Turns(2)
  const flood = Array.from({ length: 10 }, (_, i) => exchangeOf('192.0.2.1', String(i)))
  const [first, second, ...waiting] = flood
  assert.deepEqual([turns.take(first!), turns.take(second!)], [true, true])
  for (const exchange of waiting) assert.equal(turns.take(exchange), false)
  const honest = exchangeOf('192.0.2.2')
  assert.equal(turns.take(honest), false)
  assert.equal(turns.leave(first!), waiting[0])
  assert.equal(turns.leave(second!), honest)
  assert.equal(turns.leave(honest), waiting[1])
})

test('who gives up while it waits takes no turn, and a turn that nobody waits for is free', () => {
  const turns = new Turns(1)
  const [first, gone, last] = [exchangeOf('a'), exchangeOf('b'), exchangeOf('c')]
  assert.equal(turns.take(first), true)
  for (const exchange of [gone, last]) assert.equal(turns.take(exchange), false)
  assert.equal(turns.leave(gone), null)
  assert.equal(turns.leave(first), last)
  assert.equal(turns.leave(last), null)
  assert.equal(turns.take(exchangeOf('d')), true)
})
