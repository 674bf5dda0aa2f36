// The hash of a whole object, and the hashes of its blocks. The whole hash verifies an object that is read to its end. A
// block hash verifies one block without the rest. A file of one block has no list of block hashes.
import { createHash, hash } from 'node:crypto'
import { createReadStream } from 'node:fs'

/** Bytes of every block but the last. To verify one byte a whole block is read, in 0.1 ms. */
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

/** Whether the list has one hash for each block of an object of this length. */
export function isListOf(block_hashes: Buffer, content_length: number): boolean {
  return block_hashes.length === Math.ceil(content_length / BLOCK_BYTES) * HASH_BYTES
}

export function isBlock(block_hashes: Buffer, index: number, bytes: Uint8Array): boolean {
  const expected = block_hashes.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES)
  return expected.equals(hash('sha256', bytes, 'buffer'))
}

/** The SHA-256 of a local file, in hex. */
export async function contentHashOf(path: string): Promise<string> {
  const digest = createHash('sha256')
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) digest.update(chunk)
  return digest.digest('hex')
}
