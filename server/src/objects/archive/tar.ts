// Entries of a tar or tar.gz. The blocks are checked by tar-blocks.ts, tar-stream then reads names and extended headers.
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { extract, type Header } from 'tar-stream'
import { type ArchiveEntry, type ArchiveFile, type ArchiveReader, inflated, parserFault, readRange } from './entry.ts'
import type { Meter } from './meter.ts'
import { archiveRefused } from './refusal.ts'
import { createTarBlocks } from './tar-blocks.ts'

export const readTar: ArchiveReader = ({ handle, content_length }, meter) =>
  readEntries(readRange(handle, 0, content_length, meter), meter)

export const readTarGz: ArchiveReader = (file, meter) => readEntries(gunzipped(file, meter), meter)

async function* gunzipped({ handle, content_length }: ArchiveFile, meter: Meter): AsyncGenerator<Buffer> {
  const gunzip = createGunzip()
  yield* inflated(readRange(handle, 0, content_length, meter), gunzip)
  // Several gzip members are one stream, by its definition; zeros behind the last are silently skipped by zlib.
  if (gunzip.bytesWritten !== content_length) throw archiveRefused('trailing_data')
}

async function* readEntries(bytes: AsyncIterable<Buffer>, meter: Meter): AsyncGenerator<ArchiveEntry> {
  const blocks = createTarBlocks(meter.expect)

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
  // The loop below throws the error; here it only must not go unheard.
  const fed = feeding.catch((error: Error) => void parser.destroy(error))
  try {
    for await (const item of parser) {
      // Its types leave out that it can be iterated.
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

/** A body that breaks off says only that it did; why is what the feeding has failed with. */
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
  // tar-stream says null for what it does not know.
  const type: string | null = header.type
  // An extended header may name another length than the header itself; only the same one is believed.
  if (content_length === undefined || size !== content_length) throw archiveRefused('size_mismatch', name)
  if (pax && Object.keys(pax).some((key) => key.startsWith('GNU.sparse'))) throw archiveRefused('sparse', name)
  if (type !== 'file' && type !== 'contiguous-file' && type !== 'directory') throw archiveRefused('unknown_type', name)
  // Tars from before there was a type for folders name them with a slash at the end.
  const kind = type === 'directory' || (name.endsWith('/') && size === 0) ? 'directory' : 'file'
  return { name, kind, content_length, is_executable: (mode & 0o111) !== 0, body }
}
