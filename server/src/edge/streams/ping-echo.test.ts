import assert from 'node:assert'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { pongOf } from './ping-echo.ts'

test('the echo of a ping has its bytes after another mark, and no other datagram has one', () => {
  const chosen = randomBytes(56)
  for (const length of [8, 9, 56]) {
    const ping = Buffer.concat([Buffer.from('MUST\x06'), chosen.subarray(0, length)])
    const pong = pongOf(ping)
    const wanted = Buffer.concat([Buffer.from('MUST\x07'), chosen.subarray(0, length)])
    assert.deepStrictEqual(pong, wanted)
    assert.strictEqual(pongOf(wanted), null, 'two echoes never talk to each other')
  }
  const mark = Buffer.from('MUST\x06')
  for (const other of [
    Buffer.alloc(0),
    mark,
    Buffer.concat([mark, chosen.subarray(0, 7)]),
    Buffer.concat([mark, chosen, chosen.subarray(0, 1)]),
    Buffer.concat([Buffer.from('MUST\x01'), chosen]),
    Buffer.from('a DNS question to somewhere'),
  ]) {
    assert.strictEqual(pongOf(other), null, other.toString('hex'))
  }
})
