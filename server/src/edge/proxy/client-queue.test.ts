import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ClientQueue } from './client-queue.ts'

type Queued = { client_key: string; path: string }
const requestOf = (client_key: string, path = ''): Queued => ({ client_key, path })

test('the single request of a client does not wait for all earlier requests of another client', () => {
  const queue = new ClientQueue<Queued>(2)
  const flood = Array.from({ length: 10 }, (_, i) => requestOf('192.0.2.1', String(i)))
  const [first, second, ...waiting] = flood
  assert.deepEqual([queue.enter(first!), queue.enter(second!)], [true, true])
  for (const request of waiting) assert.equal(queue.enter(request), false)
  const single = requestOf('192.0.2.2')
  assert.equal(queue.enter(single), false)
  assert.equal(queue.leave(first!), waiting[0])
  assert.equal(queue.leave(second!), single)
  assert.equal(queue.leave(single), waiting[1])
})

test('a request that is given up while it waits is skipped, and an unused slot is free for the next request', () => {
  const queue = new ClientQueue<Queued>(1)
  const [first, gone, last] = [requestOf('a'), requestOf('b'), requestOf('c')]
  assert.equal(queue.enter(first), true)
  for (const request of [gone, last]) assert.equal(queue.enter(request), false)
  assert.equal(queue.leave(gone), null)
  assert.equal(queue.leave(first), last)
  assert.equal(queue.leave(last), null)
  assert.equal(queue.enter(requestOf('d')), true)
})
