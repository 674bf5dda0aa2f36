// What a file of a site is served as. The uploader's word counts when it says something; nothing of it reaches a header
// but a plain type, and text is UTF-8 whatever it claims, for other character sets are a way around escaping.

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
    // Engines' own files: bytes.
    data: 'application/octet-stream',
    pck: 'application/octet-stream',
    unityweb: 'application/octet-stream',
  }),
)
const BYTES = 'application/octet-stream'
const PLAIN_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}$/
const TEXT = /^text\/|^application\/(?:json|xml|manifest\+json)$|\+(?:json|xml)$/
/** Packed by the build, not to be unpacked by the browser. */
const ARCHIVE = /\.tar\.(?:gz|br)$/i

/**
 * Exports of game engines are compressed when they are built: `x.wasm.br` is served as wasm, with its encoding.
 * `uploaded` is the type given at the upload; a type that says no more than "bytes" gives way to the extension.
 */
export function contentTypeOf(path: string, uploaded: string | null): ContentType {
  const extension = extensionOf(path)
  if ((extension === 'br' || extension === 'gz') && !ARCHIVE.test(path)) {
    const inner = TYPES.get(extensionOf(path.slice(0, -extension.length - 1))) ?? BYTES
    return { content_type: withCharset(inner), content_encoding: extension === 'br' ? 'br' : 'gzip' }
  }
  const plain = uploaded?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const told = PLAIN_TYPE.test(plain) && plain !== BYTES ? plain : undefined
  return { content_type: withCharset(told ?? TYPES.get(extension) ?? BYTES), content_encoding: null }
}

/** A type that a route gives: plain, and text is UTF-8 here too. */
export function plainTypeOf(type: string): string | null {
  return PLAIN_TYPE.test(type) ? withCharset(type) : null
}

/** Whether packing pays: text, and code that is as wordy. */
export function isCompressible(type: string): boolean {
  return TEXT.test(type.split(';', 1)[0] ?? '') || type === 'application/wasm'
}

function extensionOf(path: string): string {
  return /\.([a-z0-9]{1,16})$/i.exec(path)?.[1]?.toLowerCase() ?? ''
}

function withCharset(type: string): string {
  return TEXT.test(type) ? `${type}; charset=utf-8` : type
}
