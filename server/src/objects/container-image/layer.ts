// Reads one layer of an image, and checks every entry. A layer is a tar of changes: files, folders and links, and whiteouts
// that remove what lower layers have. Paths are plain names below the root, and no path leads through a link.
import { createHash } from 'node:crypto'
import { posix } from 'node:path'
import type { Header } from 'tar-stream'
import type { Meter } from '../archive/meter.ts'
import { type ArchiveFault, archiveRefused } from '../archive/refusal.ts'
import { plainKind, readTarEntries, type TarEntry } from '../archive/tar.ts'
import { imageRefused } from './refusal.ts'

const WHITEOUT = '.wh.'
const OPAQUE = '.wh..wh..opq'
/** Bytes of one name in a layer. */
const NAME_BYTES_MAX = 255
/** Bytes of a path in a layer. */
const PATH_BYTES_MAX = 1_024
/** Names in a path of a layer. */
const DEPTH_MAX = 64
/** Bytes of the target of a symbolic link, as in Linux. */
const LINK_BYTES_MAX = 4_095
/** Devices that base images contain. The sandbox has a /dev of its own, so they are left out. */
const PLAIN_DEVICES = new Set(
  ['null', 'zero', 'full', 'random', 'urandom', 'tty', 'console', 'ptmx'].map((name) => `dev/${name}`),
)

/** Owner and mode as the layer names them. */
export type Access = { mode: number; uid: number; gid: number }

/** `path`: relative to the root. `target` of a hard link: the path of an earlier file of this layer. */
export type LayerEntry =
  | { kind: 'directory'; path: string; access: Access }
  | { kind: 'file'; path: string; access: Access; body: AsyncIterable<Uint8Array> }
  | { kind: 'symlink'; path: string; target: string }
  | { kind: 'hard_link'; path: string; target: string }
  | { kind: 'whiteout'; path: string }
  | { kind: 'opaque'; path: string }

/** Entries left for all layers of an image. */
export type EntryBudget = { entries_left: number }

/**
 * The checked entries. The body of a file must be read before the next entry. When the iteration has ended without an
 * error, the tar has the hash `diff_id`.
 */
export async function* readLayer(
  bytes: AsyncIterable<Buffer>,
  diff_id: string,
  meter: Meter,
  budget: EntryBudget,
): AsyncGenerator<LayerEntry> {
  const hash = createHash('sha256')
  async function* hashed(): AsyncGenerator<Buffer> {
    for await (const chunk of bytes) {
      hash.update(chunk)
      yield chunk
    }
  }
  const tree = new LayerTree(budget)
  for await (const entry of readTarEntries(hashed(), meter)) {
    const checked = tree.check(entry)
    if (checked?.kind !== 'file') for await (const _ of entry.body);
    if (checked !== null) yield checked
  }
  if (hash.digest('hex') !== diff_id) throw imageRefused('digest', `sha256:${diff_id}`)
}

class LayerTree {
  readonly #kinds = new Map<string, 'directory' | 'file' | 'symlink'>()
  readonly #budget: EntryBudget

  constructor(budget: EntryBudget) {
    this.#budget = budget
  }

