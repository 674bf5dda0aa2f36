// The tree of an image's root: its layers, applied in order. Pure: only paths of the layers, no path of the disk.
import { posix } from 'node:path'
import type { CachedEntry, CachedLayer } from './layer-cache.ts'

/** `source`: the folder of the layer that has the bytes. */
export type RootFile = { kind: 'file'; source: string; file: number; sha256: string }
export type RootFolder = { kind: 'directory'; mode: number; children: Map<string, RootNode> }
export type RootNode = RootFile | RootFolder | { kind: 'symlink'; target: string }

/** What every user of an image may do with its root folder. */
const ENTERED = 0o555
/** Folders on which the sandbox mounts, and files that it replaces. They exist in every root, and are no links. */
const MOUNT_FOLDERS = ['proc', 'dev', 'sys', 'tmp', 'scratch', 'etc'] as const
export const MOUNT_FILES = ['etc/resolv.conf', 'etc/hosts'] as const

/**
 * `working_folder` exists in the root, as a folder or through links of the image. `folder_mode`: of folders that no layer
 * lists, the root included.
 */
export function rootTree(
  layers: readonly Pick<CachedLayer, 'folder' | 'entries'>[],
  working_folder: string,
  folder_mode: number,
): RootFolder {
  const root: RootFolder = newFolder(folder_mode)
  for (const { folder, entries } of layers) {
    for (const { kind, path } of entries) {
      if (kind === 'whiteout') remove(root, path)
      else if (kind === 'opaque') existing(root, path)?.children.clear()
    }
    for (const entry of entries) add(root, entry, folder, folder_mode)
  }
  for (const path of MOUNT_FOLDERS) makeFolder(root, path, folder_mode)
  if (!passesLink(root, working_folder)) makeFolder(root, working_folder.slice(1), folder_mode)
  return root
}

function newFolder(mode: number): RootFolder {
  return { kind: 'directory', mode, children: new Map() }
}

function add(root: RootFolder, entry: CachedEntry, source: string, folder_mode: number): void {
  if (entry.kind === 'whiteout' || entry.kind === 'opaque') return
  if (entry.kind === 'directory' && entry.path === '') {
    // Tools that pack a temporary folder name the mode 0700 for it. A server that cannot enter its root never starts.
    root.mode = entry.mode | ENTERED
    return
  }
  const parent = makeFolder(root, posix.dirname(entry.path), folder_mode)
  const name = posix.basename(entry.path)
  if (entry.kind === 'directory') {
    const known = parent.children.get(name)
    if (known?.kind === 'directory') known.mode = entry.mode
    else parent.children.set(name, newFolder(entry.mode))
  } else if (entry.kind === 'symlink') parent.children.set(name, { kind: 'symlink', target: entry.target })
  else if (entry.kind === 'file')
    parent.children.set(name, { kind: 'file', source, file: entry.file, sha256: entry.sha256 })
}

/** The folder of this path. A file or a link in its place is replaced, as overlayfs does it. */
function makeFolder(root: RootFolder, path: string, mode: number): RootFolder {
  let folder = root
  for (const name of namesOf(path)) {
    const known = folder.children.get(name)
    if (known?.kind === 'directory') folder = known
    else {
      const made = newFolder(mode)
      folder.children.set(name, made)
      folder = made
    }
  }
  return folder
}

function remove(root: RootFolder, path: string): void {
  existing(root, posix.dirname(path))?.children.delete(posix.basename(path))
}

/** Null when it is no folder. Links are not followed. */
function existing(root: RootFolder, path: string): RootFolder | null {
  let folder = root
  for (const name of namesOf(path)) {
    const next = folder.children.get(name)
    if (next?.kind !== 'directory') return null
    folder = next
  }
  return folder
}

function passesLink(root: RootFolder, path: string): boolean {
  let folder = root
  for (const name of namesOf(path)) {
    const next = folder.children.get(name)
    if (next?.kind === 'symlink') return true
    if (next?.kind !== 'directory') return false
    folder = next
  }
  return false
}

function namesOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '' && name !== '.')
}
