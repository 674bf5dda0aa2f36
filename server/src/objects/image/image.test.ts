// Runs in a process of its own: what ran before would change the processor time that it measures.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { cpuMsOf } from '../../../test/support/cpu-time.ts'
import {
  GIF,
  HTML,
  JPEG,
  jpegOf,
  PNG,
  pngChunk,
  pngOf,
  riff,
  riffChunk,
  SVG,
  WEBP,
  WEBP_ANIMATED,
  WEBP_LOSSY,
} from '../../../test/support/images.ts'
import { IMAGE_PIXELS_MAX, IMAGE_SIDE_MAX, ImageRefused, readImage } from './image.ts'

const PICTURES = { PNG, JPEG, GIF, WEBP, WEBP_LOSSY, WEBP_ANIMATED }
const DECODE_MS_MAX = 1_000

function reasonOf(bytes: Buffer): string {
  try {
    readImage(bytes)
  } catch (error) {
    if (error instanceof ImageRefused) return error.reason
    throw error
  }
  return 'taken'
}

test('each format is recognised by its bytes, with its size', () => {
  const types = Object.fromEntries(Object.entries(PICTURES).map(([name, bytes]) => [name, readImage(bytes)]))
  const size = { width: 3, height: 2 }
  assert.deepEqual(types, {
    PNG: { content_type: 'image/png', ...size },
    JPEG: { content_type: 'image/jpeg', ...size },
    GIF: { content_type: 'image/gif', ...size },
    WEBP: { content_type: 'image/webp', ...size },
    WEBP_LOSSY: { content_type: 'image/webp', ...size },
    WEBP_ANIMATED: { content_type: 'image/webp', ...size },
  })
})

test('a file that is no picture is refused', () => {
  const bmp = Buffer.from('BM')
  const icon = Buffer.from('00000100', 'hex')
  const avif = Buffer.from('\0\0\0\x20ftypavif', 'latin1')
  for (const bytes of [
    Buffer.alloc(0),
    Buffer.from(SVG),
    Buffer.from(HTML),
    Buffer.from('%PDF-1.7'),
    bmp,
    icon,
    avif,
  ]) {
    assert.equal(reasonOf(bytes), 'format')
  }
})

test('data after the end of a picture, and a missing end, are refused', () => {
  for (const [name, bytes] of Object.entries(PICTURES)) {
    for (const tail of [HTML, '\0', SVG, 'PK\x05\x06']) {
      assert.equal(reasonOf(Buffer.concat([bytes, Buffer.from(tail)])), 'trailing', name)
    }
    assert.equal(reasonOf(Buffer.concat([bytes, bytes])), 'trailing', name)
    for (let length = 12; length < bytes.length; length++) {
      assert.notEqual(reasonOf(bytes.subarray(0, length)), 'taken', `${name}, ${length} bytes of it`)
    }
  }
})

test('a picture that claims too many pixels is refused without decoding', () => {
  assert.equal(reasonOf(pngOf(100_000, 100_000)), 'too_many_pixels')
  assert.equal(reasonOf(pngOf(0xffffffff, 0xffffffff)), 'too_many_pixels')
  assert.equal(reasonOf(jpegOf(65_535, 65_535)), 'too_many_pixels')
  assert.equal(reasonOf(pngOf(IMAGE_SIDE_MAX + 1, 1)), 'too_many_pixels')
  assert.equal(reasonOf(pngOf(IMAGE_SIDE_MAX, IMAGE_PIXELS_MAX / IMAGE_SIDE_MAX)), 'taken')
  assert.equal(reasonOf(pngOf(IMAGE_SIDE_MAX, IMAGE_PIXELS_MAX / IMAGE_SIDE_MAX + 1)), 'too_many_pixels')
  assert.equal(reasonOf(pngOf(0, 5)), 'malformed')
  const screen = Buffer.from(GIF)
  screen.writeUInt16LE(60_000, 6)
  assert.equal(reasonOf(screen), 'too_many_pixels')
  // A frame may be larger than its screen.
  const frame = Buffer.from(GIF)
  frame.writeUInt16LE(60_000, GIF.lastIndexOf(0x2c) + 5)
  assert.equal(reasonOf(frame), 'too_many_pixels')
  const canvas = Buffer.from(WEBP_ANIMATED)
  canvas.writeUIntLE(0xffffff, WEBP_ANIMATED.indexOf('VP8X') + 12, 3)
  assert.equal(reasonOf(canvas), 'too_many_pixels')
})

