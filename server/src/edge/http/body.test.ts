import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { createBody, forwardBody, skipBody } from './body.ts'

/** Forwards the bytes in these pieces. Returns the forwarded bytes, and how many are left. */
function forward(bytes: Buffer, lengths: readonly number[], to_chunks: boolean) {
  const body = createBody('chunked')
  const skipped = createBody('chunked')
  const written: Buffer[] = []
  const to = {
    write: (data: string | Buffer) => written.push(Buffer.from(data as string, 'latin1')),
    cork: () => {},
    uncork: () => {},
  } as unknown as Socket
  let at = 0
  let left = 0
  for (const length of [...lengths, bytes.length]) {
    const piece = Buffer.from(bytes.subarray(at, at + length))
    at += piece.length
    if (body.is_done || body.is_broken) {
      left += piece.length
      continue
    }
    const from = { bytes: piece, start: 0, end: piece.length, is_own: true }
    skipBody(skipped, Buffer.from(piece), 0, piece.length)
    left += piece.length - forwardBody(body, from, to, '', to_chunks)
  }
  assert.deepEqual([skipped.is_done, skipped.is_broken], [body.is_done, body.is_broken])
  return { body, left, passed: Buffer.concat(written) }
}

const chunk = fc.uint8Array({ minLength: 1, maxLength: 300 })
const large = fc.integer({ min: 20_000, max: 40_000 }).map((length) => Buffer.alloc(length, 'large'))
const chunks = fc.array(fc.oneof({ weight: 9, arbitrary: chunk }, { weight: 1, arbitrary: large }), { maxLength: 6 })
const pieces = fc.array(fc.integer({ min: 1, max: 500 }), { maxLength: 12 })
const framed = (parts: readonly Uint8Array[], extension = '', trailers = '') =>
  Buffer.concat([
    ...parts.flatMap((part) => [Buffer.from(`${part.length.toString(16)}${extension}\r\n`), part, Buffer.from('\r\n')]),
    Buffer.from(`0\r\n${trailers}\r\n`),
  ])

test('chunks are forwarded alike in whatever pieces they arrive, and no byte after them is', () => {
  fc.assert(
    fc.property(
      chunks,
      pieces,
      fc.constantFrom('', ';a=b'),
      fc.constantFrom('', 'X: y\r\n'),
      (parts, lengths, extension, trailers) => {
        const bytes = Buffer.concat([framed(parts, extension, trailers), Buffer.from('behind')])
        const plain = forward(bytes, lengths, false)
        assert.ok(plain.body.is_done)
        assert.equal(plain.left, 'behind'.length)
        assert.ok(plain.passed.equals(Buffer.concat(parts)))
        // The newly framed body reads the same.
        const again = forward(forward(bytes, lengths, true).passed, [], false)
        assert.ok(again.body.is_done)
        assert.ok(again.passed.equals(Buffer.concat(parts)))
      },
    ),
  )
})

test('malformed chunks are found in whatever pieces they arrive', () => {
  const bad = [
    ...[
      '\r\n',
      'x\r\n',
      '-1\r\n',
      '+1\r\na\r\n',
      '0x1\r\na\r\n',
      '1 \r\na\r\n',
      ' 1\r\na\r\n',
      '1\na\n0\n\n',
      '1\r\nab\r\n',
    ],
    ...['1\r\na\n\n', '1\r\na0\r\n\r\n', '1000000000000\r\n', `1;${'x'.repeat(2_000)}\r\na\r\n`, '1;\x01\r\na\r\n'],
    ...[
      '0\r\nX\r\n\r\n',
      '0\r\n X: y\r\n\r\n',
      '0\r\nX: y\n\r\n',
      '0\r\nHost: a\r\n\r\n',
      `0\r\n${'X: y\r\n'.repeat(200)}\r\n`,
    ],
    `1;${'x'.repeat(900)}\r\na\r\n`.repeat(20),
  ]
  fc.assert(
    fc.property(fc.constantFrom(...bad), pieces, (text, lengths) => {
      const { body } = forward(Buffer.from(text, 'latin1'), lengths, true)
      assert.deepEqual([text.slice(0, 40), body.is_broken, body.is_done], [text.slice(0, 40), true, false])
    }),
    { numRuns: 1_000 },
  )
})
