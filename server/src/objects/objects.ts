// Stored files: bytes under random keys, nothing else. What a file is called, whose it is and whether its upload is
// complete are rows of the database; a store knows keys only. An object is born by a put, may be replaced as a whole
// by another put of the same key, and ends by a delete. A reader sees one put or the other, never a mix.
import { randomBytes } from 'node:crypto'
import type { Readable } from 'node:stream'

/** What a store knows of an object: its length in bytes and the SHA-256 of its bytes, in lower-case hex. */
export type StoredObject = { content_length: number; sha256: string }

/** Bytes `start` to `end` of an object, both included, as in an HTTP range. `end` is below the object's length. */
type ByteRange = { start: number; end: number }

/** An object that is being read in parts. It stays the same object when another one takes its key. */
export type OpenObject = {
  content_length: number
  /** As many bytes from `position` on as there are, at most `length`. */
  read: (position: number, length: number) => Promise<Buffer>
  close: () => Promise<void>
}

type PutOptions = {
  /**
   * Decides whether the bytes, which are all there and durable, may become the object: call `publish` and wait for it,
   * or throw. A completed upload stays as it is only if its row is locked from the check until `publish` has resolved,
   * which is what this is for. `publish` may be called once. Default: publish.
   */
  within?: (publish: () => Promise<StoredObject>) => Promise<void>
}

export type Objects = {
  /**
   * Stores exactly `content_length` bytes under `key`. When it resolves, bytes and name survive a power cut. A put of a
   * key that has an object replaces it in one step; of two puts at once the one that publishes last wins, whole.
   * A chunk of `body` is not looked at any more once the next one is asked for.
   * When it rejects, nothing has changed and nothing is left; only if the disk fails in the last step may the new bytes
   * be there all the same.
   * Rejects with ApiError UPLOAD_INVALID when the body is shorter or longer (`metadata.reason` is `too_short` or
   * `too_long`; of a longer body no more is read than shows it), with the body's own error when the body breaks off,
   * with the error of `within`, and with a system error (ENOSPC, EIO) when the disk fails.
   */
  put: (
    key: string,
    body: AsyncIterable<Uint8Array>,
    content_length: number,
    options?: PutOptions,
  ) => Promise<StoredObject>
  /** Null when there is no such object. The hash was taken while the bytes came in: no object is read for it. */
  stat: (key: string) => Promise<StoredObject | null>
  /**
   * The bytes as they are now, even if the object is replaced or deleted while they are read. Rejects with
   * ObjectNotFound. The stream must be read to its end or destroyed.
   */
  read: (key: string, range?: ByteRange) => Promise<Readable>
  /** For reading in parts. Rejects with ObjectNotFound. The caller closes it. */
  open: (key: string) => Promise<OpenObject>
  /**
   * Takes a damaged object out of the way: its key names nothing afterwards, for every process that uses the store. The
   * bytes are kept apart for the operator until the key is deleted. Resolves also when there is no such object.
   */
  setAside: (key: string) => Promise<void>
  /** An absolute path at which this machine finds the bytes, for reading only; null if the store has no such thing. */
  localPath: (key: string) => string | null
  /** Resolves also when there is no such object. */
  delete: (key: string) => Promise<void>
}

export class ObjectNotFound extends Error {
  readonly key: string
  constructor(key: string) {
    super(`There is no object ${key}.`)
    this.name = 'ObjectNotFound'
    this.key = key
  }
}

/** 128 random bits: nobody finds a key by guessing, and none says anything about what it stands for. */
export function newObjectKey(): string {
  return randomBytes(16).toString('hex')
}

const OBJECT_KEY = /^[0-9a-f]{32}$/

/** Stores ask this of every key, so that no other text ever becomes part of a path. */
export function isObjectKey(text: string): boolean {
  return OBJECT_KEY.test(text)
}
