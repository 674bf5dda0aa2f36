// The content type of a served file of a site. A specific type of the upload is used; only its plain form reaches a header.
// Text is served as UTF-8 whatever the type claims, because other character sets can bypass escaping.

export type ContentType = { content_type: string; content_encoding: 'br' | 'gzip' | null }

const TYPES = new Map(
  Object.entries({
    html: 'text/html',
    htm: 'text/html',
    css: 'text/css',
    js: 'text/javascript',
    mjs: 'text/javascript',
    json: 'application/json',
    map: 'application/json',
    webmanifest: 'application/manifest+json',
    txt: 'text/plain',
    md: 'text/markdown',
    csv: 'text/csv',
    xml: 'application/xml',
    svg: 'image/svg+xml',
    png: 'image/png',
    jpg: 'image/jpeg',
    jpeg: 'image/jpeg',
    gif: 'image/gif',
    webp: 'image/webp',
    avif: 'image/avif',
    ico: 'image/x-icon',
    bmp: 'image/bmp',
    ktx2: 'image/ktx2',
    mp3: 'audio/mpeg',
    ogg: 'audio/ogg',
    wav: 'audio/wav',
    m4a: 'audio/mp4',
    flac: 'audio/flac',
    mp4: 'video/mp4',
    webm: 'video/webm',
    woff: 'font/woff',
    woff2: 'font/woff2',
    ttf: 'font/ttf',
    otf: 'font/otf',
    wasm: 'application/wasm',
    pdf: 'application/pdf',
    zip: 'application/zip',
    glb: 'model/gltf-binary',
    gltf: 'model/gltf+json',
    // Formats of game engines.
    data: 'application/octet-stream',
    pck: 'application/octet-stream',
  }),
)
const BYTES = 'application/octet-stream'
const PLAIN_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}$/
const TEXT = /^text\/|^application\/(?:json|xml|manifest\+json)$|\+(?:json|xml)$/
/** Unity writes this extension where its loader may have to decompress: the name does not say how the file is compressed. */
const UNITY_EXTENSION = 'unityweb'
/** Unity writes this comment into the head of a brotli file, which has no magic number. */
const UNITY_BROTLI = [...'UnityWeb Compressed Content (brotli)'].map((letter) => letter.charCodeAt(0))
/** Bits before the comment: of the window, and of the meta-block that holds the comment (RFC 7932, 9.1 and 9.2). */
const UNITY_BROTLI_HEADS = [1, 4, 7].map((window_bits) => Math.ceil((window_bits + 1 + 2 + 1 + 2 + 8) / 8))
const GZIP_MAGIC = [0x1f, 0x8b, 0x08]
/** First bytes of a file that headEncoding() reads. */
export const HEAD_BYTES = 64

/** Archives of the build, which the browser must not decompress. */
const ARCHIVE = /\.tar\.(?:gz|br)$/i

/**
 * Game engines export compressed files: `x.wasm.br` is served as wasm with its encoding. The encoding of `x.wasm.unityweb` is
 * in its first bytes: headEncoding() returns it. `uploaded`: the type given at the upload. For `application/octet-stream` the
 * extension decides instead.
 */
export function contentTypeOf(path: string, uploaded: string | null): ContentType {
  const extension = extensionOf(path)
  if (['br', 'gz', UNITY_EXTENSION].includes(extension) && !ARCHIVE.test(path)) {
    const inner = TYPES.get(extensionOf(path.slice(0, -extension.length - 1))) ?? BYTES
    const content_encoding = extension === 'br' ? 'br' : extension === 'gz' ? 'gzip' : null
    return { content_type: withCharset(inner), content_encoding }
  }
  const plain = uploaded?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const specific = PLAIN_TYPE.test(plain) && plain !== BYTES ? plain : undefined
  return { content_type: withCharset(specific ?? TYPES.get(extension) ?? BYTES), content_encoding: null }
}

/** Whether the first bytes of the file, and not its name, say how it is compressed. */
export function isEncodedByHead(path: string): boolean {
  return extensionOf(path) === UNITY_EXTENSION
}

/** Returns how a file of Unity is compressed. `head`: its first HEAD_BYTES. Null: it is not compressed. */
export function headEncoding(head: Uint8Array): 'br' | 'gzip' | null {
  const hasAt = (position: number, bytes: readonly number[]) => bytes.every((byte, at) => head[position + at] === byte)
  if (hasAt(0, GZIP_MAGIC)) return 'gzip'
  return UNITY_BROTLI_HEADS.some((position) => hasAt(position, UNITY_BROTLI)) ? 'br' : null
}

/** The type of a route, in its plain form; null when it is not valid. Text is UTF-8 here too. */
export function plainTypeOf(type: string): string | null {
  return PLAIN_TYPE.test(type) ? withCharset(type) : null
}

/** Whether compression is worthwhile: text and wasm. */
export function isCompressible(type: string): boolean {
  return TEXT.test(type.split(';', 1)[0] ?? '') || type === 'application/wasm'
}

function extensionOf(path: string): string {
  return /\.([a-z0-9]{1,16})$/i.exec(path)?.[1]?.toLowerCase() ?? ''
}

function withCharset(type: string): string {
  return TEXT.test(type) ? `${type}; charset=utf-8` : type
}
