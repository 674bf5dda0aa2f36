import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '@musterhost/contract'
import fc from 'fast-check'
import { parseBody } from './body.ts'
import { addPositions } from './error-positions.ts'

const messageOf = (text: string): string => {
  try {
    parseBody(Buffer.from(text), 'exact')
    return 'taken'
  } catch (error) {
    assert.ok(error instanceof ApiError)
    return error.message
  }
}

test('a body that is not JSON is reported with the line and column of the first mistake', () => {
  assert.equal(messageOf('{"a": 1,\n  "b": }'), 'The body is not valid JSON: Value expected (line 2, column 8).')
  assert.equal(messageOf('{"a": 1'), 'The body is not valid JSON: Close brace expected (line 1, column 8).')
  assert.equal(messageOf('{"a": 1,}'), 'The body is not valid JSON: Property name expected (line 1, column 9).')
  assert.equal(messageOf('{"a": 1 // one\n}'), 'The body is not valid JSON: Invalid comment token (line 1, column 9).')
  assert.equal(messageOf('['.repeat(100_000)), 'The body is not valid JSON.')
  assert.equal(messageOf(`{"a": "${'x'.repeat(1_000_000)}`), 'The body is not valid JSON.')
})

test('a member that stands twice is refused, however it is written', () => {
  assert.equal(messageOf('{"a": 1,\n "a": 2}'), 'a stands twice in the body (line 2, column 2). Keep one.')
  assert.equal(
    messageOf('{"a": [{"b": 1, "\\u0062": 2}]}'),
    'a.0.b stands twice in the body (line 1, column 17). Keep one.',
  )
  assert.equal(messageOf('{"a": {"b": 1}, "b": {"a": ":\\"a\\":"}}'), 'taken')
})

test('whatever JSON a body is, it is taken when no member stands twice', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), (text) => {
      fc.pre(!text.includes('__proto__') && !/\d{16}|\d[.eE]|-0/.test(text))
      assert.equal(messageOf(text), 'taken')
    }),
  )
})

test('a mistake is placed at its member, also below the document, and at the object that lacks one', () => {
  const text = '{\n  "config": {\n    "modes": {"a": {}},\n    "list": [1,\n      2]\n  }\n}'
  const placed = (path: string[]): string =>
    addPositions([{ path, reason: 'invalid', message: 'It is wrong.' }], text, 'config')[0]!.message
  assert.equal(placed(['config', 'list']), 'Line 4, column 5: It is wrong.')
  assert.equal(placed(['list', '1']), 'Line 5, column 7: It is wrong.')
  assert.equal(placed(['modes', 'a', 'max_players']), 'Line 3, column 15: It is wrong.')
  assert.equal(placed(['nothing', 'here']), 'It is wrong.')
  const on_one_line = text.replaceAll('\n', '')
  assert.deepEqual(
    addPositions([{ path: ['list'], reason: 'x', message: 'No.' }], on_one_line, 'config')[0]!.message,
    'No.',
  )
})
