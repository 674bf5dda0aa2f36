// Small pictures, 3 x 2 and red, as an encoder wrote them, and larger ones that are built to claim something.
import { crc32 } from 'node:zlib'

const bytes = (base64: string): Buffer => Buffer.from(base64, 'base64')

export const PNG = bytes(
  'iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAYAAACddGYaAAAAEklEQVR4AWL6z8DwH4aZGJAAAAAA//+GpNPhAAAABklEQVQDAHTzBf+1yIrkAAAAAElFTkSuQmCC',
)
export const JPEG = bytes(
  '/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19iZ2hnPk1xeXBkeFxlZ2P/2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2P/wAARCAACAAMDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAX/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFQEBAQAAAAAAAAAAAAAAAAAABQb/xAAUEQEAAAAAAAAAAAAAAAAAAAAA/9oADAMBAAIRAxEAPwCKALXj/9k=',
)
/** Its screen is 3 x 2, and so are both of its frames. */
export const GIF = Buffer.concat([
  Buffer.from('GIF89a\x03\0\x02\0\x80\0\0', 'latin1'),
  Buffer.from('ff0000ffffff', 'hex'),
  ...[0, 1].map(() =>
    Buffer.concat([Buffer.from('21f9040a0a000000', 'hex'), Buffer.from('2c00000000030002000002028c5300', 'hex')]),
  ),
  Buffer.from(';'),
])
const LOSSY = bytes('VlA4ICwAAACQAQCdASoDAAIAAsBMJaACdLoAA5gA/u5DH+5sc4twV/9tD/9aH/60P+lAAA==')
const LOSSLESS = bytes('VlA4TA8AAAAvAkAAAAcQ/Y/+ByKi/wEA')
export const WEBP = riff(LOSSLESS)
export const WEBP_LOSSY = riff(LOSSY)
export const WEBP_ANIMATED = riff(
  riffChunk('VP8X', Buffer.from('02000000020000010000', 'hex')),
  riffChunk('ANIM', Buffer.alloc(6)),
  ...[0, 1].map(() =>
    riffChunk(
      'ANMF',
      Buffer.concat([Buffer.from('000000000000020000010000640000', 'hex'), Buffer.from([0]), LOSSLESS]),
    ),
  ),
)

export const SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>globalThis.ran = true</script></svg>'
export const HTML = '<!doctype html><script>globalThis.ran = true</script>'

export function riff(...chunks: Buffer[]): Buffer {
  const body = Buffer.concat(chunks)
  const head = Buffer.from('RIFF\0\0\0\0WEBP', 'latin1')
  head.writeUInt32LE(body.length + 4, 4)
  return Buffer.concat([head, body])
}

export function riffChunk(type: string, data: Buffer): Buffer {
  const head = Buffer.from(`${type}\0\0\0\0`, 'latin1')
  head.writeUInt32LE(data.length, 4)
  return Buffer.concat([head, data, Buffer.alloc(data.length % 2)])
}

export function pngChunk(type: string, data: Buffer): Buffer {
  const chunk = Buffer.concat([Buffer.alloc(4), Buffer.from(type, 'latin1'), data, Buffer.alloc(4)])
  chunk.writeUInt32BE(data.length, 0)
  chunk.writeUInt32BE(crc32(chunk.subarray(4, 8 + data.length)), 8 + data.length)
  return chunk
}

/** Well-formed, as far as one can tell without decoding it. `more` stands before its pixels. */
export function pngOf(width: number, height: number, more: Buffer = Buffer.alloc(0)): Buffer {
  const header = Buffer.from('00000000000000000806000000', 'hex')
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  const pixels = PNG.subarray(PNG.indexOf('IDAT') - 4)
  return Buffer.concat([PNG.subarray(0, 8), pngChunk('IHDR', header), more, pixels])
}

/** The frame's height and width in a JPEG. */
export function jpegOf(width: number, height: number): Buffer {
  const copy = Buffer.from(JPEG)
  const frame = copy.indexOf(Buffer.from('ffc0', 'hex'))
  copy.writeUInt16BE(height, frame + 5)
  copy.writeUInt16BE(width, frame + 7)
  return copy
}
