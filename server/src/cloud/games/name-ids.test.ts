import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { toNameId } from './name-ids.ts'

test('a display name becomes a name id that people recognise', () => {
  assert.equal(toNameId('Café Races!'), 'cafe-races')
  assert.equal(toNameId('  --A  B--  '), 'a-b')
  assert.equal(toNameId('A Game With A Long Name'), 'a-game-with-a-lo')
  assert.equal(toNameId('Exactly sixteen: x'), 'exactly-sixteen')
  assert.equal(toNameId('名前'), 'game')
})

test('whatever the display name, the name id is one', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 4, max: 16 }), (display_name, length_max) => {
      const name_id = toNameId(display_name, length_max)
      assert.match(name_id, /^[a-z0-9]+(-[a-z0-9]+)*$/)
      assert.ok(name_id.length <= length_max)
    }),
  )
})
