// A file as Unity compresses it by brotli, with its comment in the head. Node cannot write the comment.
import assert from 'node:assert'

/** The window of 4 MB, and the meta-block of the comment (RFC 7932, 9.1 and 9.2). */
export const UNITY_BROTLI_HEAD = Buffer.concat([
  Buffer.from('6b8d00', 'hex'),
  Buffer.from('UnityWeb Compressed Content (brotli)'),
])

/** The text as a meta-block that is stored and not compressed, and the mark of the end. */
export function unityBrotli(text: string): Buffer {
  const bytes = Buffer.from(text)
  assert.ok(bytes.length > 0 && bytes.length <= 65_536)
  const head = Buffer.alloc(3)
  head.writeUIntLE(((bytes.length - 1) << 3) | (1 << 19), 0, 3)
  return Buffer.concat([UNITY_BROTLI_HEAD, head, bytes, Buffer.from([3])])
}
