// Chooses the form of a file of a site that a request gets, by the encodings that it accepts.

export type SiteEncoding = 'br' | 'gzip'

/** A file and its forms in other encodings (`x.js.br` for `x.js`). */
export type Forms<File> = { file: File | null; br: File | null; gzip: File | null }

export type ChosenForm<File> = {
  file: File
  /** The encoding to compress the file with; null: it is not compressed for the request. */
  packed: SiteEncoding | null
  /** The encoding to decompress the file from; null: it is not decompressed for the request. */
  unpacked: SiteEncoding | null
  /** Another request may get another form. */
  varies: boolean
}

export type FormOptions<File> = {
  /** The header of the request. */
  accept_encoding: string | undefined
  /** The request has a range, which is one of the plain file where the site has one. */
  wants_part: boolean
  /** Whether the file may be compressed for the request. */
  isPackable: (file: File) => boolean
}

type Encoded = { content_type: string; content_encoding: SiteEncoding | null }

/**
 * Returns the forms of the path of `own`. `br` and `gzip`: the files whose names have `.br` and `.gz` more. An uploaded
 * compressed file is the only form of its own path. An archive of the build is no form of another file.
 */
export function formsOfPath<File extends Encoded>(
  own: File | null,
  br: File | null,
  gzip: File | null,
): Forms<File> | null {
  if (own !== null && own.content_encoding !== null)
    return { file: null, br: null, gzip: null, [own.content_encoding]: own }
  const formOf = (form: File | null, encoding: SiteEncoding): File | null =>
    form?.content_encoding !== encoding ? null : { ...form, content_type: own?.content_type ?? form.content_type }
  const forms = { file: own, br: formOf(br, 'br'), gzip: formOf(gzip, 'gzip') }
  return Object.values(forms).every((form) => form === null) ? null : forms
}

/**
 * Prefers brotli, then gzip, then plain. A file that exists only compressed is decompressed for a request that accepts none
 * of its encodings. Returns null when the request refuses that too (`identity;q=0`).
 */
export function chooseForm<File extends { content_encoding: SiteEncoding | null }>(
  { file, br, gzip }: Forms<File>,
  { accept_encoding, wants_part, isPackable }: FormOptions<File>,
): ChosenForm<File> | null {
  const is_packable =
    file !== null && br === null && gzip === null && file.content_encoding === null && isPackable(file)
  const varies = is_packable || br !== null || gzip !== null
  const accepted = acceptedEncodings(accept_encoding)
  const unchanged = { packed: null, unpacked: null, varies }
  if (file !== null && (!varies || (wants_part && accepted.identity))) return { file, ...unchanged }
  const ready = accepted.br && br !== null ? br : accepted.gzip ? gzip : null
  if (ready !== null) return { file: ready, ...unchanged }
  if (file !== null) {
    const packed = !is_packable ? null : accepted.br ? 'br' : accepted.gzip ? 'gzip' : null
    return { file, ...unchanged, packed }
  }
  const stored = gzip ?? br
  if (stored === null || !accepted.identity) return null
  return { file: stored, ...unchanged, unpacked: stored.content_encoding }
}

const REFUSED = /;\s*q=0(?:\.0{0,3})?\s*$/i

/**
 * RFC 9110, 12.5.3. Weights other than zero are ignored: the smallest accepted form is sent. A client that sends no header
 * may be sent any encoding, but such clients (curl, game engines) seldom decompress: they get the plain form.
 */
export function acceptedEncodings(header: string | undefined): Record<SiteEncoding | 'identity', boolean> {
  if (header === undefined) return { br: false, gzip: false, identity: true }
  const accepted = new Map<string, boolean>()
  for (const item of header.toLowerCase().split(',')) accepted.set(item.split(';', 1)[0]!.trim(), !REFUSED.test(item))
  const any = accepted.get('*')
  return {
    br: accepted.get('br') ?? any ?? false,
    gzip: accepted.get('gzip') ?? accepted.get('x-gzip') ?? any ?? false,
    identity: accepted.get('identity') ?? any ?? true,
  }
}
