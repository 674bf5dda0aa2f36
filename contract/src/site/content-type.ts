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
    unityweb: 'application/octet-stream',
  }),
)
const BYTES = 'application/octet-stream'
const PLAIN_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}$/
const TEXT = /^text\/|^application\/(?:json|xml|manifest\+json)$|\+(?:json|xml)$/
/** Archives of the build, which the browser must not decompress. */
const ARCHIVE = /\.tar\.(?:gz|br)$/i

/**
 * Game engines export compressed files: `x.wasm.br` is served as wasm with its encoding. `uploaded`: the type given at the
 * upload. For `application/octet-stream` the extension decides instead.
 */
export function contentTypeOf(path: string, uploaded: string | null): ContentType {
  const extension = extensionOf(path)
  if ((extension === 'br' || extension === 'gz') && !ARCHIVE.test(path)) {
    const inner = TYPES.get(extensionOf(path.slice(0, -extension.length - 1))) ?? BYTES
    return { content_type: withCharset(inner), content_encoding: extension === 'br' ? 'br' : 'gzip' }
  }
  const plain = uploaded?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const specific = PLAIN_TYPE.test(plain) && plain !== BYTES ? plain : undefined
  return { content_type: withCharset(specific ?? TYPES.get(extension) ?? BYTES), content_encoding: null }
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
