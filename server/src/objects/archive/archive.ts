// Unpacks untrusted archives. A tar, tar.gz or zip becomes a folder of plain files and folders, or nothing: it is unpacked
// into a partial folder, which is renamed when it is complete. The parsers report the claims of the archive. Paths, modes
// and lengths are decided here, and an entry that is not plainly harmless is refused, never repaired. One thing is: packers
// of Windows that separate folders by backslashes mean slashes (zip.ts).
import { mkdir, mkdtemp, open, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { syncFolder } from '../sync-folder.ts'
import { type ArchiveEntry, type ArchiveFile, type ArchiveReader, isExecutable } from './entry.ts'
import { createMeter, type MeterLimits } from './meter.ts'
import { createPathTree, type PathLimits } from './paths.ts'
import { fileFault, type HeadFault, PROGRAM_HEAD_BYTES } from './program-head.ts'
import { archiveRefused, nearEntry } from './refusal.ts'
import { readTar, readTarGz } from './tar.ts'
import { isTarHeader } from './tar-blocks.ts'
import { createFolderWriter, type FolderWriter, type UnpackedFile } from './writer.ts'
import { readZip } from './zip.ts'

export type ArchiveLimits = MeterLimits & PathLimits

/** Limits of one archive. `bytes_max` is larger than any build of a game server, and bounds the disk. */
export const ARCHIVE_LIMITS: Readonly<ArchiveLimits> = {
  entries_max: 100_000,
  bytes_max: 8 * 1024 ** 3,
  ratio_max: 100,
  ratio_free_bytes: 64 * 1024 ** 2,
  path_bytes_max: 1024,
  depth_max: 64,
}

/** A file of the archive, with its path and mode after unpacking. `fault`: why it is no program for this machine. */
export type CheckedFile = { path: string; is_executable: boolean; fault: HeadFault | null }

/** `entries`: files and folders. `bytes`: of all files. */
export type Unpacked = { entries: number; bytes: number }

type Destination = Pick<FolderWriter, 'directory' | 'file'>

/** `files`: all files and folders written into `folder`, with hashes. */
type Accept = (folder: string, files: readonly UnpackedFile[]) => Promise<void>

/** First bytes of formats that are not unpacked, and their names. */
const OTHER_FORMATS = [
  ['\xfd7zXZ\0', 'xz'],
  ['BZh', 'bzip2'],
  ['\x28\xb5\x2f\xfd', 'zstd'],
  ['7z\xbc\xaf\x27\x1c', '7z'],
  ['Rar!\x1a\x07', 'rar'],
] as const
const PARTIAL = '.partial-'

/**
 * Reads the whole archive and writes nothing. Throws ApiError ARCHIVE_INVALID with `metadata: { entry, reason }`. An archive
 * that passes is accepted by unpackArchive. `onFile` is called for each file.
 */
export async function checkArchive(
  path: string,
  limits: Partial<ArchiveLimits> = {},
  onFile: (file: CheckedFile) => void = () => undefined,
): Promise<Unpacked> {
  return await walk(path, { ...ARCHIVE_LIMITS, ...limits }, createFileReader(onFile))
}

/** A destination that reads every entry and writes nothing. */
function createFileReader(onFile: (file: CheckedFile) => void): Destination {
  return {
    async directory() {},
    async file(path, entry) {
      let head = Buffer.alloc(0)
      for await (const chunk of entry.body) {
        if (head.length < PROGRAM_HEAD_BYTES) head = Buffer.concat([head, chunk.subarray(0, PROGRAM_HEAD_BYTES)])
      }
      const is_executable = isExecutable(entry, head)
      onFile({ path, is_executable, fault: fileFault(head, path, is_executable) })
    },
  }
}

/**
 * Unpacks a local file into `target_folder`, which appears complete and durable, or not at all. Its files have mode 0644,
 * or 0755 where the archive says executable; its folders have 0755. An existing folder, of a process that was faster, is
 * kept. Throws ApiError ARCHIVE_INVALID like checkArchive, or the system's error. `accept` is called when everything is on
 * the disk: when it throws, the folder does not appear.
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
 * Removes partial folders of a killed process. To be called before the first unpacking, by the only process that unpacks
 * into `parent_folder`.
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
  let name: string | null = null
  try {
    for await (const entry of entries) {
      name = entry.name
      const added = tree.add(entry.name, entry.kind)
      for (const directory of added?.new_directories ?? []) await destination.directory(directory)
      if (added === null || entry.kind === 'directory') {
        for await (const chunk of entry.body) if (chunk.length > 0) throw archiveRefused('size_mismatch', entry.name)
        continue
      }
      await destination.file(added.path, entry)
      bytes += entry.content_length
      files += 1
    }
  } catch (error) {
    throw nearEntry(error, name)
  }
  if (files === 0) throw archiveRefused('empty')
  return { entries: tree.count(), bytes }
}

/** Chooses the reader by the first bytes. The name of the file and the type of the upload are ignored. */
async function readerOf({ handle }: ArchiveFile): Promise<ArchiveReader> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(512), 0, 512, 0)
  const head = buffer.subarray(0, bytesRead)
  const start = head.toString('latin1', 0, 4)
  if (start === 'PK\x03\x04' || start === 'PK\x05\x06') return readZip
  if (start.startsWith('\x1f\x8b')) return readTarGz
  if (isTarHeader(head)) return readTar
  const other = OTHER_FORMATS.find(([magic]) => head.toString('latin1').startsWith(magic))
  if (other === undefined) throw archiveRefused('not_an_archive')
  throw archiveRefused('not_an_archive', null, `It is packed by ${other[1]}. Pack it as tar.gz or zip.`)
}

async function putInPlace(partial: string, target: string): Promise<void> {
  try {
    await rename(partial, target)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    // Another process was faster. Its folder is complete, because only a rename makes it appear, and is never empty.
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error
  }
}
