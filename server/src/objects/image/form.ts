// Shared by the readers of the formats. Missing bytes are a refusal of the picture, never an internal error.

/** `width` and `height`: of the picture or of its largest frame, in pixels. */
export type Image = { content_type: ImageType; width: number; height: number }
export type ImageType = 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp'

export class ImageRefused extends Error {
  readonly reason: 'format' | 'malformed' | 'trailing' | 'too_many_pixels'
  constructor(reason: ImageRefused['reason'], message: string) {
    super(message)
    this.name = 'ImageRefused'
    this.reason = reason
  }
}

export function malformed(what: string): ImageRefused {
  return new ImageRefused('malformed', `The picture is not well-formed: ${what}.`)
}

/** Requires that the picture, which was read to `end`, ends with the file. */
export function requireEnd(bytes: Buffer, end: number): void {
  if (end === bytes.length) return
  if (end > bytes.length) throw malformed('it ends too early')
  const message = `${bytes.length - end} byte(s) come after the end of the picture; save it without them.`
  throw new ImageRefused('trailing', message)
}

/** `length` bytes from `start`. Throws when the file is shorter. */
export function part(bytes: Buffer, start: number, length: number): Buffer {
  if (start + length > bytes.length) throw malformed('it ends too early')
  return bytes.subarray(start, start + length)
}
