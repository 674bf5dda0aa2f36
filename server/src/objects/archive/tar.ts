// Reads the entries of a tar or tar.gz. tar-blocks.ts checks the blocks; tar-stream then reads names and extended headers.
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { extract, type Header } from 'tar-stream'
import { type ArchiveEntry, type ArchiveFile, type ArchiveReader, inflated, parserFault, readRange } from './entry.ts'
import type { Meter } from './meter.ts'
import { archiveRefused } from './refusal.ts'
import { TarBlocks } from './tar-blocks.ts'

export const readTar: ArchiveReader = ({ handle, content_length }, meter) =>
  readEntries(readRange(handle, 0, content_length, meter), meter)

export const readTarGz: ArchiveReader = (file, meter) => readEntries(gunzipped(file, meter), meter)

async function* gunzipped({ handle, content_length }: ArchiveFile, meter: Meter): AsyncGenerator<Buffer> {
  const gunzip = createGunzip()
  yield* inflated(readRange(handle, 0, content_length, meter), gunzip)
  // By definition several gzip members are one stream. zlib silently skips zeros after the last one.
  if (gunzip.bytesWritten !== content_length) throw archiveRefused('trailing_data')
}

async function* readEntries(bytes: AsyncIterable<Buffer>, meter: Meter): AsyncGenerator<ArchiveEntry> {
  const blocks = new TarBlocks(meter.expect)

  async function* checked(): AsyncGenerator<Buffer> {
    for await (const chunk of bytes) {
      blocks.take(chunk)
      meter.cameOut(chunk.length)
      yield chunk
    }
    blocks.end()
  }

  const parser = extract()
  const feeding = pipeline(Readable.from(checked()), parser)
  // The loop below throws the error. This handler only prevents an unhandled rejection.
  const fed = feeding.catch((error: Error) => void parser.destroy(error))
  try {
    for await (const item of parser) {
      // Its types do not say that it is iterable.
      const body = orFaultOf(feeding, item as unknown as AsyncIterable<Uint8Array>)
      yield entryOf(item.header, body, blocks.content_lengths.shift())
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

function entryOf(header: Header, body: AsyncIterable<Uint8Array>, content_length: number | undefined): ArchiveEntry {
  const { name, size, mode, pax } = header
  // tar-stream returns null for an unknown type.
  const type: string | null = header.type
  // An extended header may name another length than the header. Both must be equal.
  if (content_length === undefined || size !== content_length) throw archiveRefused('size_mismatch', name)
  if (pax && Object.keys(pax).some((key) => key.startsWith('GNU.sparse'))) throw archiveRefused('sparse', name)
  if (type !== 'file' && type !== 'contiguous-file' && type !== 'directory') throw archiveRefused('unknown_type', name)
  // Old tars have no type for folders, and mark them by a slash at the end of the name.
  const kind = type === 'directory' || (name.endsWith('/') && size === 0) ? 'directory' : 'file'
  return { name, kind, content_length, is_executable: (mode & 0o111) !== 0, body }
}
