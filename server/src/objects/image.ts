// Pictures that people upload, looked at byte by byte: what they are is what they say of themselves from the first byte to
// the last, and nothing may come after it. They are never decoded, so a picture that unpacks to gigabytes costs us nothing;
// it is refused for the size that it claims, for it would cost those who look at it. Formats that can carry scripts (SVG)
// are none of these.
import { type Image, ImageRefused, type ImageType } from './image/form.ts'
import { readGif } from './image/gif.ts'
import { readJpeg } from './image/jpeg.ts'
import { readPng } from './image/png.ts'
import { readWebp } from './image/webp.ts'

export { type Image, ImageRefused, type ImageType } from './image/form.ts'

/** Pixels of a side. */
export const IMAGE_SIDE_MAX = 8_192
/** Pixels of the whole: 64 MB in the memory of who looks at it. */
export const IMAGE_PIXELS_MAX = 4_096 * 4_096

const FORMATS = [
  { read: readPng, first: Buffer.from('89504e470d0a1a0a', 'hex') },
  { read: readJpeg, first: Buffer.from('ffd8ff', 'hex') },
  { read: readGif, first: Buffer.from('GIF8') },
  { read: readWebp, first: Buffer.from('RIFF') },
] as const

/** Throws ImageRefused. */
export function readImage(bytes: Buffer): Image {
  const format = FORMATS.find(({ first }) => bytes.subarray(0, first.length).equals(first))
  if (format === undefined) throw new ImageRefused('format', 'The file is none of PNG, JPEG, GIF and WebP.')
  const image = format.read(bytes)
  const { width, height } = image
  if (width === 0 || height === 0) throw new ImageRefused('malformed', 'The picture has no pixels.')
  if (width > IMAGE_SIDE_MAX || height > IMAGE_SIDE_MAX || width * height > IMAGE_PIXELS_MAX) {
    const limit = `${IMAGE_SIDE_MAX} a side and ${IMAGE_PIXELS_MAX} in all`
    throw new ImageRefused('too_many_pixels', `The picture has ${width} x ${height} pixels; it may have ${limit}.`)
  }
  return image
}

const EXTENSIONS = { 'image/png': 'png', 'image/jpeg': 'jpg', 'image/gif': 'gif', 'image/webp': 'webp' } as const

/** Where a picture is on the host of all games' pictures (config.ts: mediaHost). */
export function imagePath({ sha256, content_type }: { sha256: string; content_type: ImageType }): string {
  return `/${sha256}.${EXTENSIONS[content_type]}`
}
