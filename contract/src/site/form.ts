// Chooses the form of a file of a site that a request gets, by the encodings that it accepts.

export type SiteEncoding = 'br' | 'gzip'

/** A file and its forms in other encodings (`x.js.br` for `x.js`). */
export type Forms<File> = { file: File | null; br: File | null; gzip: File | null }

export type ChosenForm<File> = {
  file: File
  /** The encoding to compress the file with; null: its bytes are sent unchanged. */
  packed: SiteEncoding | null
  /** Another request may get another form. */
  varies: boolean
}

export type FormOptions<File> = {
  /** The header of the request. */
  accept_encoding: string | undefined
  /** The request has a range, which is always one of the plain file. */
  wants_part: boolean
  /** Whether the file may be compressed for the request. */
  isPackable: (file: File) => boolean
}

/** Prefers brotli, then gzip, then plain. Returns null when no available form is accepted. */
export function chooseForm<File extends { content_encoding: SiteEncoding | null }>(
  { file, br, gzip }: Forms<File>,
  { accept_encoding, wants_part, isPackable }: FormOptions<File>,
): ChosenForm<File> | null {
  const is_packable =
    file !== null && br === null && gzip === null && file.content_encoding === null && isPackable(file)
  const varies = is_packable || br !== null || gzip !== null
  if (file !== null && (!varies || wants_part || accept_encoding === undefined)) return { file, packed: null, varies }
  // Without the header every encoding is accepted (RFC 9110, 12.5.3).
  const accepted = accept_encoding === undefined ? { br: true, gzip: true } : acceptedEncodings(accept_encoding)
  const ready = accepted.br && br !== null ? br : accepted.gzip ? gzip : null
  if (ready !== null) return { file: ready, packed: null, varies }
  if (file === null) return null
  const packed = !is_packable ? null : accepted.br ? 'br' : accepted.gzip ? 'gzip' : null
  return { file, packed, varies }
}

const REFUSED = /;\s*q=0(?:\.0{0,3})?\s*$/i

/** RFC 9110, 12.5.3. Weights other than zero are ignored: the smallest accepted form is sent. */
function acceptedEncodings(header: string): Record<SiteEncoding, boolean> {
  const accepted = new Map<string, boolean>()
  for (const item of header.toLowerCase().split(',')) accepted.set(item.split(';', 1)[0]!.trim(), !REFUSED.test(item))
  const any = accepted.get('*') ?? false
  return { br: accepted.get('br') ?? any, gzip: accepted.get('gzip') ?? accepted.get('x-gzip') ?? any }
}
