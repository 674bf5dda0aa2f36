// Reads the entries of a tar or tar.gz. tar-blocks.ts checks the blocks; tar-stream then reads names and extended headers.
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { extract, type Header } from 'tar-stream'
import { type ArchiveEntry, type ArchiveFile, type ArchiveReader, inflated, parserFault, readRange } from './entry.ts'
import type { Meter } from './meter.ts'
import { archiveRefused, nearEntry } from './refusal.ts'
import { TarBlocks } from './tar-blocks.ts'

export const readTar: ArchiveReader = ({ handle, content_length }, meter) =>
  readPlainEntries(readRange(handle, 0, content_length, meter), meter)

export const readTarGz: ArchiveReader = (file, meter) => readPlainEntries(gunzipped(file, meter), meter)

/** An entry of a tar whose types are not restricted to files and folders. `start`: the position of its data in the tar. */
export type TarEntry = { header: Header; content_length: number; start: number; body: AsyncIterable<Uint8Array> }

/** The entries of a tar of a container image, with links and devices. */
export const readTarEntries = (bytes: AsyncIterable<Buffer>, meter: Meter): AsyncGenerator<TarEntry> =>
  readEntries(bytes, meter, { is_layer: true })

async function* readPlainEntries(bytes: AsyncIterable<Buffer>, meter: Meter): AsyncGenerator<ArchiveEntry> {
  for await (const entry of readEntries(bytes, meter, { is_layer: false })) yield plainEntry(entry)
}

async function* gunzipped({ handle, content_length }: ArchiveFile, meter: Meter): AsyncGenerator<Buffer> {
  const gunzip = createGunzip()
  yield* inflated(readRange(handle, 0, content_length, meter), gunzip)
  // By definition several gzip members are one stream. zlib silently skips zeros after the last one.
  if (gunzip.bytesWritten !== content_length) throw archiveRefused('trailing_data')
}

async function* readEntries(
  bytes: AsyncIterable<Buffer>,
  meter: Meter,
  { is_layer }: { is_layer: boolean },
): AsyncGenerator<TarEntry> {
  const blocks = new TarBlocks(meter.expect, { is_layer })

  async function* checked(): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of bytes) {
        blocks.take(chunk)
        meter.cameOut(chunk.length)
        yield chunk
      }
      blocks.end()
    } catch (error) {
      // The parser may not have returned this entry yet.
      throw nearEntry(error, blocks.last_name)
    }
  }

  const parser = extract()
  const feeding = pipeline(Readable.from(checked()), parser)
  // The loop below throws the error. This handler only prevents an unhandled rejection.
  const fed = feeding.catch((error: Error) => void parser.destroy(error))
  try {
    for await (const item of parser) {
      // Its types do not say that it is iterable.
      const body = orFaultOf(feeding, item as unknown as AsyncIterable<Uint8Array>)
      yield entryOf(item.header, body, blocks.content_lengths.shift(), blocks.content_starts.shift())
      item.resume()
    }
    await feeding
    if (blocks.content_lengths.length > 0) throw archiveRefused('corrupt')
  } catch (error) {
    throw parserFault(error)
  } finally {
    parser.destroy()
    await fed
  }
}

/** The error of a body that breaks off has no cause. The cause is the failure of `feeding`. */
async function* orFaultOf(feeding: Promise<void>, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } catch (error) {
    await feeding.catch((fault) => {
      throw parserFault(fault)
    })
    throw error
  }
}

function entryOf(
  header: Header,
  body: AsyncIterable<Uint8Array>,
  content_length: number | undefined,
  start: number | undefined,
): TarEntry {
  const { name, size, pax } = header
  // An extended header may name another length than the header. Both must be equal.
  if (content_length === undefined || start === undefined || size !== content_length) {
    throw archiveRefused('size_mismatch', name)
  }
  if (pax && Object.keys(pax).some((key) => key.startsWith('GNU.sparse'))) throw archiveRefused('sparse', name)
  return { header, content_length, start, body }
}

function plainEntry({ header, content_length, body }: TarEntry): ArchiveEntry {
  const { name, mode } = header
  const kind = plainKind(header)
  if (kind === null) throw archiveRefused('unknown_type', name)
  return { name, kind, content_length, is_executable: (mode & 0o111) !== 0, body }
}

/** Null for links, devices and unknown types. */
export function plainKind(header: Header): 'file' | 'directory' | null {
  // tar-stream returns null for an unknown type.
  const type: string | null = header.type
  if (type !== 'file' && type !== 'contiguous-file' && type !== 'directory') return null
  // Old tars have no type for folders, and mark them by a slash at the end of the name.
  return type === 'directory' || (header.name.endsWith('/') && header.size === 0) ? 'directory' : 'file'
}
