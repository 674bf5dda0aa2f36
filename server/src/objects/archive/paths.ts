// Maps paths of an archive to paths on the disk. No name is repaired: it is harmless on every file system, or refused. Only
// a leading "./", which `tar -C folder .` writes, is removed.
import { type ArchiveFault, archiveRefused } from './refusal.ts'

export type PathLimits = {
  /** Files and folders, with those that are only implied by a path. */
  entries_max: number
  /** UTF-8 bytes of a whole path. */
  path_bytes_max: number
  /** Names in a path. */
  depth_max: number
}

/** UTF-8 bytes of one name, the limit of common file systems. */
const NAME_BYTES_MAX = 255
const RESERVED = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$|clock\$)(?:\.|$)/i
/** Control and format characters (bidi overrides, joiners), line separators, unpaired surrogates. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u
const ENCODED = /%(?:2e|2f|5c|00)/i

/** Why this is no valid name of a file or folder; null when it is. */
function nameFault(name: string): ArchiveFault | null {
  if (name === '') return 'empty_name'
  if (name === '.' || name === '..') return 'dots'
  if (name.includes('\uFFFD')) return 'encoding'
  if (INVISIBLE.test(name)) return 'control_character'
  if (name.includes('\\')) return 'backslash'
  if (name.includes(':')) return 'colon'
  if (ENCODED.test(name)) return 'percent_encoded'
  if (/^\s|[\s.]$/u.test(name)) return 'trailing_dot_or_space'
  if (RESERVED.test(name)) return 'reserved_name'
  if (Buffer.byteLength(name) > NAME_BYTES_MAX) return 'path_too_long'
  return null
}

/** Why this is no valid relative path of a file, such as `assets/logo.png`; null when it is. */
export function pathFault(path: string, limits: Omit<PathLimits, 'entries_max'>): ArchiveFault | null {
  // The first check, so that the others work on a bounded text.
  if (path.length > limits.path_bytes_max || Buffer.byteLength(path) > limits.path_bytes_max) return 'path_too_long'
  if (path.startsWith('/')) return 'absolute'
  const names = path.split('/')
  if (names.length > limits.depth_max) return 'path_too_deep'
  for (const name of names) {
    const fault = nameFault(name)
    if (fault !== null) return fault
  }
  return null
}

/** Two names with the same key are one file on a file system that ignores case or the composition of accents. */
export function twinKey(name: string): string {
  // Upper case alone would distinguish two kinds of sharp s, and lower case alone more characters.
  return name.normalize('NFD').toLowerCase().toUpperCase().toLowerCase().normalize('NFD')
}

type Node = { name: string; kind: 'file' | 'directory'; is_explicit: boolean; children: Map<string, Node> }

/** Shared by all files, which have no children. */
const NO_CHILDREN: Map<string, Node> = new Map()

export type PathTree = {
  /**
   * Adds a file or folder. Returns null for the archive's root. Otherwise it returns the path and the folders to make
   * before it, parents first; a new folder is the last of its own list. Throws ApiError ARCHIVE_INVALID.
   */
  add: (entry: string, kind: 'file' | 'directory') => { path: string; new_directories: string[] } | null
  /** Files and folders added so far, with implied folders. */
  count: () => number
}

/** The tree of all paths that an archive has named so far. */
export function createPathTree(limits: PathLimits): PathTree {
  const root: Node = { name: '', kind: 'directory', is_explicit: false, children: new Map() }
  let count = 0

  function grow(parent: Node, name: string, kind: Node['kind'], entry: string): Node {
    count += 1
    if (count > limits.entries_max) throw archiveRefused('too_many_entries', entry)
    const children: Node['children'] = kind === 'file' ? NO_CHILDREN : new Map()
    const node: Node = { name, kind, is_explicit: false, children }
    parent.children.set(twinKey(name), node)
    return node
  }

  return {
    count: () => count,
    add(entry, kind) {
      let path = entry
      if (kind === 'directory' && path.endsWith('/')) path = path.slice(0, -1)
      if (path.startsWith('./')) path = path.slice(2)
      if (path === '.' && kind === 'directory') path = ''
      if (path === '' && /^\.\/?$/.test(entry) && kind === 'directory') {
        if (root.is_explicit) throw archiveRefused('duplicate', entry)
        root.is_explicit = true
        return null
      }
      const fault = pathFault(path, limits)
      if (fault !== null) throw archiveRefused(fault, entry)

      const names = path.split('/')
      const new_directories: string[] = []
      let node = root
      for (const [depth, name] of names.entries()) {
        const is_last = depth === names.length - 1
        const known = node.children.get(twinKey(name))
        if (known === undefined) {
          node = grow(node, name, is_last ? kind : 'directory', entry)
          if (node.kind === 'directory') new_directories.push(names.slice(0, depth + 1).join('/'))
        } else {
          if (known.name !== name) throw archiveRefused('twin', entry)
          if (!is_last && known.kind === 'file') throw archiveRefused('not_a_folder', entry)
          // A folder may be listed once after its content.
          if (is_last && (known.kind !== kind || known.is_explicit)) throw archiveRefused('duplicate', entry)
          node = known
        }
      }
      node.is_explicit = true
      return { path, new_directories }
    },
  }
}
