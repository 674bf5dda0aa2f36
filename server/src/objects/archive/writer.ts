// Writes an unpacked build into a partial folder that no other process uses. paths.ts has checked every path. Files are
// created and never opened, so no existing file is followed or overwritten.
import { createHash } from 'node:crypto'
import { chmod, type FileHandle, mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFolder } from '../sync-folder.ts'
import { type ArchiveEntry, isExecutable } from './entry.ts'
import { PROGRAM_HEAD_BYTES } from './program-head.ts'

/** Readable by all, because lobbies run as other users; writable by the platform's user only. */
const FOLDER_MODE = 0o755
const FILE_MODE = 0o644
const EXECUTABLE_MODE = 0o755
/** Files flushed at once. More of them make it no faster. */
const FLUSHES_MAX = 16

/**
 * A written file or folder, by its path in the partial folder. `sha256` is null for a folder and for a symbolic link.
 * `is_linked`: the file has hard links in other folders.
 */
export type UnpackedFile = { path: string; sha256: string | null; is_linked?: boolean }

export type FolderWriter = {
  directory: (path: string) => Promise<void>
  file: (path: string, entry: ArchiveEntry) => Promise<void>
  /** Resolves with all files and folders when everything is on the disk. */
  finish: () => Promise<UnpackedFile[]>
  /** Resolves when no write is under way, so that the folder can be removed. */
  abandon: () => Promise<void>
}

export function createFolderWriter(folder: string): FolderWriter {
  const directories = [folder]
  const written: UnpackedFile[] = []
  const flushes = new Set<Promise<unknown>>()
  const faults: unknown[] = []

  return {
    async directory(path) {
      const directory = join(folder, path)
      await mkdir(directory, { mode: FOLDER_MODE })
      directories.push(directory)
      written.push({ path, sha256: null })
    },

    async file(path, entry) {
      const handle = await open(join(folder, path), 'wx', FILE_MODE)
      try {
        const { is_executable, sha256 } = await writeBody(handle, entry)
        written.push({ path, sha256 })
        await handle.chmod(is_executable ? EXECUTABLE_MODE : FILE_MODE)
      } catch (error) {
        await handle.close()
        throw error
      }
      if (flushes.size >= FLUSHES_MAX) await Promise.race(flushes)
      const flush = flushAndClose(handle)
        .catch((error) => faults.push(error))
        .finally(() => flushes.delete(flush))
      flushes.add(flush)
    },

    async finish() {
      await Promise.all(flushes)
      if (faults.length > 0) throw new AggregateError(faults, 'Unpacked files could not be written to the disk.')
      for (const directory of directories) {
        await chmod(directory, FOLDER_MODE)
        await syncFolder(directory)
      }
      return written
    },

    async abandon() {
      await Promise.all(flushes)
    },
  }
}

async function writeBody(handle: FileHandle, entry: ArchiveEntry): Promise<{ is_executable: boolean; sha256: string }> {
  const hash = createHash('sha256')
  let head = Buffer.alloc(0)
  for await (const chunk of entry.body) {
    if (head.length < PROGRAM_HEAD_BYTES) head = Buffer.concat([head, chunk.subarray(0, PROGRAM_HEAD_BYTES)])
    hash.update(chunk)
    await handle.appendFile(chunk)
  }
  return { is_executable: isExecutable(entry, head), sha256: hash.digest('hex') }
}

async function flushAndClose(handle: FileHandle): Promise<void> {
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
