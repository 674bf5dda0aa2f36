import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cleanName, readFromBrowser } from './messages.ts'

test('an input is read, and nothing more of it than is documented', () => {
  const text = '{"type":"input","seq":1,"x":0.5,"y":0,"dash":true,"score":99}'
  assert.deepEqual(readFromBrowser(text), { type: 'input', seq: 1, x: 0.5, y: 0, dash: true })
})

test('a direction is never longer than 1', () => {
  const message = readFromBrowser('{"type":"input","seq":1,"x":300,"y":-400,"dash":false}')
  assert.deepEqual(message, { type: 'input', seq: 1, x: 0.6, y: -0.8, dash: false })
})

test('what is not a message is null', () => {
  const bad = [
    '',
    'null',
    '[]',
    '1',
    '{',
    '{"type":"ping"}',
    '{"type":"ping","sent_ms":"1"}',
    '{"type":"input","seq":1,"x":1,"y":0}',
    '{"type":"input","seq":1.5,"x":1,"y":0,"dash":false}',
    '{"type":"input","seq":-1,"x":1,"y":0,"dash":false}',
    '{"type":"input","seq":1,"x":"1","y":0,"dash":false}',
    '{"type":"input","seq":1,"x":1e999,"y":0,"dash":false}',
    '{"type":"input","seq":1,"x":null,"y":0,"dash":false}',
    '{"type":"teleport","x":1,"y":1}',
  ]
  for (const text of bad) assert.equal(readFromBrowser(text), null, text)
})

test('a name is printable, trimmed, short, and never empty', () => {
  assert.equal(cleanName('  Ada\u0000\n Lovelace  '), 'Ada Lovelace')
  assert.equal(cleanName('\u202Egnp.exe'), 'gnp.exe')
  assert.equal(cleanName('x'.repeat(99)), 'x'.repeat(16))
  assert.equal(cleanName(' \t '), 'Pilot')
  assert.equal(cleanName('🚀'.repeat(20)), '🚀'.repeat(16))
})
