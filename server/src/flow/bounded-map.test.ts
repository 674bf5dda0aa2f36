import assert from 'node:assert'
import { test } from 'node:test'
import { BoundedMap } from './bounded-map.ts'

test('a key beyond the limit removes the entry that was set the longest time ago', () => {
  const map = new BoundedMap<string, number>(2)
  map.set('a', 1).set('b', 2).set('a', 3).set('c', 4)
  assert.deepStrictEqual(
    [...map],
    [
      ['a', 3],
      ['c', 4],
    ],
  )
})

test('a value is made once while it is known', () => {
  const map = new BoundedMap<string, number>(1)
  let count = 0
  const make = (): number => ++count
  assert.deepStrictEqual([map.getOr('a', make), map.getOr('a', make), map.getOr('b', make)], [1, 1, 2])
  assert.deepStrictEqual([map.getOr('a', make), map.size], [3, 1])
})
