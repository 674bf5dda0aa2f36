// Shared by the readers of archive formats: the file that they read, and one entry at a time, with its literal name.
import type { FileHandle } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import type { Gunzip, InflateRaw, ZstdDecompress } from 'node:zlib'
import type { Meter } from './meter.ts'
import { isElf } from './program-head.ts'
import { archiveRefused } from './refusal.ts'

export type ArchiveEntry = {
  name: string
  kind: 'file' | 'directory'
  content_length: number
  /** Null: the archive was packed on a system without this bit, so the first bytes of the file decide. */
  is_executable: boolean | null
  /** Must be read to its end before the next entry is requested. A folder has no bytes. */
  body: AsyncIterable<Uint8Array>
}

export type ArchiveFile = { handle: FileHandle; content_length: number }

export type ArchiveReader = (
  file: ArchiveFile,
  meter: Meter,
  limits: { entries_max: number },
) => AsyncGenerator<ArchiveEntry>

const CHUNK_BYTES = 64 * 1024

/**
 * Whether the file is unpacked as executable: by the archive's bit, otherwise by the head of programs and scripts. An ELF
 * file always is: systems without such a bit write archives that deny it to every file.
 */
export function isExecutable({ is_executable }: Pick<ArchiveEntry, 'is_executable'>, head: Buffer): boolean {
  return isElf(head) || (is_executable ?? head.toString('latin1', 0, 2) === '#!')
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

/** The inflated bytes. Throws ApiError ARCHIVE_INVALID when they are damaged. */
export async function* inflated(
  bytes: AsyncIterable<Buffer>,
  inflate: Gunzip | InflateRaw | ZstdDecompress,
): AsyncGenerator<Buffer> {
  const feeding = pipeline(bytes, inflate)
  // The loop below throws the error. This handler only prevents an unhandled rejection.
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

export function inflateFault(error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'Z_BUF_ERROR') return archiveRefused('truncated')
  return code?.startsWith('Z_') || code?.startsWith('ZSTD_') ? archiveRefused('corrupt') : error
}

/** The parsers report damage by plain errors. Errors of the system, and internal ones, are returned unchanged. */
export function parserFault(error: unknown): unknown {
  if (!(error instanceof Error) || error.constructor !== Error || 'code' in error) return error
  if (/EOF|overflows|not found/.test(error.message)) return archiveRefused('truncated')
  return archiveRefused(error.message.includes('extra bytes') ? 'trailing_data' : 'corrupt')
}
