// Packs the server into a tar.gz. The same files give the same bytes: paths are sorted, times and owners are zero, and a mode
// only says whether the file is executable. So a deploy that was killed continues with the same archive.
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import tar, { type Pack } from 'tar-stream'
import { Failure } from '../failure.ts'
import { codeOf, isMissing } from './file-errors.ts'
import { type FolderFile, type HashedFile, readLocalFile } from './files.ts'

const EPOCH = new Date(0)
const FILE_MODE = 0o644
const EXECUTABLE_MODE = 0o755
/** Only the user may read an archive of a server. */
const ARCHIVE_MODE = 0o600
const FOLDER_MODE = 0o700

export type Packing = { signal: AbortSignal; advance: (bytes: number) => void }

/** The archive of these files at `target`. An archive that an interrupted deploy left there is used again. */
export async function packFiles(files: readonly HashedFile[], target: string, packing: Packing): Promise<HashedFile> {
  const found = await stat(target).catch((error: unknown) => {
    if (isMissing(error)) return null
    throw error
  })
  if (found === null) await writeArchive(files, target, packing)
  return hashArchive(target, packing.signal)
}

async function writeArchive(files: readonly HashedFile[], target: string, packing: Packing): Promise<void> {
  const partial = `${target}.partial`
  try {
    await mkdir(dirname(target), { recursive: true, mode: FOLDER_MODE })
    const pack = tar.pack()
    const written = pipeline(pack, createGzip(), createWriteStream(partial, { mode: ARCHIVE_MODE }), {
      signal: packing.signal,
    })
    const added = addAll(pack, files, packing).catch((error: Error) => {
      pack.destroy(error)
      throw error
    })
    // The reason why files could not be added is more precise than the end of the stream.
    const [add, write] = await Promise.allSettled([added, written])
    if (add.status === 'rejected' && !isStreamEnd(add.reason)) throw add.reason
    if (write.status === 'rejected') throw write.reason
    await rename(partial, target)
  } catch (error) {
    await rm(partial, { force: true })
    if (codeOf(error) === 'ENOSPC') {
      throw new Failure(`This machine's disk is full: ${dirname(target)} has no room for the archive.`, {
        cause: error,
      })
    }
    throw error
  }
}

const isStreamEnd = (error: unknown): boolean =>
  ['ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED'].includes(codeOf(error) ?? '')

async function addAll(pack: Pack, files: readonly HashedFile[], packing: Packing): Promise<void> {
  for (const file of files) {
    const mode = file.is_executable ? EXECUTABLE_MODE : FILE_MODE
    const header = { name: file.path, size: file.bytes, mode, mtime: EPOCH, uid: 0, gid: 0, uname: '', gname: '' }
    const entry = pack.entry(header)
    await pipeline(readLocalFile(file, { start: 0, length: file.bytes, signal: packing.signal }), meter(packing), entry)
  }
  pack.finalize()
}

function meter({ advance }: Packing): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      advance(chunk.length)
      done(null, chunk)
    },
  })
}

async function hashArchive(source: string, signal: AbortSignal): Promise<HashedFile> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(source), hash, { signal })
  const { size: bytes, mtimeMs: mtime_ms } = await stat(source)
  const file: FolderFile = { path: 'server.tar.gz', source, bytes, mtime_ms, is_executable: false }
  return { ...file, sha256: hash.digest('hex') }
}
