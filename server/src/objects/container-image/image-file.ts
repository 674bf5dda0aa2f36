// The uploaded file of an image: a tar, whose entries are read in any order. A compressed file is first decompressed into a
// file without a name, so that a crash leaves nothing.
import { createHash, randomBytes } from 'node:crypto'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { type ArchiveFile, readRange } from '../archive/entry.ts'
import type { Meter } from '../archive/meter.ts'
import { archiveRefused } from '../archive/refusal.ts'
import { plainKind, readTarEntries } from '../archive/tar.ts'
import { compressionOf, decompressed } from './compression.ts'
import { imageRefused } from './refusal.ts'

/** Entries of the outer tar: blobs, documents, links and folders. */
const ENTRIES_MAX = 2_000
/** Links followed to one entry. */
const LINKS_MAX = 4
/** Bytes of a JSON document of an image. */
const DOCUMENT_BYTES_MAX = 4 * 1024 ** 2
const HEAD_BYTES = 512

/** An entry of the tar. `start`: its position. */
export type TarBlob = { name: string; start: number; content_length: number }

export class ImageFile {
  readonly #handle: FileHandle
  readonly #meter: Meter
  readonly #blobs = new Map<string, TarBlob>()
  readonly #links = new Map<string, string>()

  private constructor(handle: FileHandle, meter: Meter) {
    this.#handle = handle
    this.#meter = meter
  }

  /** `folder`: for the decompressed bytes. The caller closes the file. Throws ApiError ARCHIVE_INVALID. */
  static async open(path: string, folder: string, meter: Meter): Promise<ImageFile> {
    const handle = await openTar(path, folder, meter)
    try {
      const file = new ImageFile(handle, meter)
      await file.#index()
      return file
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  close(): Promise<void> {
    return this.#handle.close()
  }

  /** Null when there is none of this name. Throws for links that leave the tar. */
  find(name: string): TarBlob | null {
    let path = posix.normalize(name)
    for (let followed = 0; followed <= LINKS_MAX; followed++) {
      const blob = this.#blobs.get(path)
      if (blob !== undefined) return blob
      const target = this.#links.get(path)
      if (target === undefined) return null
      path = posix.normalize(posix.join(posix.dirname(path), target))
    }
    throw imageRefused('link_loop', name)
  }

  names(): string[] {
    return [...this.#blobs.keys()]
  }

  /** The bytes, without a limit of their own: the caller meters what it makes of them. */
  async *read({ start, content_length }: TarBlob): AsyncGenerator<Buffer> {
    yield* readRange(this.#handle, start, start + content_length, this.#meter)
  }

  async head(blob: TarBlob): Promise<Buffer> {
    const { buffer, bytesRead } = await this.#handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, blob.start)
    return buffer.subarray(0, Math.min(bytesRead, blob.content_length))
  }

  /** A JSON document with its hash. */
  async document(blob: TarBlob): Promise<{ value: unknown; sha256: string }> {
    if (blob.content_length > DOCUMENT_BYTES_MAX) throw imageRefused('too_long', blob.name)
    const hash = createHash('sha256')
    const chunks: Buffer[] = []
    for await (const chunk of this.read(blob)) {
      hash.update(chunk)
      chunks.push(chunk)
    }
    try {
      return { value: JSON.parse(Buffer.concat(chunks).toString()), sha256: hash.digest('hex') }
    } catch (error) {
      if (error instanceof SyntaxError) throw imageRefused('not_json', blob.name)
      throw error
    }
  }

  async #index(): Promise<void> {
    const content_length = (await this.#handle.stat()).size
    let entries = 0
    for await (const { header, content_length: length, start, body } of readTarEntries(
      readRange(this.#handle, 0, content_length, this.#meter),
      // The bytes of the blobs are metered when they are unpacked.
      { ...this.#meter, wentIn: () => undefined, cameOut: () => undefined, expect: () => undefined },
    )) {
      for await (const _ of body);
      if (++entries > ENTRIES_MAX) throw archiveRefused('too_many_entries', header.name)
      const name = posix.normalize(header.name)
      if (name.startsWith('../') || posix.isAbsolute(name)) throw archiveRefused('dots', header.name)
      if (this.#blobs.has(name) || this.#links.has(name)) throw archiveRefused('duplicate', header.name)
      const kind = plainKind(header)
      if (kind === 'file') this.#blobs.set(name, { name, start, content_length: length })
      else if (header.type === 'symlink') this.#links.set(name, header.linkname ?? '')
      else if (kind === null) throw archiveRefused('unknown_type', header.name)
    }
  }
}

async function openTar(path: string, folder: string, meter: Meter): Promise<FileHandle> {
  const handle = await open(path)
  try {
    const content_length = (await handle.stat()).size
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
    const compression = compressionOf(buffer.subarray(0, bytesRead), null)
    if (compression === 'none') return handle
    const spooled = await spool({ handle, content_length }, compression, folder, meter)
    await handle.close()
    return spooled
  } catch (error) {
    await handle.close()
    throw error
  }
}

async function spool(
  { handle, content_length }: ArchiveFile,
  compression: 'gzip' | 'zstd',
  folder: string,
  meter: Meter,
): Promise<FileHandle> {
  const path = join(folder, `.image-${randomBytes(8).toString('hex')}`)
  const spooled = await open(path, 'wx+', 0o600)
  await rm(path)
  try {
    for await (const chunk of decompressed(readRange(handle, 0, content_length, meter), compression)) {
      meter.cameOut(chunk.length)
      await spooled.appendFile(chunk)
    }
    return spooled
  } catch (error) {
    await spooled.close()
    throw error
  }
}
