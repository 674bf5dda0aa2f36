// A folder of address data: lists (`tor.txt`, `vpn-provider.txt`, ...) and mmdb files. It is read every two seconds. A new or
// changed file replaces its old content. A file that cannot be read, is broken or is gone is logged once, and its old
// content stays in force: a copy that failed half-way must not admit anybody.
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { ADDRESS_CLASSES, type AddressClass } from './classes.ts'
import type { AddressList } from './list.ts'
import type { Mmdb } from './mmdb.ts'
import { readList, readMmdb } from './read.ts'

/** `none`: who stands in such a list is in no class, whatever other files say. */
export type ListClass = AddressClass | 'none'
export type AddressFile =
  | { kind: 'list'; name: string; list_class: ListClass; list: AddressList }
  | { kind: 'mmdb'; name: string; mmdb: Mmdb }

export type AddressFolder = {
  /** In the order of their names. */
  files: () => readonly AddressFile[]
  /** Reads what has changed; true when that changed anything. Never rejects. */
  refresh: () => Promise<boolean>
}

/** Files read from the folder of address data. */
const FILES_MAX = 64
/** Size of a list of addresses. */
const LIST_BYTES_MAX = 64 * 1024 ** 2
/** Size of an mmdb file. */
const MMDB_BYTES_MAX = 1024 ** 3
const LIST_NAME = new RegExp(`^(${[...ADDRESS_CLASSES, 'none'].join('|')})(?:-[\\w.-]{1,64})?\\.txt$`)
const MMDB_NAME = /^[\w.-]{1,100}\.mmdb$/i

export function createAddressFolder(folder: string, log: Logger): AddressFolder {
  const files = new Map<string, AddressFile>()
  /** As each was when it was last read, well or not. */
  const seen = new Map<string, string>()
  const gone = new Set<string>()
  let in_order: readonly AddressFile[] = []
  let has_too_many = false

  async function refresh(): Promise<boolean> {
    const names = await namesIn()
    let has_changed = false
    for (const name of names) {
      gone.delete(name)
      has_changed = (await readChanged(name)) || has_changed
    }
    for (const name of files.keys()) {
      if (names.includes(name) || gone.has(name)) continue
      gone.add(name)
      log.warn({ folder, name }, 'a file of address data has gone; what it said stays in force until this process ends')
    }
    if (has_changed) in_order = [...files.keys()].sort().map((name) => files.get(name)!)
    return has_changed
  }

  async function namesIn(): Promise<readonly string[]> {
    const all = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') warnOnce('.', error)
      return []
    })
    const names = all.filter((name) => LIST_NAME.test(name) || MMDB_NAME.test(name)).sort()
    if (names.length > FILES_MAX && !has_too_many) {
      has_too_many = true
      log.warn({ folder, files_max: FILES_MAX }, 'there are more files of address data than are read')
    }
    return names.slice(0, FILES_MAX)
  }

  async function readChanged(name: string): Promise<boolean> {
    try {
      const { size, mtimeMs, ino } = await stat(join(folder, name))
      const version = `${ino} ${size} ${mtimeMs}`
      if (seen.get(name) === version) return false
      seen.set(name, version)
      files.set(name, await read(name, size))
      return true
    } catch (error) {
      // The file went away after it was listed: the next reading notices.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') warnOnce(name, error as Error)
      return false
    }
  }

  async function read(name: string, size: number): Promise<AddressFile> {
    const list_class = LIST_NAME.exec(name)?.[1] as ListClass | undefined
    if (size > (list_class === undefined ? MMDB_BYTES_MAX : LIST_BYTES_MAX)) throw new Error('it is too large')
    if (list_class === undefined) {
      const mmdb = await readMmdb(join(folder, name))
      log.info({ folder, name, built: mmdb.built }, 'a database of addresses has been read')
      return { kind: 'mmdb', name, mmdb }
    }
    const { list, bad_lines } = await readList(join(folder, name))
    if (bad_lines > 0) log.warn({ folder, name, bad_lines }, 'a list of addresses has lines that say nothing')
    log.info({ folder, name, entries: list.entry_count }, 'a list of addresses has been read')
    return { kind: 'list', name, list_class, list }
  }

  const warned = new Map<string, string>()
  /** A sentence about a file is not said again until it is another. */
  function warnOnce(name: string, error: Error): void {
    const sentence = `${error.message} ${seen.get(name) ?? ''}`
    if (warned.get(name) === sentence) return
    warned.set(name, sentence)
    log.warn({ folder, name, reason: error.message }, 'a file of address data cannot be used; what was known stays')
  }

  return { files: () => in_order, refresh }
}
