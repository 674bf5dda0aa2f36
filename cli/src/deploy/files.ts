// The files of a folder, as they are uploaded: sorted by path, without what is ignored. Each file is read once for its hash, in
// bounded memory. A later read compares size and time, so a file that changes in between is noticed.
import { createHash } from 'node:crypto'
import type { Dirent, Stats } from 'node:fs'
import { lstat, open, readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { EXIT, Failure } from '../failure.ts'
import { changed, codeOf, unreadable } from './file-errors.ts'
import type { IgnoreRules } from './ignore-rules.ts'
import { HAS_PROGRAM_MARKS, isInside, isProgram } from './system-files.ts'

/** Files of a build before it is packed. A site may have UPLOAD_FILES_MAX of the contract. */
export const PACKED_FILES_MAX = 100_000
/** Files whose hashes are computed at once. */
const HASHES_AT_ONCE_MAX = 4
/** Bytes read at once. */
const READ_BYTES = 256 * 1024

export type FolderFile = {
  /** Relative to the folder, with `/`. */
  path: string
  /** Where it is read: absolute. */
  source: string
  bytes: number
  mtime_ms: number
  is_executable: boolean
}
export type HashedFile = FolderFile & { sha256: string }

type Walk = {
  folder: string
  real_folder: string
  rules: IgnoreRules
  files_max: number
  has_marks: boolean
  files: FolderFile[]
}

/**
 * Throws a Failure for links that leave the folder, unreadable files, and more than `files_max` files. `has_marks`: whether files
 * are marked as programs. Otherwise their first bytes decide.
 */
export async function listFiles(
  folder: string,
  rules: IgnoreRules,
  files_max: number,
  has_marks = HAS_PROGRAM_MARKS,
): Promise<FolderFile[]> {
  const walk: Walk = { folder, real_folder: await realFolder(folder), rules, files_max, has_marks, files: [] }
  const waiting = ['']
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    for (const entry of await readFolder(walk, path)) {
      const child = path === '' ? entry.name : `${path}/${entry.name}`
      if (rules.isIgnored(child, entry.isDirectory())) continue
      if (entry.isDirectory()) waiting.push(child)
      else await addFile(walk, child, entry)
    }
  }
  return walk.files.sort((a, b) => (a.path < b.path ? -1 : 1))
}

async function realFolder(folder: string): Promise<string> {
  try {
    const real = await realpath(folder)
    if ((await stat(real)).isDirectory()) return real
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw unreadable(folder, error)
    throw new Failure(`The folder ${folder} does not exist.`, {
      exit_code: EXIT.usage,
      remedy: 'Correct `folder` in muster.yaml, or create the folder with its `build` command.',
    })
  }
  throw new Failure(`${folder} is not a folder.`, { exit_code: EXIT.usage, remedy: 'Correct `folder` in muster.yaml.' })
}

async function readFolder({ folder }: Walk, path: string): Promise<Dirent[]> {
  try {
    return await readdir(join(folder, path), { withFileTypes: true })
  } catch (error) {
    throw unreadable(path === '' ? folder : path, error)
  }
}

async function addFile(walk: Walk, path: string, entry: Dirent): Promise<void> {
  const source = join(walk.folder, path)
  if (!entry.isFile() && !entry.isSymbolicLink()) {
    throw new Failure(`${path} is neither a file nor a folder.`, { remedy: leaveOut(path) })
  }
  const stats = entry.isSymbolicLink() ? await statOfLink(walk, path, source) : await statOfFile(path, source)
  if (walk.files.length === walk.files_max) {
    throw new Failure(`${walk.folder} has more than ${walk.files_max} files.`, {
      remedy: 'Leave out what the game does not need: `ignore` in muster.yaml, or .musterignore.',
    })
  }
  const { size: bytes, mtimeMs: mtime_ms, mode } = stats
  const is_executable = walk.has_marks ? (mode & 0o111) !== 0 : await programOf(path, source)
  walk.files.push({ path, source, bytes, mtime_ms, is_executable })
}

async function programOf(path: string, source: string): Promise<boolean> {
  try {
    return await isProgram(source)
  } catch (error) {
    throw unreadable(path, error)
  }
}

async function statOfFile(path: string, source: string): Promise<Stats> {
  try {
    return await lstat(source)
  } catch (error) {
    throw unreadable(path, error)
  }
}

