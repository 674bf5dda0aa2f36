// WebP (RFC 9649): a RIFF file of chunks. The simple form is one chunk of pixels, lossy (VP8) or lossless (VP8L); the
// extended form begins with VP8X, which says the size of the canvas, and has animation frames (ANMF) or pixels.
import { type Image, malformed, part, requireEnd } from './form.ts'

type Size = { width: number; height: number }

const RIFF_LENGTH = 12
const CHUNK_HEAD_LENGTH = 8
/** Frames of an animation. Bounds the time of a browser, which decodes frame by frame. */
const FRAMES_MAX = 1_000
/** Chunks of one picture: its frames and its metadata. */
const CHUNKS_MAX = 4_096
const ANMF_HEAD_LENGTH = 16
const LOSSY_START = 0x9d012a
const LOSSLESS_START = 0x2f

export function readWebp(bytes: Buffer): Image {
  const head = part(bytes, 0, RIFF_LENGTH)
  if (head.toString('latin1', 8, 12) !== 'WEBP') throw malformed('it is no WEBP')
  requireEnd(bytes, head.readUInt32LE(4) + 8)
  const chunks = chunksOf(bytes, RIFF_LENGTH)
  const first = chunks[0]
  if (first === undefined || !['VP8 ', 'VP8L', 'VP8X'].includes(first.type)) throw malformed('it begins without pixels')
  if (first.type !== 'VP8X' && chunks.length > 1) throw malformed('chunks that only the extended form has')
  const pixels = chunks.filter(({ type }) => type === 'VP8 ' || type === 'VP8L' || type === 'ANMF')
  if (pixels.length === 0) throw malformed('it ends without pixels')
  if (pixels.length > FRAMES_MAX) throw malformed(`it has more than ${FRAMES_MAX} frames`)
  const sizes = [first, ...pixels].map(sizeOf)
  const width = Math.max(...sizes.map((size) => size.width))
  const height = Math.max(...sizes.map((size) => size.height))
  return { content_type: 'image/webp', width, height }
}

type Chunk = { type: string; data: Buffer }

function chunksOf(bytes: Buffer, start: number): Chunk[] {
  const chunks: Chunk[] = []
  let at = start
  while (at < bytes.length) {
    if (chunks.length === CHUNKS_MAX) throw malformed(`it has more than ${CHUNKS_MAX} chunks`)
    const length = part(bytes, at, CHUNK_HEAD_LENGTH).readUInt32LE(4)
    chunks.push({ type: bytes.toString('latin1', at, at + 4), data: part(bytes, at + CHUNK_HEAD_LENGTH, length) })
    // Odd lengths are padded.
    at += CHUNK_HEAD_LENGTH + length + (length % 2)
  }
  requireEnd(bytes, at)
  return chunks
}

function sizeOf({ type, data }: Chunk): Size {
  if (type === 'VP8X') {
    part(data, 0, 10)
    return { width: data.readUIntLE(4, 3) + 1, height: data.readUIntLE(7, 3) + 1 }
  }
  if (type === 'ANMF') {
    part(data, 0, ANMF_HEAD_LENGTH)
    const frame = {
      width: 2 * data.readUIntLE(0, 3) + data.readUIntLE(6, 3) + 1,
      height: 2 * data.readUIntLE(3, 3) + data.readUIntLE(9, 3) + 1,
    }
    const inner = chunksOf(data, ANMF_HEAD_LENGTH).filter((chunk) => chunk.type === 'VP8 ' || chunk.type === 'VP8L')
    if (inner.length !== 1) throw malformed('a frame without pixels')
    const { width, height } = sizeOf(inner[0]!)
    return { width: Math.max(frame.width, width), height: Math.max(frame.height, height) }
  }
  if (type === 'VP8L') {
    const head = part(data, 0, 5)
    if (head[0] !== LOSSLESS_START) throw malformed('the start of its pixels')
    const bits = head.readUInt32LE(1)
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
  }
  const head = part(data, 0, 10)
  if (head.readUIntBE(3, 3) !== LOSSY_START) throw malformed('the start of its pixels')
  return { width: head.readUInt16LE(6) & 0x3fff, height: head.readUInt16LE(8) & 0x3fff }
}
