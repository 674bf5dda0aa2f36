import assert from 'node:assert'
import { test } from 'node:test'
import fc from 'fast-check'
import { createHeap } from './heap.ts'

type Item = { value: number; id: number }

const isBefore = (a: Item, b: Item): boolean => (a.value === b.value ? a.id < b.id : a.value < b.value)
const ITEMS = 12
const step = fc.oneof(
  fc.record({ kind: fc.constant('place' as const), id: fc.nat(ITEMS - 1), value: fc.nat(8) }),
  fc.record({ kind: fc.constant('remove' as const), id: fc.nat(ITEMS - 1) }),
)

test('the heap gives the least of what is in it, whatever was added, moved and taken out before', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
      const heap = createHeap<Item>(isBefore)
      const items = Array.from({ length: ITEMS }, (_, id): Item => ({ id, value: 0 }))
      const inside = new Set<Item>()
      const least = () => [...inside].sort((a, b) => (isBefore(a, b) ? -1 : 1))
      for (const { id, ...what } of steps) {
        const item = items[id]!
        if (what.kind === 'place') {
          item.value = what.value
          heap.put(item)
          inside.add(item)
        } else {
          heap.remove(item)
          inside.delete(item)
        }
        assert.equal(heap.peek(), least()[0])
        assert.equal(heap.size(), inside.size)
      }
      for (const expected of least()) {
        assert.equal(heap.peek(), expected)
        heap.remove(expected)
      }
      assert.equal(heap.peek(), undefined)
    }),
    { numRuns: 5_000 },
  )
})

test('adding, moving and taking out compare no more items than the heap is deep', () => {
  const COUNT = 10_000
  let comparisons = 0
  const heap = createHeap<Item>((a, b) => {
    comparisons++
    return isBefore(a, b)
  })
  const items = Array.from({ length: COUNT }, (_, id): Item => ({ id, value: (id * 7_919) % COUNT }))
  for (const item of items) heap.put(item)
  // Down a heap each level costs two comparisons.
  const most = 2 * Math.ceil(Math.log2(COUNT)) + 2
  for (const item of items) {
    comparisons = 0
    item.value = (item.value * 31) % COUNT
    heap.put(item)
    assert.ok(comparisons <= most, `${comparisons} comparisons to move an item`)
  }
  for (const item of items) {
    comparisons = 0
    heap.remove(item)
    assert.ok(comparisons <= most, `${comparisons} comparisons to take an item out`)
  }
})
