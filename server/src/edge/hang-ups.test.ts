import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { HangUps } from './hang-ups.ts'
import { HUNG_UP_AT_ONCE_MAX } from './limits.ts'

test('of thousands that hang up in one turn a few are ended in each, in order, and all in the end', async () => {
  const ended: number[] = []
  const hang_ups = new HangUps<number>((client) => ended.push(client))
  const clients = Array.from({ length: 10 * HUNG_UP_AT_ONCE_MAX + 1 }, (_, number) => number)
  for (const client of clients) hang_ups.add(client)
  assert.equal(ended.length, HUNG_UP_AT_ONCE_MAX, 'the first are ended at once')
  for (let before = ended.length; ended.length < clients.length; before = ended.length) {
    await nextTurn()
    assert.ok(ended.length - before <= HUNG_UP_AT_ONCE_MAX, 'a turn has its maximum')
    assert.ok(ended.length > before, 'none waits for more than the turns before it')
  }
  assert.deepEqual(ended, clients)
})

test('a client that hangs up in a later turn is ended at once, or after those that wait', async () => {
  const ended: string[] = []
  const hang_ups = new HangUps<string>((client) => ended.push(client))
  hang_ups.add('alone')
  assert.deepEqual(ended, ['alone'])
  await nextTurn()
  await nextTurn()
  for (let number = 0; number <= HUNG_UP_AT_ONCE_MAX; number++) hang_ups.add('one of many')
  hang_ups.add('late')
  for (let turn = 0; turn < 3; turn++) await nextTurn()
  assert.equal(ended.at(-1), 'late')
  assert.equal(ended.length, HUNG_UP_AT_ONCE_MAX + 3)
})
