// JPEG (ITU T.81): segments, each with a marker and usually a length. A start of scan (SOS) is followed by coded data, in
// which every 0xFF is followed by 0x00 or by a restart marker. Data after the end, such as the second picture that some
// cameras append, is refused.
import { type Image, malformed, part, requireEnd } from './form.ts'

const SOI = 0xd8
const EOI = 0xd9
const SOS = 0xda
const DNL = 0xdc
const TEM = 0x01
/** Segments of one picture. A progressive one has some dozens, and a colour profile some more. */
const SEGMENTS_MAX = 10_000
/** Every kind of start of frame: 0xC0 to 0xCF without DHT (C4), JPG (C8) and DAC (CC). */
const isFrame = (marker: number): boolean => marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)
const isRestart = (marker: number): boolean => marker >= 0xd0 && marker <= 0xd7

export function readJpeg(bytes: Buffer): Image {
  let size: { width: number; height: number } | null = null
  let has_scan = false
  let at = 2
  for (let count = 0; count < SEGMENTS_MAX; count++) {
    if (bytes[at] !== 0xff) throw malformed('a marker is missing')
    // Fill bytes may precede a marker.
    while (bytes[at + 1] === 0xff) at++
    const marker = part(bytes, at, 2)[1]!
    at += 2
    if (marker === EOI) {
      if (size === null || !has_scan) throw malformed('it ends without pixels')
      requireEnd(bytes, at)
      return { content_type: 'image/jpeg', ...size }
    }
    // The start of another picture, a height after the pixels, or a marker that is valid only inside scans.
    if (marker === SOI || marker === DNL || marker === TEM || marker === 0 || isRestart(marker)) {
      throw malformed(`a marker ${marker.toString(16)}`)
    }
    const length = part(bytes, at, 2).readUInt16BE(0)
    if (length < 2) throw malformed('the length of a segment')
    const segment = part(bytes, at, length)
    at += length
    if (isFrame(marker)) {
      if (size !== null || length < 8) throw malformed('it has one frame')
      size = { height: segment.readUInt16BE(3), width: segment.readUInt16BE(5) }
    } else if (marker === SOS) {
      if (size === null) throw malformed('pixels come before their size')
      has_scan = true
      at = endOfScan(bytes, at)
    }
  }
  throw malformed(`it has more than ${SEGMENTS_MAX} segments`)
}

/** The position of the next marker that is not part of the coded data. */
function endOfScan(bytes: Buffer, start: number): number {
  for (let at = start; at + 1 < bytes.length; at++) {
    if (bytes[at] !== 0xff) continue
    const next = bytes[at + 1]!
    if (next !== 0 && next !== 0xff && !isRestart(next)) return at
  }
  throw malformed('it ends too early')
}