/** A link to a file within the folder is uploaded as that file, such as those in node_modules/.bin. */
async function statOfLink(walk: Walk, path: string, source: string): Promise<Stats> {
  let target: string
  let stats: Stats
  try {
    target = await realpath(source)
    stats = await stat(target)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ELOOP') throw unreadable(path, error)
    throw new Failure(`${path} is a link to a file that does not exist.`, { remedy: leaveOut(path), cause: error })
  }
  if (!isInside(walk.real_folder, target)) {
    throw new Failure(`${path} is a link that leaves the folder: it leads to ${target}.`, { remedy: replaceLink(path) })
  }
  if (!stats.isFile()) throw new Failure(`${path} is a link to a folder.`, { remedy: replaceLink(path) })
  return stats
}

const leaveOut = (path: string): string => `Leave it out with the line /${path} in .musterignore.`
const replaceLink = (path: string): string =>
  `Put a copy in its place, or leave it out with the line /${path} in .musterignore.`

/** The same files with their SHA-256, in the same order. Throws a Failure when a file changes meanwhile. */
export async function hashFiles(files: readonly FolderFile[], signal: AbortSignal): Promise<HashedFile[]> {
  const hashed = new Array<HashedFile>(files.length)
  let next = 0
  const work = Array.from({ length: HASHES_AT_ONCE_MAX }, async () => {
    while (next < files.length) {
      const index = next++
      const file = files[index]!
      const hash = createHash('sha256')
      for await (const chunk of readLocalFile(file, { start: 0, length: file.bytes, signal })) hash.update(chunk)
      hashed[index] = { ...file, sha256: hash.digest('hex') }
    }
  })
  await Promise.all(work)
  return hashed
}

/** Exactly `length` bytes from `start`. Throws a Failure when the file is no longer the one that was listed. */
export async function* readLocalFile(
  file: FolderFile,
  { start, length, signal }: { start: number; length: number; signal: AbortSignal },
): AsyncGenerator<Buffer> {
  const handle = await open(file.source, 'r').catch((error: unknown) => Promise.reject(unreadable(file.path, error)))
  try {
    requireUnchanged(file, await handle.stat())
    for (let done = 0; done < length; ) {
      signal.throwIfAborted()
      const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, length - done))
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, start + done)
      if (bytesRead === 0) throw changed(file.path)
      done += bytesRead
      yield buffer.subarray(0, bytesRead)
    }
    requireUnchanged(file, await handle.stat())
  } finally {
    await handle.close()
  }
}

function requireUnchanged(file: FolderFile, { size, mtimeMs }: Stats): void {
  if (size !== file.bytes || mtimeMs !== file.mtime_ms) throw changed(file.path)
}

/**
 * The same files with names in Unicode normal form C, which names of sites have. Some tools of macOS compose accents otherwise.
 * Throws a Failure when two names are equal in this form.
 */
export function withNormalNames(files: readonly HashedFile[]): HashedFile[] {
  const by_name = new Map<string, { listed: string; file: HashedFile }>()
  for (const file of files) {
    const path = file.path.normalize('NFC')
    const twin = by_name.get(path)
    if (twin !== undefined) {
      throw new Failure(`Two files of the site are called ${path}: only the Unicode forms of their names differ.`, {
        remedy: `Delete or rename one of them. Written with escapes they are ${escaped(twin.listed)} and ${escaped(file.path)}.`,
      })
    }
    by_name.set(path, { listed: file.path, file: { ...file, path } })
  }
  return [...by_name.values()].map(({ file }) => file).sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** Shows the difference between two names that look alike. */
function escaped(path: string): string {
  const isPlain = (unit: string): boolean => unit >= ' ' && unit <= '~'
  const units = path.split('')
  return units.map((unit) => (isPlain(unit) ? unit : `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)).join('')
}

/** One hash for all files: their paths, contents, and which of them are executable. Times and owners do not matter. */
export function contentHashOf(files: readonly HashedFile[]): string {
  const hash = createHash('sha256')
  for (const { path, sha256, is_executable } of files) hash.update(`${is_executable ? 'x' : '-'} ${sha256} ${path}\n`)
  return hash.digest('hex')
}

export function bytesOf(files: readonly FolderFile[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0)
}
