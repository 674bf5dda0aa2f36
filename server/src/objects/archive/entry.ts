// What the readers of archive formats have in common: the file they read, and one entry at a time, with its name as it
// stands in the archive.
import type { FileHandle } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import type { Gunzip, InflateRaw } from 'node:zlib'
import type { Meter } from './meter.ts'
import { archiveRefused } from './refusal.ts'

export type ArchiveEntry = {
  name: string
  kind: 'file' | 'directory'
  content_length: number
  /** Null: the archive was packed where there is no such bit, so the first bytes have to tell. */
  is_executable: boolean | null
  /** Must be read to its end before the next entry is asked for. Has no bytes for a folder. */
  body: AsyncIterable<Uint8Array>
}

export type ArchiveFile = { handle: FileHandle; content_length: number }

export type ArchiveReader = (
  file: ArchiveFile,
  meter: Meter,
  limits: { entries_max: number },
) => AsyncGenerator<ArchiveEntry>

const CHUNK_BYTES = 64 * 1024

/** By the first bytes of a file isExecutable() decides. */
export const HEAD_BYTES = 4

/** Whether the file is unpacked as executable: by what the archive says, else by how programs and scripts begin. */
export function isExecutable({ is_executable }: Pick<ArchiveEntry, 'is_executable'>, head: Buffer): boolean {
  return is_executable ?? /^(?:\x7fELF|#!)/.test(head.toString('latin1'))
}

/** The bytes from `start` to before `end`, metered. */
export async function* readRange(handle: FileHandle, start: number, end: number, meter: Meter): AsyncGenerator<Buffer> {
  for (let at = start; at < end; ) {
    const wanted = Math.min(CHUNK_BYTES, end - at)
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(wanted), 0, wanted, at)
    if (bytesRead === 0) throw archiveRefused('truncated')
    at += bytesRead
    meter.wentIn(bytesRead)
    yield buffer.subarray(0, bytesRead)
  }
}

/** What `inflate` makes of the bytes. Throws ApiError ARCHIVE_INVALID where they are damaged. */
export async function* inflated(bytes: AsyncIterable<Buffer>, inflate: Gunzip | InflateRaw): AsyncGenerator<Buffer> {
  const feeding = pipeline(bytes, inflate)
  // The loop below throws the error; here it only must not go unheard.
  const fed = feeding.catch((error: Error) => void inflate.destroy(error))
  try {
    for await (const chunk of inflate) yield chunk
  } catch (error) {
    throw inflateFault(error)
  } finally {
    inflate.destroy()
    await fed
  }
}

function inflateFault(error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'Z_BUF_ERROR') return archiveRefused('truncated')
  return code?.startsWith('Z_') ? archiveRefused('corrupt') : error
}

/** The parsers report damage by plain errors. What the system reports, and faults of our own, stay what they are. */
export function parserFault(error: unknown): unknown {
  if (!(error instanceof Error) || error.constructor !== Error || 'code' in error) return error
  if (/EOF|overflows|not found/.test(error.message)) return archiveRefused('truncated')
  return archiveRefused(error.message.includes('extra bytes') ? 'trailing_data' : 'corrupt')
}
