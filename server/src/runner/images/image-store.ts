// Where the images of builds are, ready to start: unpacked into folders of this machine (FolderImages), or in a container
// engine (drivers/docker/engine-images.ts). In both cases a build has a folder with a manifest, and a file about its image.
import { readFile } from 'node:fs/promises'
import type { ImageStart } from '../../objects/container-image/config.ts'
import type { ImageKind } from '../../objects/container-image/manifest.ts'
import { LayerCache } from './layer-cache.ts'
import type { ImageTarget } from './unpack-image.ts'
import { unpackImage } from './unpack-image.ts'

/** Names the copies of all builds on this machine. */
export type Copies = {
  names: readonly string[]
  folderOf: (name: string) => string
  imagePathOf: (name: string) => string
}

export type ImageStore = {
  /** Folders hold the rights of one user, so each user of a version config needs a copy of its own. */
  readonly kind: 'folders' | 'engine'
  /** Checks the image of this file, and makes it ready. Throws ApiError ARCHIVE_INVALID, or the system's error. */
  unpack(path: string, kind: ImageKind, start: ImageStart, target: ImageTarget): Promise<void>
  /** False for an image that is gone. Its build is then unpacked again. Never waits. */
  isThere(name: string): boolean
  /** Removes what no copy uses. Not called while a build is being unpacked. */
  sweep(copies: Copies): Promise<void>
}

/** Suffix of the file about the image of a build, beside its manifest. */
export const IMAGE_SUFFIX = '.image'

/** `layers`: the names of its cached layers; null where a container engine has the image. */
export type UnpackedImage = { start: ImageStart; layers: string[] | null }

/** Null for an archive. */
export async function readUnpackedImage(image_path: string): Promise<UnpackedImage | null> {
  try {
    return JSON.parse(await readFile(image_path, 'utf8')) as UnpackedImage
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

export class FolderImages implements ImageStore {
  readonly kind = 'folders'
  readonly #layers: LayerCache

  private constructor(layers: LayerCache) {
    this.#layers = layers
  }

  /** `folder`: of the layers. */
  static async open(folder: string, now: () => number): Promise<FolderImages> {
    return new FolderImages(await LayerCache.open(folder, now))
  }

  unpack(path: string, kind: ImageKind, start: ImageStart, target: ImageTarget): Promise<void> {
    return unpackImage(path, kind, start, this.#layers, target)
  }

  /** The manifest of its folder shows whether it is whole. */
  isThere(): boolean {
    return true
  }

  async sweep({ names, imagePathOf }: Copies): Promise<void> {
    const used = new Set<string>()
    for (const name of names) {
      const image = await readUnpackedImage(imagePathOf(name))
      for (const layer of image?.layers ?? []) used.add(layer)
    }
    await this.#layers.sweep(used)
  }
}
