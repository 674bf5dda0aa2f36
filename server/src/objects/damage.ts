// Reads stored objects and detects damage: every function here returns bytes that have the recorded hash, or throws
// ObjectDamaged. Code that executes or serves stored bytes reads them through these functions.
import { createHash, hash } from 'node:crypto'
import { BLOCK_BYTES, createDigest, type Digest, isBlock } from './digest.ts'
import { ObjectNotFound, type Objects, type OpenObject } from './objects.ts'

/**
 * - `bytes`: the bytes do not have the recorded hash.
 * - `length`: there are more or fewer bytes than recorded.
 * - `missing`: there is no object of this key.
 * - `unreadable`: the disk reports an error.
 * - `no_hash`: the upload is complete and its hash was not recorded, so the bytes cannot be verified.
 */
export type DamageReason = 'bytes' | 'length' | 'missing' | 'unreadable' | 'no_hash'

export class ObjectDamaged extends Error {
  readonly object_key: string
  readonly reason: DamageReason
  constructor(object_key: string, reason: DamageReason, cause?: unknown) {
    super(`The stored object ${object_key} is damaged (${reason}).`, { cause })
    this.name = 'ObjectDamaged'
    this.object_key = object_key
    this.reason = reason
  }
}

/** The row of an object. */
export type Recorded = { object_key: string; content_length: number; sha256: string | null }

/** Errors of a file system for lost bytes: a failed read, or a failed checksum of its own. */
const UNREADABLE = new Set(['EIO', 'EBADMSG', 'EUCLEAN', 'EILSEQ'])

/** The error as ObjectDamaged where it means damage; any other error unchanged. */
export function damageOf(object_key: string, error: unknown): unknown {
  if (error instanceof ObjectNotFound) return new ObjectDamaged(object_key, 'missing', error)
  const { code } = error as NodeJS.ErrnoException
  return code !== undefined && UNREADABLE.has(code) ? new ObjectDamaged(object_key, 'unreadable', error) : error
}

/** Whether these are all bytes of the object. */
export function isSound({ content_length, sha256 }: Recorded, bytes: Uint8Array): boolean {
  return bytes.length === content_length && hash('sha256', bytes) === sha256
}

/** Reads the whole object into memory: for small objects. */
export async function readSound(objects: Objects, recorded: Recorded): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of soundBytes(objects, recorded)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** Reads the whole object in chunks. They are verified only when the iteration has ended without an error. */
export async function* soundBytes(objects: Objects, recorded: Recorded): AsyncGenerator<Uint8Array> {
  const { object_key, content_length, sha256 } = recorded
  if (sha256 === null) throw new ObjectDamaged(object_key, 'no_hash')
  const whole = createHash('sha256')
  let left = content_length
  try {
    for await (const chunk of (await objects.read(object_key)) as AsyncIterable<Buffer>) {
      left -= chunk.length
      if (left < 0) throw new ObjectDamaged(object_key, 'length')
      whole.update(chunk)
      yield chunk
    }
  } catch (error) {
    throw damageOf(object_key, error)
  }
  if (left > 0) throw new ObjectDamaged(object_key, 'length')
  if (whole.digest('hex') !== sha256) throw new ObjectDamaged(object_key, 'bytes')
}

/** Reads and verifies the whole object. `pace` is awaited after each chunk, to bound the rate. */
export async function digestSound(
  objects: Objects,
  recorded: Recorded,
  pace: (bytes: number) => Promise<void> | void = () => undefined,
): Promise<Digest> {
  const digest = createDigest()
  for await (const chunk of soundBytes(objects, recorded)) {
    digest.update(chunk)
    await pace(chunk.length)
  }
  return digest.end()
}

/** Reads and verifies one block of an open object. */
export async function readBlock(
  object: OpenObject,
  { object_key, content_length }: Recorded,
  block_hashes: Buffer,
  index: number,
): Promise<Buffer> {
  const position = index * BLOCK_BYTES
  const length = Math.min(BLOCK_BYTES, content_length - position)
  let bytes: Buffer
  try {
    bytes = await object.read(position, length)
  } catch (error) {
    throw damageOf(object_key, error)
  }
  if (object.content_length !== content_length || bytes.length !== length) throw new ObjectDamaged(object_key, 'length')
  if (!isBlock(block_hashes, index, bytes)) throw new ObjectDamaged(object_key, 'bytes')
  return bytes
}
