// Which path of an archive becomes which path on the disk. Nothing is repaired or cleaned: a name either is harmless on
// every file system as it stands, or it is refused. Only a "./" in front, which `tar -C folder .` writes, is dropped.
import { type ArchiveFault, archiveRefused } from './refusal.ts'

export type PathLimits = {
  /** Files and folders, those counted that are only implied by a path. */
  entries_max: number
  /** UTF-8 bytes of a whole path. */
  path_bytes_max: number
  /** Names in a path. */
  depth_max: number
}

/** What every file system takes for one name, in UTF-8 bytes. */
const NAME_BYTES_MAX = 255
const RESERVED = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$|clock\$)(?:\.|$)/i
/** Control and format characters (bidi overrides, joiners), line separators, unpaired surrogates. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u
const ENCODED = /%(?:2e|2f|5c|00)/i

/** Why this cannot be the name of a file or folder in a path; null when it can. */
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

/** Why this cannot be a relative path of a file, such as `assets/logo.png`; null when it can. */
export function pathFault(path: string, limits: Omit<PathLimits, 'entries_max'>): ArchiveFault | null {
  // First, so that nothing below works on more than a path's worth of characters.
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
  // Upper case alone would keep two kinds of sharp s apart, lower case alone more than that.
  return name.normalize('NFD').toLowerCase().toUpperCase().toLowerCase().normalize('NFD')
}

type Node = { name: string; kind: 'file' | 'directory'; is_explicit: boolean; children: Map<string, Node> }

/** One for all files: nothing is ever put into a file. */
const NO_CHILDREN: Map<string, Node> = new Map()

export type PathTree = {
  /**
   * Enters a file or folder. Null for the archive's root itself; else its path, and the folders, parents first, that
   * have to be made before it (a folder is the last of its own). Throws ApiError ARCHIVE_INVALID.
   */
  add: (entry: string, kind: 'file' | 'directory') => { path: string; new_directories: string[] } | null
  /** Files and folders entered so far, with implied folders. */
  count: () => number
}

/** Everything that an archive has named so far. */
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
          // A folder may be listed after what is in it, once.
          if (is_last && (known.kind !== kind || known.is_explicit)) throw archiveRefused('duplicate', entry)
          node = known
        }
      }
      node.is_explicit = true
      return { path, new_directories }
    },
  }
}
