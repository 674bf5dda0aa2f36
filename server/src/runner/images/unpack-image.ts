// Makes the root folder of an image build: folders and links of its own, and hard links to the files of its layers. The
// folder appears complete and durable, or not at all.
import { hash } from 'node:crypto'
import { chmod, link, mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { UnpackedFile } from '../../objects/archive/writer.ts'
import type { ImageStart } from '../../objects/container-image/config.ts'
import { openImage } from '../../objects/container-image/image.ts'
import type { ImageKind } from '../../objects/container-image/manifest.ts'
import { syncFolder } from '../../objects/sync-folder.ts'
import { makeManifest } from '../build-manifest.ts'
import { LayerCache, unlistedFolderMode } from './layer-cache.ts'
import { MOUNT_FILES, type RootFolder, rootTree } from './root-tree.ts'

/** `target`: the folder of the build, which appears complete. `image_path`: the file about its image. */
export type ImageTarget = { target: string; manifest_path: string; image_path: string }

const PARTIAL = '.partial-'
const EMPTY_SHA256 = hash('sha256', '')

/** Throws ApiError ARCHIVE_INVALID, or the system's error. A layer that turns out to be damaged is removed from the cache. */
export async function unpackImage(
  path: string,
  kind: ImageKind,
  start: ImageStart,
  cache: LayerCache,
  { target, manifest_path, image_path }: ImageTarget,
): Promise<void> {
  const parent = dirname(target)
  const image = await openImage(path, kind, parent)
  const partial = await mkdtemp(join(parent, `${PARTIAL}${basename(target)}-`))
  const names = image.layers.map((layer) => LayerCache.nameOf(layer, start))
  try {
    await writeFile(image_path, JSON.stringify({ start, layers: names }), { mode: 0o600, flush: true })
    const layers = []
    for (const layer of image.layers) layers.push(await cache.take(layer, start))
    const written: UnpackedFile[] = []
    const root = rootTree(layers, start.working_folder, unlistedFolderMode(start))
    await writeFolder(root, partial, '', written)
    await makeMountFiles(partial, written)
    await chmod(partial, hiddenMode(root.mode))
    await makeManifest(partial, written, manifest_path).catch(async (error: unknown) => {
      await cache.forget(names)
      throw error
    })
    await syncFolder(partial)
    await rename(partial, target)
    await syncFolder(parent)
  } finally {
    await image.close()
    await rm(partial, { recursive: true, force: true })
  }
}

/**
 * The mode of an image's root folder on this machine. Users of the machine who are not in the folder's group have no right to it,
 * nor to any file below. The bits of the group keep what the image grants its user.
 */
const hiddenMode = (mode: number): number => (mode & 0o700) | ((mode & 0o7) << 3)

/** The mode of the root folder as the lobby sees it: all classes have what the image grants its user. */
export function shownMode(hidden_mode: number): number {
  return (hidden_mode & 0o770) | ((hidden_mode >> 3) & 0o7)
}

/** Parents are made by this function, so no link of the image is on the way to anything that is written. */
async function writeFolder(folder: RootFolder, root: string, path: string, written: UnpackedFile[]): Promise<void> {
  for (const [name, node] of folder.children) {
    const inside = path === '' ? name : `${path}/${name}`
    const at = join(root, inside)
    if (node.kind === 'directory') {
      await mkdir(at, { mode: 0o700 })
      written.push({ path: inside, sha256: null })
      await writeFolder(node, root, inside, written)
      await chmod(at, node.mode)
      await syncFolder(at)
    } else if (node.kind === 'symlink') {
      await symlink(node.target, at)
      written.push({ path: inside, sha256: null })
    } else {
      await link(join(node.source, String(node.file)), at)
      written.push({ path: inside, sha256: node.sha256, is_linked: true })
    }
  }
}

/** The sandbox mounts files on these. What the image has there is never seen. */
async function makeMountFiles(root: string, written: UnpackedFile[]): Promise<void> {
  for (const path of MOUNT_FILES) {
    await rm(join(root, path), { recursive: true, force: true })
    await writeFile(join(root, path), '', { flag: 'wx', mode: 0o644 })
    const known = written.findIndex((file) => file.path === path || file.path.startsWith(`${path}/`))
    if (known !== -1) written.splice(known, 1)
    written.push({ path, sha256: EMPTY_SHA256 })
  }
}
