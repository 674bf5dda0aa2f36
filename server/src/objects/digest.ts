// The hash of an object as a whole, and the hashes of its blocks. The whole hash proves an object that is read to its
// end; the block hashes prove a part of it without the rest. A file of one block has no list: its own hash is enough.
import { createHash, hash } from 'node:crypto'

/** Of every block but the last. Proving one byte costs reading this many: 0.1 ms, and 32 bytes of list. */
export const BLOCK_BYTES = 128 * 1024
const HASH_BYTES = 32

export type Digest = {
  content_length: number
  /** Lower-case hex. */
  sha256: string
  /** The SHA-256 of each block, one after the other; null for an object of one block. */
  block_hashes: Buffer | null
}

export type DigestBuilder = { update: (bytes: Uint8Array) => void; end: () => Digest }

export function createDigest(): DigestBuilder {
  const whole = createHash('sha256')
  const hashes: Buffer[] = []
  let block = createHash('sha256')
  let block_bytes = 0
  let content_length = 0

  const endBlock = (): void => {
    hashes.push(block.digest())
    block = createHash('sha256')
    block_bytes = 0
  }

  return {
    update(bytes) {
      whole.update(bytes)
      content_length += bytes.length
      for (let at = 0; at < bytes.length; ) {
        const piece = bytes.subarray(at, at + BLOCK_BYTES - block_bytes)
        block.update(piece)
        block_bytes += piece.length
        at += piece.length
        if (block_bytes === BLOCK_BYTES) endBlock()
      }
    },
    end() {
      if (block_bytes > 0) endBlock()
      const block_hashes = hashes.length > 1 ? Buffer.concat(hashes) : null
      return { content_length, sha256: whole.digest('hex'), block_hashes }
    },
  }
}

export function digestOf(bytes: Uint8Array): Digest {
  const digest = createDigest()
  digest.update(bytes)
  return digest.end()
}

export function hasBlockHashes(content_length: number): boolean {
  return content_length > BLOCK_BYTES
}

/** Whether a list has as many hashes as an object of this length has blocks. */
export function isListOf(block_hashes: Buffer, content_length: number): boolean {
  return block_hashes.length === Math.ceil(content_length / BLOCK_BYTES) * HASH_BYTES
}

export function isBlock(block_hashes: Buffer, index: number, bytes: Uint8Array): boolean {
  const expected = block_hashes.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES)
  return expected.equals(hash('sha256', bytes, 'buffer'))
}
