// Unpacking what strangers have packed. A tar, tar.gz or zip becomes a folder of plain files and folders, or nothing:
// it is unpacked beside its place and renamed when it is complete. The parsers only say what the archive claims; which
// path, mode and length becomes true is decided here, and what is not plainly harmless is refused, never repaired.
import { mkdir, mkdtemp, open, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { type ArchiveEntry, type ArchiveFile, type ArchiveReader, HEAD_BYTES, isExecutable } from './archive/entry.ts'
import { createMeter, type MeterLimits } from './archive/meter.ts'
import { createPathTree, type PathLimits } from './archive/paths.ts'
import { archiveRefused } from './archive/refusal.ts'
import { readTar, readTarGz } from './archive/tar.ts'
import { isTarHeader } from './archive/tar-blocks.ts'
import { createFolderWriter, type FolderWriter, type UnpackedFile } from './archive/writer.ts'
import { readZip } from './archive/zip.ts'
import { syncFolder } from './sync-folder.ts'

export type ArchiveLimits = MeterLimits & PathLimits

export const ARCHIVE_LIMITS: Readonly<ArchiveLimits> = {
  entries_max: 100_000,
  bytes_max: 8 * 1024 ** 3,
  ratio_max: 100,
  ratio_free_bytes: 64 * 1024 ** 2,
  path_bytes_max: 1024,
  depth_max: 64,
}

/** A file as it would be unpacked. */
export type CheckedFile = { path: string; is_executable: boolean }

/** Files and folders, and the bytes of the files. */
export type Unpacked = { entries: number; bytes: number }

type Destination = Pick<FolderWriter, 'directory' | 'file'>

/** `files`: everything that was written into `folder`, with hashes. */
type Accept = (folder: string, files: readonly UnpackedFile[]) => Promise<void>

const PARTIAL = '.partial-'

/**
 * Reads the whole archive and writes nothing. Throws ApiError ARCHIVE_INVALID with `metadata: { entry, reason }`: what
 * passes here, unpackArchive takes. `onFile` is called for each file.
 */
export async function checkArchive(
  path: string,
  limits: Partial<ArchiveLimits> = {},
  onFile: (file: CheckedFile) => void = () => undefined,
): Promise<Unpacked> {
  return await walk(path, { ...ARCHIVE_LIMITS, ...limits }, createFileReader(onFile))
}

/** Reads what a writer would write. */
function createFileReader(onFile: (file: CheckedFile) => void): Destination {
  return {
    async directory() {},
    async file(path, entry) {
      let head = Buffer.alloc(0)
      for await (const chunk of entry.body) {
        if (head.length < HEAD_BYTES) head = Buffer.concat([head, chunk.subarray(0, HEAD_BYTES)])
      }
      onFile({ path, is_executable: isExecutable(entry, head) })
    },
  }
}

/**
 * Unpacks a local file into `target_folder`, which appears complete and durable, or not at all. Its files are 0644, or
 * 0755 where the archive says executable, its folders 0755. When the folder is there already, because someone else was
 * faster, it stays as it is. Throws ApiError ARCHIVE_INVALID like checkArchive, or the system's error. `accept` is asked
 * when all of it is on the disk: when it throws, the folder does not appear.
 */
export async function unpackArchive(
  source: { path: string },
  target_folder: string,
  { accept, ...limits }: Partial<ArchiveLimits> & { accept?: Accept } = {},
): Promise<Unpacked> {
  const target = resolve(target_folder)
  const parent = dirname(target)
  await mkdir(parent, { recursive: true })
  const partial = await mkdtemp(join(parent, `${PARTIAL}${basename(target)}-`))
  const writer = createFolderWriter(partial)
  try {
    const unpacked = await walk(source.path, { ...ARCHIVE_LIMITS, ...limits }, writer)
    const files = await writer.finish()
    await accept?.(partial, files)
    await putInPlace(partial, target)
    await syncFolder(parent)
    return unpacked
  } finally {
    await writer.abandon()
    await rm(partial, { recursive: true, force: true })
  }
}

/**
 * Removes what an unpacking that was killed has left in the folder of the targets. For a process that knows itself to
 * be the only one that unpacks there, before its first.
 */
export async function removePartialFolders(parent_folder: string): Promise<void> {
  for (const name of await readdir(parent_folder)) {
    if (name.startsWith(PARTIAL)) await rm(join(parent_folder, name), { recursive: true, force: true })
  }
}

async function walk(path: string, limits: ArchiveLimits, destination: Destination): Promise<Unpacked> {
  const handle = await open(path)
  try {
    const file = { handle, content_length: (await handle.stat()).size }
    return await walkEntries((await readerOf(file))(file, createMeter(limits), limits), limits, destination)
  } finally {
    await handle.close()
  }
}

async function walkEntries(
  entries: AsyncIterable<ArchiveEntry>,
  limits: ArchiveLimits,
  destination: Destination,
): Promise<Unpacked> {
  const tree = createPathTree(limits)
  let bytes = 0
  let files = 0
  for await (const entry of entries) {
    const place = tree.add(entry.name, entry.kind)
    for (const directory of place?.new_directories ?? []) await destination.directory(directory)
    if (place === null || entry.kind === 'directory') {
      for await (const chunk of entry.body) if (chunk.length > 0) throw archiveRefused('size_mismatch', entry.name)
      continue
    }
    await destination.file(place.path, entry)
    bytes += entry.content_length
    files += 1
  }
  if (files === 0) throw archiveRefused('empty')
  return { entries: tree.count(), bytes }
}

/** By the first bytes; what the file is called, and what its uploader says it is, count for nothing. */
async function readerOf({ handle }: ArchiveFile): Promise<ArchiveReader> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(512), 0, 512, 0)
  const head = buffer.subarray(0, bytesRead)
  const start = head.toString('latin1', 0, 4)
  if (start === 'PK\x03\x04' || start === 'PK\x05\x06') return readZip
  if (start.startsWith('\x1f\x8b')) return readTarGz
  if (isTarHeader(head)) return readTar
  throw archiveRefused('not_an_archive')
}

async function putInPlace(partial: string, target: string): Promise<void> {
  try {
    await rename(partial, target)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    // Someone else was faster. What is there is complete, because only renaming makes it appear, and is never empty.
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error
  }
}
