import assert from 'node:assert'
import { test } from 'node:test'
import { fillPlaceholders, placeholderNames, unknownPlaceholders } from './placeholders.ts'

const VALUES = new Map([
  ['PORT_GAME', '20001'],
  ['LOBBY_ID', '$& ${PORT_GAME}'],
])

test('a placeholder becomes its value, once', () => {
  assert.strictEqual(fillPlaceholders('-p ${PORT_GAME} -p${PORT_GAME}', VALUES), '-p 20001 -p20001')
  assert.strictEqual(fillPlaceholders('${LOBBY_ID}', VALUES), '$& ${PORT_GAME}')
})

test('a doubled dollar is literal, and so is what has no value', () => {
  assert.strictEqual(
    fillPlaceholders('$${PORT_GAME} $5 $ {A} ${OTHER} ${', VALUES),
    '${PORT_GAME} $5 $ {A} ${OTHER} ${',
  )
})

test('what is no placeholder is named, however it is written', () => {
  const names = placeholderNames([{ name: 'game', port_range: null }])
  assert.deepStrictEqual(unknownPlaceholders('${PORT_GAME} $${X} ${} ${a b} ${PORT_GAM', names), [
    '',
    'a b',
    'PORT_GAM',
  ])
})

test('a long text of dollars and braces is read in one pass', () => {
  const text = '${'.repeat(8_192)
  assert.strictEqual(unknownPlaceholders(text, new Set()).length > 0, true)
  assert.strictEqual(fillPlaceholders(text, VALUES), text)
})
