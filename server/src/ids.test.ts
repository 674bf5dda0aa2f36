import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId, newRayId } from './ids.ts'

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

test('the id of a ray has 122 random bits, and does not tell when its request came', () => {
  const bits = Array.from({ length: 128 }, () => 0)
  const id_count = 4_000
  for (let made = 0; made < id_count; made++) {
    const id = newRayId()
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    const digits = BigInt(`0x${id.replaceAll('-', '')}`)
      .toString(2)
      .padStart(128, '0')
    for (const [bit, digit] of [...digits].entries()) bits[bit]! += Number(digit)
  }
  // Ten standard deviations: a fair bit stays within them.
  const distance_max = 5 * Math.sqrt(id_count)
  assert.equal(bits.filter((ones) => Math.abs(ones - id_count / 2) < distance_max).length, 122)
})
