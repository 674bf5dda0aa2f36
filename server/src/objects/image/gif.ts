// GIF (87a, 89a): a screen, then frames and extensions, each ending with an empty block, and a trailer.
import { type Image, malformed, part, requireEnd } from './form.ts'

const HEADER_LENGTH = 13
const FRAME_LENGTH = 10
const EXTENSION = 0x21
const FRAME = 0x2c
const TRAILER = 0x3b
/** Frames of an animation. Bounds the time of a browser, which decodes frame by frame. */
const FRAMES_MAX = 1_000

export function readGif(bytes: Buffer): Image {
  const header = part(bytes, 0, HEADER_LENGTH)
  if (!/^GIF8[79]a$/.test(header.toString('latin1', 0, 6))) throw malformed('the version')
  let [width, height] = [header.readUInt16LE(6), header.readUInt16LE(8)]
  let at = HEADER_LENGTH + tableLength(header[10]!)
  let frames = 0
  // Each round advances by at least one byte.
  for (;;) {
    const kind = bytes[at]
    if (kind === undefined) throw malformed('it ends too early')
    if (kind === TRAILER) {
      if (frames === 0) throw malformed('it ends without pixels')
      requireEnd(bytes, at + 1)
      return { content_type: 'image/gif', width, height }
    }
    if (kind === EXTENSION) {
      at = endOfBlocks(bytes, at + 2)
    } else if (kind === FRAME) {
      frames++
      if (frames > FRAMES_MAX) throw malformed(`it has more than ${FRAMES_MAX} frames`)
      const frame = part(bytes, at, FRAME_LENGTH)
      width = Math.max(width, frame.readUInt16LE(1) + frame.readUInt16LE(5))
      height = Math.max(height, frame.readUInt16LE(3) + frame.readUInt16LE(7))
      // One byte before the blocks says how the pixels are coded.
      at = endOfBlocks(bytes, at + FRAME_LENGTH + tableLength(frame[9]!) + 1)
    } else {
      throw malformed('a block has no kind')
    }
  }
}

/** Bytes of the colour table that follows these flags. */
function tableLength(flags: number): number {
  return (flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 0x07) + 1)
}

function endOfBlocks(bytes: Buffer, start: number): number {
  for (let at = start, length = bytes[at]; length !== undefined; at += 1 + length, length = bytes[at]) {
    if (length === 0) return at + 1
  }
  throw malformed('it ends too early')
}
