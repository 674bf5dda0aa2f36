// Reads type and size of uploaded pictures. A picture is parsed from its first byte to its last, and nothing may follow.
// Pixels are never decoded, so a picture that unpacks to gigabytes costs the platform nothing. It is refused for the size
// that it claims, because it would cost the browsers that show it. Formats that can contain scripts (SVG) are refused.
import { type Image, ImageRefused, type ImageType } from './form.ts'
import { readGif } from './gif.ts'
import { readJpeg } from './jpeg.ts'
import { readPng } from './png.ts'
import { readWebp } from './webp.ts'

export { type Image, ImageRefused, type ImageType } from './form.ts'

/** Pixels of one side. Common browsers and graphics cards show that size. */
export const IMAGE_SIDE_MAX = 8_192
/** Pixels of the whole picture: 64 MB in the memory of a browser. */
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

/** The path of a picture on the host of all games' pictures (config.ts: mediaHost). */
export function imagePath({ sha256, content_type }: { sha256: string; content_type: ImageType }): string {
  return `/${sha256}.${EXTENSIONS[content_type]}`
}
