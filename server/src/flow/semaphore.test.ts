import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Semaphore } from './semaphore.ts'

test('as many as allowed run at once, the rest wait in their order, and one too many is refused', async () => {
  const semaphore = new Semaphore({ at_once_max: 1, waiting_max: 2 })
  assert.equal(await semaphore.acquire(), 'acquired')
  const order: string[] = []
  const first = semaphore.acquire().then((outcome) => order.push(`first ${outcome}`))
  const second = semaphore.acquire().then((outcome) => order.push(`second ${outcome}`))
  assert.equal(await semaphore.acquire(), 'full')
  assert.deepEqual(order, [])
  semaphore.release()
  await first
  assert.deepEqual(order, ['first acquired'])
  semaphore.release()
  await second
  semaphore.release()
  assert.equal(semaphore.has_free_slot, true)
})

test('a caller that gives up waiting leaves no place taken', async () => {
  const semaphore = new Semaphore({ at_once_max: 1, waiting_max: 1 })
  await semaphore.acquire()
  const waits = new AbortController()
  const outcome = semaphore.acquire(waits.signal)
  waits.abort()
  assert.equal(await outcome, 'aborted')
  semaphore.release()
  assert.equal(await semaphore.acquire(), 'acquired')
  assert.equal(await semaphore.acquire(waits.signal), 'aborted')
})

test('a place that is passed on in the same moment as its caller gives up is not lost', async () => {
  const semaphore = new Semaphore({ at_once_max: 1, waiting_max: 1 })
  await semaphore.acquire()
  const waits = new AbortController()
  const outcome = semaphore.acquire(waits.signal)
  semaphore.release()
  waits.abort()
  assert.equal(await outcome, 'acquired')
  assert.equal(semaphore.has_free_slot, false)
})
