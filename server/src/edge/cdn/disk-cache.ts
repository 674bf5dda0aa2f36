// Files of sites on this machine's disk, where stored files are in a bucket. Files are fetched in segments, so a visitor of a
// long file waits for one segment, and a range costs its own segments only. Each segment is verified before it is stored, and
// each block again when it is read. Concurrent requests share one fetch. The segments used last stay, up to a bound. The cache
// survives a restart; what a crash left half written is removed.
//
//   <folder>/<first two digits of the key>/<key>.<index>    one segment
//   <folder>/incoming/<process>/...                         while it is written
import { type FileHandle, mkdir, open, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { ApiError } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { Semaphore } from '../../flow/semaphore.ts'
import { damageOf, isSound, ObjectDamaged, type Recorded } from '../../objects/damage.ts'
import { BLOCK_BYTES, isBlock } from '../../objects/digest.ts'
import { type Incoming, openIncoming } from '../../objects/incoming.ts'
import { isObjectKey } from '../../objects/objects.ts'
import { SITE_FETCHES_AT_ONCE_MAX, SITE_FETCHES_WAITING_MAX, SITE_SEGMENT_BYTES } from '../limits.ts'

export type SiteFiles = {
  /** Reads a short file. Rejects with ObjectDamaged. */
  readWhole: (file: Recorded) => Promise<Buffer>
  /** Opens a long file, which is read in blocks. The caller closes it. Rejects with ObjectDamaged. */
  open: (file: Recorded, block_hashes: Buffer) => Promise<OpenSiteFile>
  close: () => Promise<void>
}

export type OpenSiteFile = {
  /** Rejects with ObjectDamaged. */
  readBlock: (index: number) => Promise<Buffer>
  close: () => Promise<void>
}

/** The time of the last use of a segment is written this often. */
const USE_WRITTEN_EVERY_MS = 10 * 60_000
const RETRY_AFTER_S = 1

type Entry = { bytes: number; use_written_ms: number }
/** `verify` throws ObjectDamaged. */
type Segment = { object_key: string; index: number; start: number; length: number; verify: (bytes: Buffer) => void }

export class DiskCache implements SiteFiles {
  readonly #ctx: Context
  readonly #folder: string
  readonly #bytes_max: number
  readonly #incoming: Incoming
  /** In order of last use. */
  readonly #entries = new Map<string, Entry>()
  readonly #fetching = new Map<string, Promise<Buffer>>()
  readonly #fetches = new Semaphore({
    at_once_max: SITE_FETCHES_AT_ONCE_MAX,
    waiting_max: SITE_FETCHES_WAITING_MAX,
  })
  readonly #listed: Promise<void>
  #bytes = 0
  #is_closed = false
  #counts = { hit: 0, miss: 0 }

  constructor(ctx: Context, folder: string, bytes_max: number) {
    this.#ctx = ctx
    this.#folder = folder
    this.#bytes_max = bytes_max
    this.#incoming = openIncoming(join(folder, 'incoming'))
    this.#listed = this.#list().catch((error: unknown) =>
      ctx.log.warn({ err: error }, 'the cache of site files cannot be listed; it grows until the next start'),
    )
    ctx.metrics.gauge('site_cache_bytes', 'Bytes of site files that the edge keeps on its disk.', [], (set) =>
      set(this.#bytes),
    )
    ctx.metrics.sum('site_cache_reads_total', 'Reads of site files in the cache on the disk.', ['result'], (set) => {
      set(this.#counts.hit, 'hit')
      set(this.#counts.miss, 'miss')
    })
  }

  async readWhole(file: Recorded): Promise<Buffer> {
    const { object_key, content_length } = file
    const verify = (bytes: Buffer): void => {
      if (!isSound(file, bytes)) throw new ObjectDamaged(object_key, 'bytes')
    }
    const segment = { object_key, index: 0, start: 0, length: content_length, verify }
    const handle = await this.#openCached(segment)
    if (handle !== null) {
      const bytes = await this.#readVerified(handle, segment, 0, content_length, verify).finally(() => handle.close())
      if (bytes !== null) return bytes
    }
    return this.#fetch(segment)
  }

  async open(file: Recorded, block_hashes: Buffer): Promise<OpenSiteFile> {
    return new CachedFile(file, block_hashes, {
      openCached: (segment) => this.#openCached(segment),
      readVerified: (handle, segment, position, length, verify) =>
        this.#readVerified(handle, segment, position, length, verify),
      fetch: (segment) => this.#fetch(segment),
    })
  }

  async close(): Promise<void> {
    this.#is_closed = true
    await this.#listed
    await Promise.allSettled(this.#fetching.values())
  }

  /** Null: the segment is not here. */
  async #openCached({ object_key, index }: Segment): Promise<FileHandle | null> {
    const name = nameOf(object_key, index)
    try {
      const handle = await open(this.#pathOf(name), 'r')
      this.#counts.hit++
      this.#noteUse(name)
      return handle
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
        this.#ctx.log.warn({ err: error }, 'a cached file cannot be read; fetching it again')
      }
      this.#counts.miss++
      return null
    }
  }

  /** Null, and the segment is removed, when this disk has damaged it. */
  async #readVerified(
    handle: FileHandle,
    { object_key, index }: Segment,
    position: number,
    length: number,
    verify: (bytes: Buffer) => void,
  ): Promise<Buffer | null> {
    try {
      const bytes = Buffer.allocUnsafe(length)
      const { bytesRead } = await handle.read(bytes, 0, length, position)
      if (bytesRead === length) verify(bytes)
      else throw new ObjectDamaged(object_key, 'length')
      return bytes
    } catch (error) {
      this.#ctx.log.warn({ err: error, object_key }, 'a cached file is damaged; fetching it again')
      await this.#remove(nameOf(object_key, index))
      return null
    }
  }

  /** Concurrent calls for the same segment share one fetch. */
  #fetch(segment: Segment): Promise<Buffer> {
    const name = nameOf(segment.object_key, segment.index)
    const under_way = this.#fetching.get(name)
    if (under_way !== undefined) return under_way
    const fetch = this.#fetchAndStore(name, segment).finally(() => this.#fetching.delete(name))
    this.#fetching.set(name, fetch)
    return fetch
  }

  async #fetchAndStore(name: string, { object_key, start, length, verify }: Segment): Promise<Buffer> {
    if ((await this.#fetches.acquire()) !== 'acquired') {
      throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: RETRY_AFTER_S })
    }
    try {
      const range = length === 0 ? undefined : { start, end: start + length - 1 }
      const bytes = await buffer(await this.#ctx.objects.read(object_key, range))
      if (bytes.length !== length) throw new ObjectDamaged(object_key, 'length')
      verify(bytes)
      await this.#store(name, bytes)
      return bytes
    } catch (error) {
      throw damageOf(object_key, error)
    } finally {
      this.#fetches.release()
    }
  }

  /** A full disk costs the next visitor a fetch, and this one nothing. */
  async #store(name: string, bytes: Buffer): Promise<void> {
    if (bytes.length > this.#bytes_max || this.#is_closed) return
    const written = this.#incoming.newPath(name)
    try {
      await this.#makeRoom(bytes.length)
      await writeFile(written, bytes, { mode: 0o600, flag: 'wx' })
      await mkdir(join(this.#folder, name.slice(0, 2)), { recursive: true, mode: 0o700 })
      await rename(written, this.#pathOf(name))
      this.#note(name, bytes.length)
    } catch (error) {
      this.#ctx.log.warn({ err: error }, 'a site file cannot be cached on this disk')
      await rm(written, { force: true })
    }
  }

  async #makeRoom(bytes: number): Promise<void> {
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes + bytes <= this.#bytes_max) return
      await this.#remove(oldest)
    }
  }

  async #remove(name: string): Promise<void> {
    this.#bytes -= this.#entries.get(name)?.bytes ?? 0
    this.#entries.delete(name)
    await rm(this.#pathOf(name), { force: true })
  }

  #note(name: string, bytes: number): void {
    this.#bytes += bytes - (this.#entries.get(name)?.bytes ?? 0)
    this.#entries.delete(name)
    this.#entries.set(name, { bytes, use_written_ms: this.#ctx.elapsed() })
  }

  /** The time of change of a file is the time of its last use, for the order after a restart. */
  #noteUse(name: string): void {
    const entry = this.#entries.get(name)
    if (entry === undefined) return
    this.#entries.delete(name)
    this.#entries.set(name, entry)
    if (this.#ctx.elapsed() - entry.use_written_ms < USE_WRITTEN_EVERY_MS) return
    entry.use_written_ms = this.#ctx.elapsed()
    const now = new Date(this.#ctx.now())
    utimes(this.#pathOf(name), now, now).catch(() => undefined)
  }

  /** What an earlier process stored, and is not known yet, comes before what this one stored. */
  async #list(): Promise<void> {
    const found: { name: string; bytes: number; used_ms: number }[] = []
    for (const item of await readdir(this.#folder, { recursive: true, withFileTypes: true })) {
      if (this.#is_closed) return
      if (!item.isFile() || item.parentPath.startsWith(join(this.#folder, 'incoming'))) continue
      const path = join(item.parentPath, item.name)
      if (!isObjectKey(item.name.split('.')[0] ?? '')) await rm(path, { force: true })
      else {
        const file = await stat(path).catch(() => null)
        if (file !== null) found.push({ name: item.name, bytes: file.size, used_ms: file.mtimeMs })
      }
    }
    const stored = [...this.#entries]
    this.#entries.clear()
    this.#bytes = 0
    for (const { name, bytes } of found.sort((a, b) => a.used_ms - b.used_ms)) this.#note(name, bytes)
    for (const [name, { bytes }] of stored) this.#note(name, bytes)
    await this.#makeRoom(0)
  }

  #pathOf(name: string): string {
    return join(this.#folder, name.slice(0, 2), name)
  }
}

type Cache = {
  openCached: (segment: Segment) => Promise<FileHandle | null>
  readVerified: (
    handle: FileHandle,
    segment: Segment,
    position: number,
    length: number,
    verify: (bytes: Buffer) => void,
  ) => Promise<Buffer | null>
  fetch: (segment: Segment) => Promise<Buffer>
}

/** A file that is sent block by block. It holds one open segment, and the bytes of a segment that is not on the disk. */
class CachedFile implements OpenSiteFile {
  readonly #file: Recorded
  readonly #block_hashes: Buffer
  readonly #cache: Cache
  #segment: { index: number; handle: FileHandle } | null = null

  constructor(file: Recorded, block_hashes: Buffer, cache: Cache) {
    this.#file = file
    this.#block_hashes = block_hashes
    this.#cache = cache
  }

  async readBlock(index: number): Promise<Buffer> {
    const position = index * BLOCK_BYTES
    const segment = this.#segmentOf(Math.floor(position / SITE_SEGMENT_BYTES))
    const at = position - segment.start
    const length = Math.min(BLOCK_BYTES, segment.length - at)
    const handle = await this.#handleOf(segment)
    if (handle !== null) {
      const verify = (bytes: Buffer): void => this.#verifyBlocks(index, bytes)
      const bytes = await this.#cache.readVerified(handle, segment, at, length, verify)
      if (bytes !== null) return bytes
      await this.close()
    }
    return Buffer.from((await this.#cache.fetch(segment)).subarray(at, at + length))
  }

  async close(): Promise<void> {
    const { handle } = this.#segment ?? {}
    this.#segment = null
    await handle?.close()
  }

  #segmentOf(index: number): Segment {
    const { object_key, content_length } = this.#file
    const start = index * SITE_SEGMENT_BYTES
    const verify = (bytes: Buffer): void => this.#verifyBlocks(start / BLOCK_BYTES, bytes)
    return { object_key, index, start, length: Math.min(SITE_SEGMENT_BYTES, content_length - start), verify }
  }

  /** Null: the segment cannot be kept on this disk. */
  async #handleOf(segment: Segment): Promise<FileHandle | null> {
    if (this.#segment?.index === segment.index) return this.#segment.handle
    const is_next = this.#segment !== null && this.#segment.index + 1 === segment.index
    await this.close()
    let handle = await this.#cache.openCached(segment)
    if (handle === null) {
      await this.#cache.fetch(segment)
      handle = await this.#cache.openCached(segment)
    }
    if (handle !== null) this.#segment = { index: segment.index, handle }
    if (is_next) void this.#fetchAhead(segment.index + 1)
    return handle
  }

  /** The client has read a whole segment, and will want the one after this. */
  async #fetchAhead(index: number): Promise<void> {
    if (index * SITE_SEGMENT_BYTES >= this.#file.content_length) return
    const segment = this.#segmentOf(index)
    try {
      const handle = await this.#cache.openCached(segment)
      if (handle === null) await this.#cache.fetch(segment)
      await handle?.close()
    } catch {
      // The read of this segment reports it.
    }
  }

  #verifyBlocks(first: number, bytes: Buffer): void {
    for (let at = 0, index = first; at < bytes.length; at += BLOCK_BYTES, index++) {
      if (!isBlock(this.#block_hashes, index, bytes.subarray(at, at + BLOCK_BYTES))) {
        throw new ObjectDamaged(this.#file.object_key, 'bytes')
      }
    }
  }
}

function nameOf(object_key: string, index: number): string {
  return `${object_key}.${index}`
}
