import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from './ids.ts'

test('ids are of version 7, tell their moment, sort by it, and are never the same', () => {
  const seen = new Set<string>()
  let before = ''
  for (let ms = 1_790_000_000_000; ms < 1_790_000_000_100; ms++) {
    for (let i = 0; i < 40; i++) {
      const id = newId(ms + 0.5)
      assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      assert.equal(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16), ms)
      seen.add(id)
      if (i === 0) assert.ok(id > before)
      before = id
    }
  }
  assert.equal(seen.size, 4_000)
  assert.equal(newId(5).slice(0, 13), '00000000-0005', 'also when the clock is set back')
})
