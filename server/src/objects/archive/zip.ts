// Reads the entries of a zip by its central directory, which yauzl parses. The local header of each entry must agree with
// the directory, no two entries may share bytes, and the checksum of the unpacked bytes is compared.
import type { FileHandle } from 'node:fs/promises'
import { crc32, createInflateRaw, type InflateRaw, inflateRawSync } from 'node:zlib'
import {
  type Entry,
  fromRandomAccessReaderPromise,
  type LocalFileHeader,
  RandomAccessReader,
  type ZipFile,
} from 'yauzl'
import { type ArchiveEntry, type ArchiveReader, inflated, inflateFault, parserFault, readRange } from './entry.ts'
import type { Meter } from './meter.ts'
import { type ArchiveFault, archiveRefused } from './refusal.ts'

/** Bytes of the central directory: names, extra fields and comments of all entries. */
const DIRECTORY_BYTES_MAX = 64 * 1024 * 1024
const ENTRY_HEADER_BYTES = 46
/** An entry of at most so many bytes, packed and unpacked, is inflated at once. A stream costs more than its inflating. */
const SMALL_BYTES_MAX = 64 * 1024
/** The parser reads headers in pieces of some bytes. So many are read ahead. */
const WINDOW_BYTES = 16 * 1024
/** Pieces read ahead that are kept: one of the directory, and one of the local headers. */
const WINDOWS_MAX = 2
const STORED = 0
const DEFLATED = 8
/** Values of the upper byte of "version made by" for Unix and macOS, where the file mode is valid. */
const MADE_BY_UNIX = new Set([3, 19])
/** The same of FAT, NTFS and VFAT. */
const MADE_BY_WINDOWS = new Set([0, 10, 11, 14])
const FILE_TYPE_MASK = 0o170000
const REGULAR = 0o100000
const FOLDER = 0o040000
const FAULT_OF_FILE_TYPE: ReadonlyMap<number, ArchiveFault> = new Map([
  [0o120000, 'link'],
  [0o020000, 'device'],
  [0o060000, 'device'],
  [0o010000, 'fifo'],
  [0o140000, 'socket'],
])

type Span = { start: number; end: number; name: string }

export const readZip: ArchiveReader = async function* ({ handle, content_length }, meter, limits) {
  const zip = await orRefusal(openZip(handle, content_length))
  if (zip.entryCount > limits.entries_max) throw archiveRefused('too_many_entries')
  const directory_start = directoryCursor(zip)
  const spans: Span[] = []
  let directory_bytes = 0
  let packed_bytes = 0
  const entries = zip.eachEntry()
  for (;;) {
    const next = await orRefusal(entries.next())
    if (next.done === true) break
    const entry = next.value
    const name = portableName(nameOf(entry.fileNameRaw), entry)
    directory_bytes += ENTRY_HEADER_BYTES + entry.fileNameLength + entry.extraFieldLength + entry.fileCommentLength
    if (directory_bytes > DIRECTORY_BYTES_MAX) throw archiveRefused('too_many_entries')
    // Checked before anything is inflated: with shared bytes a small archive could unpack to a huge folder.
    packed_bytes += entry.compressedSize
    if (packed_bytes > content_length) throw archiveRefused('overlap', name)
    const local: LocalFileHeader = await orRefusal(zip.readLocalFileHeaderPromise(entry, { minimal: false }))
    if (!local.fileName.equals(entry.fileNameRaw) || local.compressionMethod !== entry.compressionMethod) {
      throw archiveRefused('corrupt', name)
    }
    spans.push({ start: entry.relativeOffsetOfLocalHeader, end: local.fileDataStart + entry.compressedSize, name })
    meter.expect(entry.uncompressedSize, name)
    yield entryOf(entry, name, bodyOf(handle, entry, name, local.fileDataStart, meter))
  }
  requireApart(spans, directory_start)
  await requireNothingUnlisted(handle, directoryCursor(zip))
}

function entryOf(entry: Entry, name: string, body: AsyncIterable<Buffer>): ArchiveEntry {
  const { compressionMethod, uncompressedSize, externalFileAttributes, versionMadeBy } = entry
  if (entry.isEncrypted()) throw archiveRefused('encrypted', name)
  if (compressionMethod !== STORED && compressionMethod !== DEFLATED) throw archiveRefused('compression_method', name)
  const mode = externalFileAttributes >>> 16
  const file_type = mode & FILE_TYPE_MASK
  const fault = FAULT_OF_FILE_TYPE.get(file_type)
  if (fault !== undefined) throw archiveRefused(fault, name)
  const kind = name.endsWith('/') ? 'directory' : 'file'
  if (file_type !== 0 && file_type !== (kind === 'file' ? REGULAR : FOLDER)) throw archiveRefused('unknown_type', name)
  const is_executable = MADE_BY_UNIX.has(versionMadeBy >>> 8) ? (mode & 0o111) !== 0 : null
  return { name, kind, content_length: uncompressedSize, is_executable, body }
}

async function* bodyOf(handle: FileHandle, entry: Entry, name: string, start: number, meter: Meter) {
  const { uncompressedSize } = entry
  const packed = readRange(handle, start, start + entry.compressedSize, meter)
  let length = 0
  let checksum = 0
  for await (const chunk of unpackedBytes(packed, entry, name)) {
    meter.cameOut(chunk.length)
    length += chunk.length
    if (length > uncompressedSize) throw archiveRefused('size_mismatch', name)
    checksum = crc32(chunk, checksum)
    yield chunk
  }
  if (length !== uncompressedSize) throw archiveRefused('size_mismatch', name)
  if (checksum !== entry.crc32) throw archiveRefused('checksum', name)
}

