// Stored files: bytes under random keys. The name of a file, its owner and the state of its upload are rows of the
// database. A put creates an object, or replaces the whole object of its key; a delete removes it. A reader sees one put or
// the other, never a mix.
import { randomBytes } from 'node:crypto'
import type { Readable } from 'node:stream'

/** `content_length`: in bytes. `sha256`: in lower-case hex. */
export type StoredObject = { content_length: number; sha256: string }

/** Bytes `start` to `end` of an object, both included, as in an HTTP range. `end` is below the object's length. */
export type ByteRange = { start: number; end: number }

/** An object that is read in parts. It stays the same object when its key is replaced. */
export type OpenObject = {
  content_length: number
  /** The bytes from `position` on, at most `length`, fewer at the end of the object. */
  read: (position: number, length: number) => Promise<Buffer>
  close: () => Promise<void>
}

export type PutOptions = {
  /**
   * Decides whether the bytes, which are complete and durable, become the object: it awaits `publish`, or throws. It may
   * lock a row from its check until `publish` has resolved, so that a completed upload does not change. `publish` may be
   * called once. Default: publish.
   */
  within?: (publish: () => Promise<StoredObject>) => Promise<void>
}

export type Objects = {
  /**
   * Stores exactly `content_length` bytes under `key`. When it resolves, bytes and name survive a power cut. An existing
   * object is replaced in one step. Of two puts at once the one that publishes last wins, whole.
   * A chunk of `body` is not read any more once the next one is requested.
   * When it rejects, nothing has changed and nothing is left. Only when the disk or the service fails in the last step may the
   * new bytes be stored.
   * Rejects with ApiError UPLOAD_INVALID when the body has another length. `metadata.reason` is then `too_short` or
   * `too_long`, and a longer body is not read to its end. Rejects with the body's error when the body breaks off, with the
   * error of `within`, and with a system error (ENOSPC, EIO) when the disk fails.
   */
  put: (
    key: string,
    body: AsyncIterable<Uint8Array>,
    content_length: number,
    options?: PutOptions,
  ) => Promise<StoredObject>
  /**
   * Makes a new object `to` with the bytes of `from`. Afterwards each is replaced and deleted without an
   * effect on the other. Copies no bytes where the store can avoid it. Rejects with ObjectNotFound, and with a system error when
   * the disk fails.
   */
  copy: (from: string, to: string) => Promise<StoredObject>
  /** Null when there is no such object. Usually the hash was stored by the put, and the bytes are not read. */
  stat: (key: string) => Promise<StoredObject | null>
  /**
   * The current bytes, even if the object is replaced or deleted while they are read. Rejects with
   * ObjectNotFound. The stream must be read to its end or destroyed.
   */
  read: (key: string, range?: ByteRange) => Promise<Readable>
  /** Opens an object to read it in parts. Rejects with ObjectNotFound. The caller closes it. */
  open: (key: string) => Promise<OpenObject>
  /**
   * Moves a damaged object aside, so that its key has no object any more, in every process. The bytes are kept for the
   * operator until the key is deleted. Resolves also when there is no such object.
   */
  setAside: (key: string) => Promise<void>
  /** The absolute path of the bytes on this machine, for reading only; null when the store has no local files (local-file.ts). */
  localPath: (key: string) => string | null
  /** Resolves also when there is no such object. */
  delete: (key: string) => Promise<void>
  /** Removes what killed processes have left in the store before this time. Returns how much. */
  removeUnfinished: (before_ms: number) => Promise<number>
  /**
   * Whether the files of an upload are copied to new keys when it completes. A service may carry out a write late, and clients
   * may write to it without the api. So no key that a sender knows is the key of a completed file.
   */
  copies_when_complete: boolean
  /** Null: all bytes come through the api. */
  direct: DirectUploads | null
  /** Ends idle connections. */
  close: () => void
}

/** Uploads that a client sends to the store itself. What arrives is no object until `take` copies it. */
export type DirectUploads = {
  /** A URL for one PUT of exactly these bytes. `content_type`: null allows any. */
  presignPut: (grant: {
    key: string
    content_length: number
    content_type: string | null
    lifetime_ms: number
  }) => Promise<string>
  /** The length of what has arrived for this key; null: nothing. */
  arrivedLength: (key: string) => Promise<number | null>
  /** Makes what has arrived for `key` the object `to`, and reads it for its hash. Null: nothing has arrived. */
  take: (key: string, to: string) => Promise<StoredObject | null>
}

export class ObjectNotFound extends Error {
  readonly key: string
  constructor(key: string) {
    super(`There is no object ${key}.`)
    this.name = 'ObjectNotFound'
    this.key = key
  }
}

/** 128 random bits: a key cannot be guessed, and reveals nothing about its object. */
export function newObjectKey(): string {
  return randomBytes(16).toString('hex')
}

const OBJECT_KEY = /^[0-9a-f]{32}$/

export function isObjectKey(text: string): boolean {
  return OBJECT_KEY.test(text)
}

/** Stores check every key, so that no other text becomes part of a path. */
export function requireKey(key: string): void {
  if (!isObjectKey(key)) throw new Error(`${JSON.stringify(key)} is not an object key.`)
}

/** Runs `publish` once, where `options.within` asks for it. Throws when it is asked for twice or never. */
export async function publishWithin(
  { within }: PutOptions,
  stored: StoredObject,
  publish: () => Promise<void>,
): Promise<void> {
  let published = false
  const publishOnce = async (): Promise<StoredObject> => {
    if (published) throw new Error('An object cannot be published twice.')
    published = true
    await publish()
    return stored
  }
  await (within === undefined ? publishOnce() : within(publishOnce))
  if (!published) throw new Error('An object was neither published nor refused.')
}
