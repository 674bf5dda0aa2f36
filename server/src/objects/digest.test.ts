import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { BLOCK_BYTES, createDigest, digestOf, isBlock, isListOf } from './digest.ts'

test('the hashes do not depend on the chunks, and each block has its own', () => {
  for (const content_length of [0, 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES, 3 * BLOCK_BYTES + 77]) {
    const bytes = Buffer.alloc(content_length, 'an object')
    const expected = digestOf(bytes)
    assert.equal(expected.sha256, createHash('sha256').update(bytes).digest('hex'))
    assert.equal(expected.content_length, content_length)
    assert.equal(expected.block_hashes === null, content_length <= BLOCK_BYTES)
    if (expected.block_hashes !== null) assert.ok(isListOf(expected.block_hashes, content_length))
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 2 * BLOCK_BYTES }), { maxLength: 8 }), (lengths) => {
        const digest = createDigest()
        let at = 0
        for (const length of lengths) {
          digest.update(bytes.subarray(at, at + length))
          at += length
        }
        digest.update(bytes.subarray(at))
        assert.deepEqual(digest.end(), expected)
      }),
      { numRuns: 20 },
    )
  }
})

test('a block is verified at its position: a changed byte and another block both fail', () => {
  const bytes = Buffer.from(Array.from({ length: 2 * BLOCK_BYTES + 5 }, (_, index) => (index * 31) % 251))
  const { block_hashes } = digestOf(bytes)
  const blocks = [0, 1, 2].map((index) => bytes.subarray(index * BLOCK_BYTES, (index + 1) * BLOCK_BYTES))
  for (const [index, block] of blocks.entries()) {
    assert.ok(isBlock(block_hashes!, index, block))
    assert.ok(!isBlock(block_hashes!, (index + 1) % 3, block))
    const changed = Buffer.from(block)
    changed[changed.length - 1]! ^= 1
    assert.ok(!isBlock(block_hashes!, index, changed))
    assert.ok(!isBlock(block_hashes!, index, block.subarray(1)))
  }
})
