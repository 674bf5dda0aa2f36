import assert from 'node:assert'
import { test } from 'node:test'
import fc from 'fast-check'
import { createAllowance } from './address-validation.ts'

test('an unvalidated source gets at most three bytes for each byte received', () => {
  const step = fc.record({ is_reply: fc.boolean(), length: fc.nat(2_000) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const allowance = createAllowance()
      let [received, replied] = [0, 0]
      for (const { is_reply, length } of steps) {
        if (!is_reply) {
          allowance.received(length)
          received += length
          continue
        }
        const may_reply = replied + length <= 3 * received
        assert.strictEqual(allowance.mayReply(length), may_reply)
        if (may_reply) replied += length
      }
    }),
  )
})
