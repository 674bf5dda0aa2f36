import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BatchWriter } from './batch-writer.ts'

test('items are written in batches that never overlap; what is too much or fails is counted', async () => {
  const written: number[][] = []
  const dropped: number[] = []
  const failed: number[] = []
  let is_writing = false
  let fails = false
  const writer = new BatchWriter<number>({
    every_ms: 60_000,
    items_max: 2,
    async write(batch) {
      assert.equal(is_writing, false)
      is_writing = true
      await new Promise((resolve) => setImmediate(resolve))
      is_writing = false
      if (fails) throw new Error('no database')
      written.push([...batch])
    },
    onDropped: (count) => dropped.push(count),
    onFailure: (_error, count) => failed.push(count),
  })
  for (const item of [1, 2, 3, 4]) writer.add(item)
  const first = writer.flush()
  const second = writer.flush()
  await first
  await second
  assert.deepEqual({ written, dropped, failed }, { written: [[1, 2]], dropped: [2], failed: [] })

  fails = true
  writer.add(5)
  await writer.flush()
  fails = false
  writer.add(6)
  await writer.close()
  assert.deepEqual({ written, dropped, failed }, { written: [[1, 2], [6]], dropped: [2], failed: [1] })
})
