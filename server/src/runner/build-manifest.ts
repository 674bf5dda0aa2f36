// The manifest of an unpacked build: size, mode, inode, times and SHA-256 of everything in its folder. It lies beside the
// folder, where no lobby can read it, and is written before the folder gets its final name.
//
// The full check reads every byte. The quick check, made at each start, compares sizes, modes, inodes and times. It finds
// every change made through the file system, even with the time of modification set back, because ctime cannot be set.
// Only the full check finds bytes that the disk itself changed.
import { createHash, hash } from 'node:crypto'
import { type BigIntStats, createReadStream, lstatSync, readdirSync } from 'node:fs'
import { lstat, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { UnpackedFile } from '../objects/archive/writer.ts'
import { syncFolder } from '../objects/sync-folder.ts'

/** Entries that a quick check compares: 2 ms on an idle machine. In a larger build they are evenly spread. */
const QUICK_ENTRIES_MAX = 500
/** Bytes of a file that a full check reads in one piece. Larger files are streamed. */
const WHOLE_BYTES_MAX = 1024n ** 2n
/** Bytes of a manifest: 100,000 entries, the most of an archive, with the longest paths. */
const MANIFEST_BYTES_MAX = 256 * 1024 * 1024

/**
 * A file, or a folder with `sha256` null. Integers are text, because times in nanoseconds exceed a safe number.
 * `change_ns`: null for a file with hard links in other builds, because each new link changes it.
 */
type Entry = {
  path: string
  content_length: string
  mode: string
  inode: string
  modify_ns: string
  change_ns: string | null
  sha256: string | null
}
/** `names`: the sorted entries of the build's folder itself, whose own times are those of the last use of the build. */
export type BuildManifest = { names: string[]; entries: Entry[] }

/** The first difference, as a short phrase; null when there is none. */
export type Difference = string | null

type Pace = (bytes: number) => Promise<void> | void

/**
 * Makes the manifest of the unpacked `folder` and writes it durably. Reads every file back first, and throws when one
 * differs from the written bytes.
 */
export async function makeManifest(folder: string, files: readonly UnpackedFile[], path: string): Promise<void> {
  const entries: Entry[] = []
  for (const { path: name, sha256, is_linked = false } of files) {
    const facts = factsOf(await lstat(join(folder, name), { bigint: true }))
    entries.push({ path: name, ...facts, ...(is_linked && { change_ns: null }), sha256 })
  }
  const manifest: BuildManifest = { names: (await readdir(folder)).sort(), entries }
  const difference = await fullDifference(folder, manifest)
  if (difference !== null) throw new Error(`An unpacked build differs from the written bytes: ${difference}.`)
  await writeManifest(path, manifest)
}

/** The first line is the hash of the rest, so that a damaged manifest is recognised. */
async function writeManifest(path: string, manifest: BuildManifest): Promise<void> {
  const text = JSON.stringify(manifest)
  const draft = `${path}.draft`
  await rm(draft, { force: true })
  const file = await open(draft, 'wx', 0o600)
  try {
    await file.writeFile(`${hashOfText(text)}\n${text}`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(draft, path)
  await syncFolder(join(path, '..'))
}

/** Null when there is none, or it is damaged. */
export async function readManifest(path: string): Promise<BuildManifest | null> {
  try {
    const bytes = await readFile(path)
    if (bytes.length > MANIFEST_BYTES_MAX) return null
    const text = bytes.toString()
    const line = text.indexOf('\n')
    if (line === -1 || text.slice(0, line) !== hashOfText(text.slice(line + 1))) return null
    return JSON.parse(text.slice(line + 1)) as BuildManifest
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** The part of a manifest that a quick check compares. It is kept in memory while the build is in use. */
export function quickPart({ names, entries }: BuildManifest): BuildManifest {
  if (entries.length <= QUICK_ENTRIES_MAX) return { names, entries }
  const step = entries.length / QUICK_ENTRIES_MAX
  return { names, entries: Array.from({ length: QUICK_ENTRIES_MAX }, (_, index) => entries[Math.floor(index * step)]!) }
}

/** Synchronous and fast where the file system caches the folder: a player waits for it. */
export function quickDifference(folder: string, { names, entries }: BuildManifest): Difference {
  try {
    if (!isSameList(readdirSync(folder).sort(), names)) return 'its folder has other entries'
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'its folder is gone'
    throw error
  }
  for (const entry of entries) {
    const stats = lstatSync(join(folder, entry.path), { bigint: true, throwIfNoEntry: false })
    const difference = differenceOf(entry, stats)
    if (difference !== null) return difference
  }
  return null
}

/** Reads everything. `pace` is awaited after each piece. */
export async function fullDifference(
  folder: string,
  manifest: BuildManifest,
  pace: Pace = () => undefined,
): Promise<Difference> {
  const quick = quickDifference(folder, { names: manifest.names, entries: [] })
  if (quick !== null) return quick
  for (const entry of manifest.entries) {
    const path = join(folder, entry.path)
    const stats = await lstat(path, { bigint: true }).catch(nullIfGone)
    const difference = differenceOf(entry, stats)
    if (difference !== null) return difference
    if (entry.sha256 !== null && (await hashOfFile(path, stats!.size, pace)) !== entry.sha256)
      return `${entry.path} has other bytes`
  }
  return null
}

/** Most files of a build are small. For those a stream takes longer than one read. */
async function hashOfFile(path: string, content_length: bigint, pace: Pace): Promise<string> {
  if (content_length <= WHOLE_BYTES_MAX) {
    await pace(Number(content_length))
    return hash('sha256', await readFile(path))
  }
  const digest = createHash('sha256')
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    digest.update(chunk)
    await pace(chunk.length)
  }
  return digest.digest('hex')
}

function nullIfGone(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null
  throw error
}

function differenceOf(entry: Entry, stats: BigIntStats | null | undefined): Difference {
  if (!stats) return `${entry.path} is gone`
  const facts = factsOf(stats)
  const member = (Object.keys(facts) as (keyof typeof facts)[]).find(
    (name) => entry[name] !== null && facts[name] !== entry[name],
  )
  return member === undefined ? null : `${entry.path} has another ${member}`
}

function factsOf(stats: BigIntStats): Omit<Entry, 'path' | 'sha256'> {
  return {
    content_length: stats.isDirectory() ? '0' : String(stats.size),
    mode: String(stats.mode),
    inode: String(stats.ino),
    modify_ns: String(stats.mtimeNs),
    change_ns: String(stats.ctimeNs),
  }
}

function isSameList(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((item, index) => item === others[index])
}

function hashOfText(text: string): string {
  return hash('sha256', text)
}