  /** Null for an entry that is left out: devices of /dev. The root is a folder with an empty path. */
  check({ header, body }: TarEntry): LayerEntry | null {
    const { name } = header
    if (--this.#budget.entries_left < 0) throw archiveRefused('too_many_entries', name)
    const path = pathOf(name, name)
    if (path === '') {
      if (plainKind(header) === 'directory') return { kind: 'directory', path, access: accessOf(header) }
      throw archiveRefused('empty_name', name)
    }
    const kind = kindOf(header, path)
    if (kind === null) return null
    const base = posix.basename(path)
    if (base.startsWith(WHITEOUT)) return this.#whiteout(path, base, name)
    this.#addParents(path, name)
    if (kind === 'directory') {
      this.#add(path, 'directory', name)
      return { kind, path, access: accessOf(header) }
    }
    if (kind === 'symlink') {
      this.#add(path, 'symlink', name)
      return { kind, path, target: targetOf(header) }
    }
    if (kind === 'file') {
      this.#add(path, 'file', name)
      return { kind, path, access: accessOf(header), body }
    }
    const target = pathOf((header.linkname ?? '').replace(/^\//, ''), name)
    if (this.#kinds.get(target) !== 'file') throw imageRefused('hard_link', name)
    this.#add(path, 'file', name)
    return { kind: 'hard_link', path, target }
  }

  #whiteout(path: string, base: string, name: string): LayerEntry {
    const folder = posix.dirname(path) === '.' ? '' : posix.dirname(path)
    if (base === OPAQUE) return { kind: 'opaque', path: folder }
    const removed = base.slice(WHITEOUT.length)
    if (removed === '' || removed === '.' || removed === '..' || removed.startsWith(WHITEOUT)) {
      throw imageRefused('whiteout', name)
    }
    return { kind: 'whiteout', path: posix.join(folder, removed) }
  }

  #addParents(path: string, name: string): void {
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
      const parent = path.slice(0, at)
      const known = this.#kinds.get(parent)
      if (known === undefined) {
        if (--this.#budget.entries_left < 0) throw archiveRefused('too_many_entries', name)
        this.#kinds.set(parent, 'directory')
      } else if (known !== 'directory') throw archiveRefused('not_a_folder', name)
    }
  }

  /** A folder may be listed again. */
  #add(path: string, kind: 'directory' | 'file' | 'symlink', name: string): void {
    const known = this.#kinds.get(path)
    if (known !== undefined && !(known === 'directory' && kind === 'directory')) throw archiveRefused('duplicate', name)
    this.#kinds.set(path, kind)
  }
}

/** The relative path of plain names; empty for the root. A leading `./` is left out. */
function pathOf(text: string, name: string): string {
  if (text.length > PATH_BYTES_MAX || Buffer.byteLength(text) > PATH_BYTES_MAX)
    throw archiveRefused('path_too_long', name)
  const path = text.replace(/^\.\//, '').replace(/\/$/, '')
  if (path === '' || path === '.') return ''
  if (path.startsWith('/')) throw archiveRefused('absolute', name)
  const names = path.split('/')
  if (names.length > DEPTH_MAX) throw archiveRefused('path_too_deep', name)
  for (const one of names) {
    const fault = nameFault(one)
    if (fault !== null) throw archiveRefused(fault, name)
  }
  return path
}

/** Image names are those of Linux: colons, backslashes and differences in case are allowed. */
function nameFault(name: string): ArchiveFault | null {
  if (name === '') return 'empty_name'
  if (name === '.' || name === '..') return 'dots'
  if (name.includes('\uFFFD')) return 'encoding'
  if (/\p{Cc}/u.test(name)) return 'control_character'
  return Buffer.byteLength(name) > NAME_BYTES_MAX ? 'path_too_long' : null
}

function kindOf(header: Header, path: string): 'file' | 'directory' | 'symlink' | 'hard_link' | null {
  const plain = plainKind(header)
  if (plain !== null) return plain
  if (header.type === 'symlink') return 'symlink'
  if (header.type === 'link') return 'hard_link'
  if (header.type === 'character-device' && PLAIN_DEVICES.has(path)) return null
  if (header.type === 'character-device' || header.type === 'block-device') {
    throw imageRefused('image_device', header.name)
  }
  throw archiveRefused('unknown_type', header.name)
}

/** Any target is allowed: the server sees the image as its root, and the platform follows no link. */
function targetOf({ name, linkname }: Header): string {
  const target = linkname ?? ''
  if (target === '' || Buffer.byteLength(target) > LINK_BYTES_MAX || /\p{Cc}/u.test(target)) {
    throw imageRefused('link_target', name)
  }
  return target
}

function accessOf({ mode, uid, gid }: Header): Access {
  return { mode: (mode ?? 0) & 0o777, uid: uid ?? 0, gid: gid ?? 0 }
}