/** Throws when the deflated bytes are damaged, or when they end before the entry does. */
async function* unpackedBytes(packed: AsyncGenerator<Buffer>, entry: Entry, name: string): AsyncGenerator<Buffer> {
  const { compressionMethod, compressedSize, uncompressedSize } = entry
  if (compressionMethod !== DEFLATED) {
    yield* packed
    return
  }
  let consumed: number
  if (compressedSize <= SMALL_BYTES_MAX && uncompressedSize <= SMALL_BYTES_MAX) {
    const chunks: Buffer[] = []
    for await (const chunk of packed) chunks.push(chunk)
    const { buffer, engine } = inflateSmall(Buffer.concat(chunks), uncompressedSize, name)
    yield buffer
    consumed = engine.bytesWritten
  } else {
    const inflate = createInflateRaw()
    yield* inflated(packed, inflate)
    consumed = inflate.bytesWritten
  }
  if (consumed !== compressedSize) throw archiveRefused('corrupt', name)
}

/** `length`: of the unpacked bytes. */
function inflateSmall(packed: Buffer, length: number, name: string): { buffer: Buffer; engine: InflateRaw } {
  try {
    const inflated: unknown = inflateRawSync(packed, { info: true, maxOutputLength: Math.max(1, length) })
    // Its types do not say what it returns with `info`.
    return inflated as { buffer: Buffer; engine: InflateRaw }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw archiveRefused('size_mismatch', name)
    throw inflateFault(error)
  }
}

/** Names must be UTF-8, whatever their flag says, because any other encoding would be a guess. */
function nameOf(raw: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(raw)
  } catch (error) {
    if (error instanceof TypeError) throw archiveRefused('encoding', raw.toString('latin1'))
    throw error
  }
}

/**
 * Some packers of Windows separate folders by backslashes, against the format. There a backslash is never part of a name.
 * The path is checked in its new form. Of every other system the name is refused as it is.
 */
function portableName(name: string, { versionMadeBy }: Entry): string {
  return MADE_BY_WINDOWS.has(versionMadeBy >>> 8) && !name.includes('/') ? name.replaceAll('\\', '/') : name
}

function requireApart(spans: Span[], directory_start: number): void {
  spans.sort((left, right) => left.start - right.start)
  let end = 0
  for (const span of spans) {
    if (span.start < end || span.end > directory_start) throw archiveRefused('overlap', span.name)
    end = span.end
  }
}

/** After the last counted entry the directory must end, without an uncounted entry. */
async function requireNothingUnlisted(handle: FileHandle, position: number): Promise<void> {
  const { buffer } = await handle.read(Buffer.alloc(4), 0, 4, position)
  const signature = buffer.toString('latin1')
  if (signature !== 'PK\x05\x06' && signature !== 'PK\x06\x06') throw archiveRefused('trailing_data')
}

/** The position at which yauzl reads the directory next. Its types declare a boolean. */
function directoryCursor(zip: ZipFile): number {
  const cursor: unknown = zip.readEntryCursor
  if (typeof cursor !== 'number') throw new Error('The zip reader has no numeric position.')
  return cursor
}

/** yauzl requires a derived class. Its own reader crashes on positions that a hostile archive can name. */
class HandleReader extends RandomAccessReader {
  readonly #handle: FileHandle
  /** Bytes of the file and their position, the newest last. */
  readonly #windows: { start: number; bytes: Buffer }[] = []

  constructor(handle: FileHandle) {
    super()
    this.#handle = handle
  }

  override read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
    callback: (error: Error | null, bytes_read?: number) => void,
  ): void {
    if (!Number.isSafeInteger(position) || position < 0) {
      queueMicrotask(() => callback(null, 0))
      return
    }
    const end = position + length
    const known = this.#windows.find(({ start, bytes }) => start <= position && end <= start + bytes.length)
    if (known !== undefined) {
      const copied = known.bytes.copy(buffer, offset, position - known.start, end - known.start)
      queueMicrotask(() => callback(null, copied))
    } else if (length > WINDOW_BYTES) {
      this.#handle.read(buffer, offset, length, position).then(({ bytesRead }) => callback(null, bytesRead), callback)
    } else {
      this.#readWindow(position).then((bytes) => callback(null, bytes.copy(buffer, offset, 0, length)), callback)
    }
  }

  async #readWindow(start: number): Promise<Buffer> {
    const { buffer, bytesRead } = await this.#handle.read(Buffer.allocUnsafe(WINDOW_BYTES), 0, WINDOW_BYTES, start)
    const bytes = buffer.subarray(0, bytesRead)
    this.#windows.push({ start, bytes })
    if (this.#windows.length > WINDOWS_MAX) this.#windows.shift()
    return bytes
  }

  /** The caller that opened the handle closes it. */
  override close(callback: (error: Error | null) => void): void {
    callback(null)
  }
}

function openZip(handle: FileHandle, content_length: number): Promise<ZipFile> {
  const options = { autoClose: false, decodeStrings: false, validateEntrySizes: true }
  return fromRandomAccessReaderPromise(new HandleReader(handle), content_length, options)
}

async function orRefusal<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise
  } catch (error) {
    throw parserFault(error)
  }
}
