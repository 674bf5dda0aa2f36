// The files of a backup: written whole and durable, each with its line in SHA256SUMS, and read again against it.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, readFile, rm } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { Readable } from 'node:stream'
import { syncFolder } from '../objects/sync-folder.ts'
import { CipherDamaged } from './encryption.ts'
import { SUMS_FILE } from './manifest.ts'

const FOLDER_MODE = 0o700
const FILE_MODE = 0o600
/** `<64 hex digits>  <path>`: the format of sha256sum. */
const SUMS_LINE = /^([0-9a-f]{64}) {2}(.+)$/
/** Files written or read at once: each waits for the disk most of the time. */
const FILES_AT_ONCE_MAX = 8
/** How many findings a check keeps. The rest is counted. */
const FINDINGS_MAX = 1_000

export type Contents = { sha256: string; content_length: number }
export type FileWriter = {
  /**
   * Stores the bytes under a path of the backup and notes their hash. Null, and nothing is kept, when they are not the
   * `expected` ones.
   */
  write: (path: string, body: AsyncIterable<Uint8Array>, expected?: Contents) => Promise<Contents | null>
  /** Adds the line of a file that is stored elsewhere. */
  note: (path: string, sha256: string) => void
  /** Writes SHA256SUMS, and makes the names of all files durable. */
  finish: () => Promise<void>
}

/** `folder` is there, and empty. */
export function createFileWriter(folder: string): FileWriter {
  const lines: string[] = []
  const folders = new Set([folder])

  async function requireFolder(path: string): Promise<void> {
    if (folders.has(path)) return
    await mkdir(path, { recursive: true, mode: FOLDER_MODE })
    for (let up = path; !folders.has(up); up = dirname(up)) folders.add(up)
  }

  return {
    async write(path, body, expected) {
      const target = join(folder, path)
      await requireFolder(dirname(target))
      const contents = await writeDurably(target, body)
      if (expected && (contents.sha256 !== expected.sha256 || contents.content_length !== expected.content_length)) {
        await rm(target)
        return null
      }
      lines.push(`${contents.sha256}  ${path}\n`)
      return contents
    },

    note(path, sha256) {
      lines.push(`${sha256}  ${path}\n`)
    },

    async finish() {
      await writeDurably(join(folder, SUMS_FILE), Readable.from(lines.sort().map((line) => Buffer.from(line))))
      for (const path of folders) await syncFolder(path)
    },
  }
}

export async function writeDurably(path: string, body: AsyncIterable<Uint8Array>): Promise<Contents> {
  const file = await open(path, 'wx', FILE_MODE)
  try {
    const hash = createHash('sha256')
    let content_length = 0
    for await (const chunk of body) {
      hash.update(chunk)
      content_length += chunk.length
      await file.appendFile(chunk)
    }
    await file.sync()
    return { sha256: hash.digest('hex'), content_length }
  } finally {
    await file.close()
  }
}

export function contentsOf(path: string): Promise<Contents & { line_count: number }> {
  return contentsIn(createReadStream(path))
}

async function contentsIn(body: AsyncIterable<Buffer>): Promise<Contents & { line_count: number }> {
  const hash = createHash('sha256')
  let content_length = 0
  let line_count = 0
  for await (const chunk of body) {
    hash.update(chunk)
    content_length += chunk.length
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) line_count++
  }
  return { sha256: hash.digest('hex'), content_length, line_count }
}

export type CheckedFiles = {
  file_count: number
  bytes: number
  /** Files that are there, and whose bytes were not read this time. */
  unread_count: number
  /** The paths that SHA256SUMS names. */
  known: Set<string>
  /** The files that are as they were written. */
  sound: Map<string, { line_count: number }>
  /** What is wrong, a sentence each that begins with the file's path. */
  findings: string[]
}

/** Reads a file of a backup that is not in its folder. Null: it is missing. `unread`: it is there, and was read before. */
export type ReadElsewhere = (path: string) => Promise<AsyncIterable<Buffer> | 'unread' | null>

/** Reads every file of a backup against SHA256SUMS, in both directions. `elsewhere`: for files that are not in the folder. */
export async function checkFiles(folder: string, elsewhere: ReadElsewhere): Promise<CheckedFiles> {
  const checked: CheckedFiles = {
    ...{ file_count: 0, bytes: 0, unread_count: 0 },
    ...{ known: new Set(), sound: new Map(), findings: [] },
  }
  const find = (finding: string): void => {
    if (checked.findings.length < FINDINGS_MAX) checked.findings.push(finding)
  }
  const there = new Set(await filesOf(folder))
  if (!there.delete(SUMS_FILE)) find(`${SUMS_FILE} is missing`)
  else {
    const sums = await readSums(folder, find)
    checked.known = new Set(sums.keys())
    await forEachAtOnce(sums, async ([path, sha256]) => {
      const body = there.delete(path) ? createReadStream(join(folder, path)) : await elsewhere(path)
      if (body === null) return find(`${path} is missing`)
      if (body === 'unread') return void checked.unread_count++
      const contents = await contentsIn(body).catch((error: unknown) => {
        if (error instanceof CipherDamaged) return null
        throw error
      })
      if (contents === null) return find(`${path} is damaged: it cannot be decrypted`)
      checked.file_count++
      checked.bytes += contents.content_length
      if (contents.sha256 === sha256) checked.sound.set(path, { line_count: contents.line_count })
      else find(`${path} is damaged: its bytes are not those that ${SUMS_FILE} names`)
    })
    for (const path of there) find(`${path} is not named by ${SUMS_FILE}`)
  }
  checked.findings.sort()
  return checked
}

/** The hashes by path. What is no line of it is handed to `find`, a sentence each. */
export async function readSums(
  folder: string,
  find: (finding: string) => void = () => undefined,
): Promise<Map<string, string>> {
  const sums = new Map<string, string>()
  const lines = (await readFile(join(folder, SUMS_FILE), 'utf8')).split('\n')
  if (lines.pop() !== '') find(`${SUMS_FILE} is damaged: it breaks off`)
  for (const line of lines) {
    const [, sha256, name] = SUMS_LINE.exec(line) ?? []
    if (sha256 === undefined || name === undefined) find(`${SUMS_FILE} is damaged: ${JSON.stringify(line)}`)
    else if (sums.has(name)) find(`${SUMS_FILE} is damaged: it names ${name} twice`)
    else sums.set(name, sha256)
  }
  return sums
}

/** The paths of all files below, with `/` between their parts. Anything that is neither file nor folder is one of them. */
export async function filesOf(folder: string): Promise<string[]> {
  const items = await readdir(folder, { recursive: true, withFileTypes: true })
  return items
    .filter((item) => !item.isDirectory())
    .map((item) => relative(folder, join(item.parentPath, item.name)).split(sep).join('/'))
}

/** FILES_AT_ONCE_MAX of them at a time. Rejects with the first failure, when what was under way has ended. */
export async function forEachAtOnce<T>(items: Iterable<T> | AsyncIterable<T>, work: (item: T) => Promise<void>) {
  const left = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]()
  const failures: unknown[] = []
  const worker = async (): Promise<void> => {
    try {
      for (let next = await left.next(); !next.done && failures.length === 0; next = await left.next())
        await work(next.value)
    } catch (error) {
      failures.push(error)
    }
  }
  await Promise.all(Array.from({ length: FILES_AT_ONCE_MAX }, worker))
  if (failures.length > 0) throw failures[0]
}
