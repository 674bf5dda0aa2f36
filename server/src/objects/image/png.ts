// PNG (W3C, third edition): a signature and chunks, IHDR first, IEND last. Animated ones have frames (fcTL) within the size
// of IHDR.
import { crc32 } from 'node:zlib'
import { type Image, malformed, part, requireEnd } from './form.ts'

const SIGNATURE_LENGTH = 8
/** Length, type and checksum. */
const CHUNK_FRAME_LENGTH = 12
const IHDR_LENGTH = 13
/** Chunks of one picture. Encoders write pixels in chunks of 8 KB and more. */
const CHUNKS_MAX = 20_000

export function readPng(bytes: Buffer): Image {
  let size: { width: number; height: number } | null = null
  let has_data = false
  let at = SIGNATURE_LENGTH
  for (let count = 0; count < CHUNKS_MAX; count++) {
    const length = part(bytes, at, CHUNK_FRAME_LENGTH).readUInt32BE(0)
    const chunk = part(bytes, at, CHUNK_FRAME_LENGTH + length)
    const type = chunk.toString('latin1', 4, 8)
    const data = chunk.subarray(8, 8 + length)
    if (!/^[A-Za-z]{4}$/.test(type)) throw malformed('a chunk has no type')
    if (crc32(chunk.subarray(4, 8 + length)) !== chunk.readUInt32BE(8 + length))
      throw malformed(`the checksum of ${type}`)
    if ((size === null) !== (type === 'IHDR')) throw malformed('it has one IHDR, and that is first')
    at += chunk.length
    if (type === 'IHDR') {
      if (length !== IHDR_LENGTH) throw malformed('the length of IHDR')
      size = { width: data.readUInt32BE(0), height: data.readUInt32BE(4) }
    } else if (type === 'IDAT') {
      has_data = true
    } else if (type === 'IEND') {
      if (length !== 0 || !has_data) throw malformed('it ends without pixels')
      requireEnd(bytes, at)
      return { content_type: 'image/png', ...size! }
    }
  }
  throw malformed(`it has more than ${CHUNKS_MAX} chunks`)
}