test('parts that contradict each other are refused', () => {
  const png = (...chunks: Buffer[]) => reasonOf(Buffer.concat([PNG.subarray(0, 8), ...chunks]))
  const [ihdr, rest] = [PNG.subarray(8, 33), PNG.subarray(33)]
  assert.equal(png(ihdr, rest), 'taken')
  assert.equal(png(ihdr, ihdr, rest), 'malformed', 'two sizes')
  assert.equal(png(pngChunk('tEXt', Buffer.from('a\0b')), ihdr, rest), 'malformed', 'something before the size')
  assert.equal(png(ihdr, pngChunk('IEND', Buffer.alloc(0))), 'malformed', 'no pixels')
  const broken = pngChunk('tEXt', Buffer.from('a\0b'))
  broken.writeUInt32BE(0, broken.length - 4)
  assert.equal(png(ihdr, broken, rest), 'malformed', 'a checksum that is wrong')
  const frame = JPEG.indexOf(Buffer.from('ffc0', 'hex'))
  const second = JPEG.subarray(frame, frame + 2 + JPEG.readUInt16BE(frame + 2))
  const two_frames = [JPEG.subarray(0, frame), second, JPEG.subarray(frame)]
  assert.equal(reasonOf(Buffer.concat(two_frames)), 'malformed', 'two frames')
  assert.equal(reasonOf(riff(riffChunk('EXIF', Buffer.from('II')), WEBP.subarray(12))), 'malformed', 'metadata first')
  assert.equal(
    reasonOf(riff(WEBP.subarray(12), riffChunk('EXIF', Buffer.from('II')))),
    'malformed',
    'simple, with more',
  )
})

test('metadata is not unpacked, and is bounded by the file', () => {
  const exif = Buffer.concat([Buffer.from('MM\0*\0\0\0\b\xff\xff', 'latin1'), Buffer.alloc(60_000, 0xff)])
  assert.equal(reasonOf(pngOf(3, 2, pngChunk('eXIf', exif))), 'taken')
  const length = Buffer.alloc(2)
  length.writeUInt16BE(exif.length + 2)
  const app1 = Buffer.concat([Buffer.from('ffe1', 'hex'), length, exif])
  assert.equal(reasonOf(Buffer.concat([JPEG.subarray(0, 2), app1, JPEG.subarray(2)])), 'taken')
})

test('ten million bytes of structure are read quickly', () => {
  const LENGTH = 9_999_000
  const many = (start: Buffer, unit: string, end: Buffer) =>
    Buffer.concat([start, Buffer.alloc(LENGTH, Buffer.from(unit, 'hex')), end])
  const hostile = [
    many(Buffer.from('ffd8ff', 'hex'), 'ff', Buffer.alloc(0)),
    many(JPEG.subarray(0, 2), 'ffe10002', JPEG.subarray(2)),
    many(JPEG.subarray(0, -2), 'ff00', JPEG.subarray(-2)),
    many(GIF.subarray(0, -1), '21fe00', Buffer.from(';')),
    many(Buffer.concat([GIF.subarray(0, -1), Buffer.from('21fe', 'hex')]), '0141', Buffer.from('\0;')),
    pngOf(3, 2, Buffer.alloc(LENGTH - (LENGTH % 12)).fill(pngChunk('tEXt', Buffer.alloc(0)))),
    riff(WEBP_ANIMATED.subarray(12), Buffer.alloc(LENGTH - (LENGTH % 8)).fill(riffChunk('ANMF', Buffer.alloc(0)))),
  ]
  for (const [index, bytes] of hostile.entries()) {
    const took_ms = cpuMsOf(() => void reasonOf(bytes))
    assert.ok(took_ms < DECODE_MS_MAX, `${index}: ${took_ms} ms`)
  }
})

test('any bytes are an image or are refused, also with a changed byte', () => {
  const picture = fc.constantFrom(...Object.values(PICTURES))
  const change = fc.record({ at: fc.nat(), value: fc.nat(255) })
  fc.assert(
    fc.property(
      picture,
      fc.array(change, { maxLength: 4 }),
      fc.uint8Array({ maxLength: 16 }),
      (bytes, changes, tail) => {
        const copy = Buffer.concat([bytes, tail])
        for (const { at, value } of changes) copy[at % copy.length] = value
        reasonOf(copy)
      },
    ),
    { numRuns: 3_000 },
  )
})
