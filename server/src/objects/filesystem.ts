// Objects in a local folder:
//
//   <folder>/<first two digits of the key>/<key>          the bytes
//   <folder>/<first two digits of the key>/<key>.json     the sidecar: length and hash, with inode and time of the bytes
//   <folder>/incoming/<process>/<key>.<random>            both files, while they are written
//   <folder>/damaged/<key>                                damaged bytes, set aside
//
// A copy is a second name of the same file (a hard link).
// A put writes into `incoming`, flushes, and renames. The sidecar names the inode and the time of its bytes. After a crash
// between the two renames, or after two puts at once, it does not fit them, and the hash is computed again.
// Only the platform's own user can read the folder: lobbies run as other users, and must not see each other's builds.
import { createHash } from 'node:crypto'
import { type BigIntStats, mkdirSync } from 'node:fs'
import { type FileHandle, link, mkdir, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { type Incoming, openIncoming } from './incoming.ts'
import {
  type ByteRange,
  ObjectNotFound,
  type Objects,
  type OpenObject,
  type PutOptions,
  publishWithin,
  requireKey,
  type StoredObject,
} from './objects.ts'
import { receiveFile } from './receive.ts'
import { syncFolder } from './sync-folder.ts'

/** A file system without second names, with none for this folder, or with no more of them for this file. */
const NO_SECOND_NAME: readonly string[] = ['EMLINK', 'EXDEV', 'EPERM', 'ENOTSUP', 'EOPNOTSUPP']

type Sidecar = StoredObject & { inode: string; modify_ns: string }

/**
 * Opens a store in `folder`, which is made if it is missing. Partial files of dead processes are removed. Throws the
 * system's error when the folder cannot be made.
 */
export function openFilesystemObjects(folder: string): Objects {
  const root = resolve(folder)
  mkdirSync(root, { recursive: true, mode: 0o700 })
  return new FilesystemObjects(root, openIncoming(join(root, 'incoming')))
}

class FilesystemObjects implements Objects {
  /** A put is published under the lock of its upload, and no other process writes. */
  readonly copies_when_complete = false
  readonly direct = null
  readonly #root: string
  readonly #damaged: string
  readonly #incoming: Incoming

  constructor(root: string, incoming: Incoming) {
    this.#root = root
    this.#damaged = join(root, 'damaged')
    this.#incoming = incoming
  }

  async put(
    key: string,
    body: AsyncIterable<Uint8Array>,
    content_length: number,
    options: PutOptions = {},
  ): Promise<StoredObject> {
    requireKey(key)
    const arrived = this.#incoming.newPath(key)
    const arrived_sidecar = this.#incoming.newPath(key)
    try {
      const sidecar = await receive(arrived, body, content_length)
      await writeSidecar(arrived_sidecar, sidecar)
      const stored = storedObject(sidecar)
      await publishWithin(options, stored, () => this.#publish(key, arrived, arrived_sidecar))
      return stored
    } finally {
      await rm(arrived, { force: true })
      await rm(arrived_sidecar, { force: true })
    }
  }

  /** By a second name of the same file: the bytes of an object are never changed in place. */
  async copy(from: string, to: string): Promise<StoredObject> {
    const known = await this.#sidecar(from)
    if (known === null) throw new ObjectNotFound(from)
    const arrived = this.#incoming.newPath(to)
    const arrived_sidecar = this.#incoming.newPath(to)
    try {
      await link(this.localPath(from), arrived)
      await writeSidecar(arrived_sidecar, known)
      await this.#publish(to, arrived, arrived_sidecar)
      return storedObject(known)
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException
      if (code === 'ENOENT') throw new ObjectNotFound(from)
      if (!NO_SECOND_NAME.includes(code)) throw error
      return this.put(to, await this.read(from), known.content_length)
    } finally {
      await rm(arrived, { force: true })
      await rm(arrived_sidecar, { force: true })
    }
  }

  async stat(key: string): Promise<StoredObject | null> {
    const sidecar = await this.#sidecar(key)
    return sidecar === null ? null : storedObject(sidecar)
  }

  async read(key: string, range?: ByteRange): Promise<Readable> {
    const handle = await this.#openExisting(key)
    return handle.createReadStream({ ...range })
  }

  async open(key: string): Promise<OpenObject> {
    const handle = await this.#openExisting(key)
    try {
      const content_length = (await handle.stat()).size
      return {
        content_length,
        read: (position, length) => readAt(handle, position, length),
        close: () => handle.close(),
      }
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  async setAside(key: string): Promise<void> {
    await mkdir(this.#damaged, { recursive: true, mode: 0o700 })
    const was_there = await nullIfMissing(rename(this.localPath(key), this.#asidePathOf(key)).then(() => true))
    await rm(this.#sidecarOf(key), { force: true })
    if (was_there === null) return
    await syncFolder(this.#damaged)
    await syncFolder(this.#shardOf(key))
  }

  localPath(key: string): string {
    return join(this.#shardOf(key), key)
  }

  async delete(key: string): Promise<void> {
    await rm(this.localPath(key), { force: true })
    await rm(this.#sidecarOf(key), { force: true })
    await rm(this.#asidePathOf(key), { force: true })
  }

  /** It has been done when the store was opened. */
  async removeUnfinished(): Promise<number> {
    return 0
  }

  close(): void {
    // Nothing is open between two calls.
  }

  #shardOf(key: string): string {
    requireKey(key)
    return join(this.#root, key.slice(0, 2))
  }

  #sidecarOf(key: string): string {
    return `${this.localPath(key)}.json`
  }

  #asidePathOf(key: string): string {
    requireKey(key)
    return join(this.#damaged, key)
  }

  /** Null when there is no such object. A missing or wrong sidecar is written anew. */
  async #sidecar(key: string): Promise<Sidecar | null> {
    const handle = await openIfThere(this.localPath(key))
    if (handle === null) return null
    try {
      const file = await handle.stat({ bigint: true })
      const known = await readSidecar(this.#sidecarOf(key))
      if (known !== null && isOf(known, file)) return known
      const sidecar = sidecarFor(file, await hashOf(handle))
      const arrived_sidecar = this.#incoming.newPath(key)
      await writeSidecar(arrived_sidecar, sidecar)
      await rename(arrived_sidecar, this.#sidecarOf(key))
      return sidecar
    } finally {
      await handle.close()
    }
  }

  async #openExisting(key: string): Promise<FileHandle> {
    const handle = await openIfThere(this.localPath(key))
    if (handle === null) throw new ObjectNotFound(key)
    return handle
  }

  async #publish(key: string, arrived: string, arrived_sidecar: string): Promise<void> {
    const shard = this.#shardOf(key)
    const is_new = (await mkdir(shard, { recursive: true, mode: 0o700 })) !== undefined
    await rename(arrived, this.localPath(key))
    await rename(arrived_sidecar, this.#sidecarOf(key))
    await syncFolder(shard)
    if (is_new) await syncFolder(this.#root)
  }
}

/** Writes and flushes the body. The caller removes the file, also when this rejects. */
async function receive(path: string, body: AsyncIterable<Uint8Array>, content_length: number): Promise<Sidecar> {
  const { file, sha256 } = await receiveFile(path, body, content_length)
  return sidecarFor(file, sha256)
}

/** One read may return fewer bytes than requested before the end of the file. */
async function readAt(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length)
  let filled = 0
  while (filled < length) {
    const { bytesRead } = await handle.read(buffer, filled, length - filled, position + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return buffer.subarray(0, filled)
}

async function hashOf(handle: FileHandle): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of handle.createReadStream({ start: 0, autoClose: false })) hash.update(chunk)
  return hash.digest('hex')
}

function sidecarFor(file: BigIntStats, sha256: string): Sidecar {
  return { content_length: Number(file.size), sha256, inode: String(file.ino), modify_ns: String(file.mtimeNs) }
}

function isOf(sidecar: Sidecar, file: BigIntStats): boolean {
  const { inode, modify_ns, content_length } = sidecar
  return inode === String(file.ino) && modify_ns === String(file.mtimeNs) && content_length === Number(file.size)
}

function storedObject({ content_length, sha256 }: StoredObject): StoredObject {
  return { content_length, sha256 }
}

/** Not flushed: a sidecar that a power cut damaged does not fit, and is written again. */
async function writeSidecar(path: string, sidecar: Sidecar): Promise<void> {
  await writeFile(path, JSON.stringify(sidecar), { mode: 0o600, flag: 'wx' })
}

/** Null when there is none, or it is damaged. */
async function readSidecar(path: string): Promise<Sidecar | null> {
  const text = await nullIfMissing(readFile(path, 'utf8'))
  if (text === null) return null
  try {
    const { content_length, sha256, inode, modify_ns } = JSON.parse(text)
    return /^[0-9a-f]{64}$/.test(sha256) ? { content_length, sha256, inode, modify_ns } : null
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return null
    throw error
  }
}

function openIfThere(path: string): Promise<FileHandle | null> {
  return nullIfMissing(open(path, 'r'))
}

async function nullIfMissing<T>(promise: Promise<T>): Promise<T | null> {
  try {
    return await promise
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
