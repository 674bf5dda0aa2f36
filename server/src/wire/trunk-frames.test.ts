import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  FRAME_BYTES_MAX,
  FRAMES,
  FrameBatch,
  FrameReader,
  readBody,
  readCredit,
  readRequest,
  readResponse,
  type TrunkRequest,
  type TrunkResponse,
} from './trunk-frames.ts'

type Frame = { kind: number; stream: number; payload: Buffer }

/** Reads the bytes in pieces of these lengths, and the rest in one. */
function framesOf(bytes: Buffer, lengths: readonly number[]): { frames: Frame[]; is_valid: boolean } {
  const frames: Frame[] = []
  const reader = new FrameReader((kind, stream, from, start, end) => {
    frames.push({ kind, stream, payload: Buffer.from(from.subarray(start, end)) })
    return true
  })
  let at = 0
  for (const length of [...lengths, bytes.length]) {
    // The reader must not keep what it is given.
    const piece = Buffer.from(bytes.subarray(at, at + length))
    if (!reader.read(piece)) return { frames, is_valid: false }
    piece.fill(0xff)
    at += piece.length
  }
  return { frames, is_valid: true }
}

const latin1 = (max: number) => fc.uint8Array({ maxLength: max }).map((bytes) => Buffer.from(bytes).toString('latin1'))
const stream = fc.integer({ min: 1, max: 0xffffffff })
const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array))
const request: fc.Arbitrary<TrunkRequest> = fc.record({
  method: fc.constantFrom('GET', 'POST', 'DELETE'),
  path: latin1(200).map((text) => `/${text}`),
  client_ip: fc.constantFrom('192.0.2.1', '2001:db8::1'),
  ray_id: fc.constantFrom('', '0190a0b0-0000-7000-8000-000000000000'),
  lines: latin1(500),
  is_secure: fc.boolean(),
  has_length: fc.boolean(),
  asks_shard: fc.boolean(),
})
const response: fc.Arbitrary<TrunkResponse> = fc.record({
  status: fc.integer({ min: 200, max: 599 }),
  lines: latin1(500),
  body_length: fc.oneof(fc.constant(null), fc.constant('none' as const), fc.integer({ min: 0, max: 2 ** 31 })),
  ray_kept: fc.option(latin1(50)),
  shard: fc.option(fc.integer({ min: 0, max: 1_023 })),
})

test('requests and responses arrive as they were sent, in whatever pieces', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(stream, request, response, bytes, fc.boolean()), { minLength: 1, maxLength: 4 }),
      fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 40 }),
      (sent, lengths) => {
        const batch = new FrameBatch()
        for (const [number, asked, replied, body, is_last] of sent) {
          batch.request(number, asked, is_last ? body : body.toString('latin1'))
          batch.response(number, replied, body, is_last)
          batch.body(number, body, is_last)
          batch.credit(number, body.length + 1)
          batch.mark(FRAMES.waits, number)
        }
        const { frames, is_valid } = framesOf(batch.take(), lengths)
        assert.ok(is_valid)
        const read = frames.map(({ kind, stream: number, payload }) => [number, meaningOf(kind, payload)])
        const wanted = sent.flatMap(([number, asked, replied, body, is_last]) => [
          [number, { ...asked, body }],
          [number, { ...replied, body, is_last }],
          [number, { body, is_last }],
          [number, body.length + 1],
          [number, FRAMES.waits],
        ])
        assert.deepEqual(read, wanted)
      },
    ),
  )
})

function meaningOf(kind: number, payload: Buffer): unknown {
  if (kind === FRAMES.request) return readRequest(payload, 0, payload.length)
  if (kind === FRAMES.credit) return readCredit(payload, 0, payload.length)
  if (kind === FRAMES.waits) return kind
  const read = (kind === FRAMES.response ? readResponse : readBody)(payload, 0, payload.length)
  if (read === null) return null
  const { body_start, ...rest } = read
  return { ...rest, body: payload.subarray(body_start) }
}

test('a frame that is cut at any byte is read once its rest has come, and not before', () => {
  const batch = new FrameBatch()
  const fields = { client_ip: '192.0.2.1', ray_id: '', is_secure: false, has_length: true, asks_shard: false }
  batch.request(7, { method: 'POST', path: '/a', lines: 'Host: a\r\n', ...fields }, 'body')
  const sent = batch.take()
  for (let at = 1; at < sent.length; at++) {
    assert.equal(framesOf(sent.subarray(0, at), []).frames.length, 0)
    assert.equal(framesOf(sent, [at]).frames.length, 1)
  }
})

test('a frame that is too long is refused by its head, before memory is taken for it', () => {
  for (const length of [FRAME_BYTES_MAX + 1, 0xffffffff]) {
    const head = Buffer.alloc(9)
    head.writeUInt32BE(length)
    head[4] = FRAMES.body
    assert.equal(framesOf(head, []).is_valid, false)
    assert.equal(framesOf(head, [1, 1, 1, 1, 1]).is_valid, false)
  }
})

test('bytes that are no frame are refused or read as one, and never throw', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (array) => {
      const payload = Buffer.from(array)
      for (const kind of Object.values(FRAMES)) meaningOf(kind, payload)
      framesOf(payload, [3, 5, 7])
    }),
    { numRuns: 2_000 },
  )
})

test('lengths that reach beyond the frame are refused', () => {
  fc.assert(
    fc.property(request, response, bytes, (asked, replied, body) => {
      const batch = new FrameBatch()
      batch.request(1, asked, '')
      batch.response(1, replied, body.subarray(0, 0), true)
      for (const { kind, payload } of framesOf(batch.take(), []).frames) {
        if (payload.length > 14) assert.equal(meaningOf(kind, payload.subarray(0, payload.length - 1)), null)
      }
    }),
  )
})

test('a batch that outgrows its memory loses nothing, and what was taken is not written again', () => {
  const batch = new FrameBatch()
  const taken: Buffer[] = []
  const copies: Buffer[] = []
  for (let number = 1; number <= 40; number++) {
    batch.body(number, Buffer.alloc(10_000, number), false)
    if (number % 7 !== 0) continue
    taken.push(batch.take())
    copies.push(Buffer.from(taken.at(-1)!))
  }
  taken.push(batch.take())
  for (const [index, copy] of copies.entries()) assert.ok(taken[index]!.equals(copy))
  const { frames } = framesOf(Buffer.concat(taken), [])
  assert.deepEqual(
    frames.map(({ stream: number, payload }) => [number, payload[1], payload.length]),
    Array.from({ length: 40 }, (_, index) => [index + 1, index + 1, 10_001]),
  )
})
