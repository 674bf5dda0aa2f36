import assert from 'node:assert'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { createProof } from './reflection.ts'

test('a source that has proven nothing gets three bytes at most for each that came from it', () => {
  const step = fc.record({ is_reply: fc.boolean(), length: fc.nat(2_000) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const proof = createProof()
      let [received, replied] = [0, 0]
      for (const { is_reply, length } of steps) {
        if (!is_reply) {
          // Zeros are nobody's secret: they prove nothing.
          assert.strictEqual(proof.received(Buffer.alloc(length)), false)
          received += length
        } else if (proof.mayReply(length)) {
          proof.replied(Buffer.alloc(length))
          replied += length
        }
        assert.ok(replied <= 3 * received)
      }
    }),
  )
})

test('what was sent there and comes back proves it; what it said before itself does not', () => {
  const hello = Buffer.concat([Buffer.from('hello '), randomBytes(16)])
  const challenge = randomBytes(16)
  const mirror = createProof()
  assert.strictEqual(mirror.received(hello), false)
  mirror.replied(hello)
  assert.strictEqual(mirror.received(hello), false, 'the server only sent back what it got')
  mirror.replied(challenge)
  assert.strictEqual(mirror.received(randomBytes(16)), false)
  assert.strictEqual(mirror.received(Buffer.concat([Buffer.from('x'), challenge.subarray(3, 11)])), true)
})

test('two replies do not make an echo together', () => {
  const proof = createProof()
  const [one, two] = [randomBytes(4), randomBytes(4)]
  proof.received(Buffer.alloc(100))
  proof.replied(one)
  proof.replied(two)
  assert.strictEqual(proof.received(Buffer.concat([one, two])), false)
})
