// The base image of archive builds, in the store of served images. It is MUSTER_DOCKER_BASE_IMAGE: a name that an engine of
// the Swarm has, or an image of an allowed registry by digest. Its layers are copied once, and again when it has changed.
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { isAllowedImage, parseRegistryImage } from '@musterhost/contract'
import { openImage } from '../../../objects/container-image/image.ts'
import type { ImageKind } from '../../../objects/container-image/manifest.ts'
import { pullImage, type Registries } from '../../registry/pull-image.ts'
import type { Blob, ServedImages } from '../../registry/served-images.ts'
import type { RefusedStart } from '../docker/start-container.ts'
import type { EngineNode } from './engine-node.ts'
import { storeLayers } from './store-layers.ts'

/** Hex digits of an id that tell base images apart. */
const ID_LENGTH = 16
/** How long an engine may take to send an image. */
const SAVE_MS_MAX = 15 * 60_000

/** `id`: changes with the image. `env`: lines of NAME=value. */
export type BaseImage = { id: string; layers: readonly Blob[]; env: readonly string[] }

export type BaseImageOptions = {
  served: ServedImages
  folder: string
  base_image: string | null
  registries: Registries
  nodes: readonly EngineNode[]
}

type Found = { Id: string; Config?: { Env?: string[] | null } | null }

export class BaseImages {
  readonly #options: BaseImageOptions
  readonly #closing = new AbortController()
  #known: BaseImage | null = null
  #finding: Promise<BaseImage | RefusedStart> | null = null

  constructor(options: BaseImageOptions) {
    this.#options = options
  }

  /** The base image as it is now. */
  find(): Promise<BaseImage | RefusedStart> {
    this.#finding ??= this.#findOnce().finally(() => {
      this.#finding = null
    })
    return this.#finding
  }

  close(): void {
    this.#closing.abort()
  }

  async #findOnce(): Promise<BaseImage | RefusedStart> {
    const { base_image, nodes, registries } = this.#options
    if (base_image === null) {
      return refused('This platform has no base image for archives. Its operator sets MUSTER_DOCKER_BASE_IMAGE.')
    }
    const named = parseRegistryImage(base_image)
    if (!('reason' in named) && isAllowedImage(named, registries.registries)) {
      return this.#copy(named.digest.slice('sha256:'.length), 'oci_bundle', (path) =>
        pullImage(registries, base_image, path, this.#closing.signal),
      )
    }
    for (const { engine, is_here } of nodes) {
      const found = is_here ? await engine.find<Found>(`/images/${base_image}/json`) : null
      if (found === null) continue
      return this.#copy(found.Id.slice('sha256:'.length), 'docker_image', async (path) => {
        const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(SAVE_MS_MAX)])
        // By its id: a name with several tags is several images in one file.
        const body = await engine.stream(`/images/${found.Id}/get`, {}, signal)
        await pipeline(body, createWriteStream(path, { mode: 0o600 }))
      })
    }
    // It may be on an engine that is away.
    if (await this.#isStored(this.#known)) return this.#known!
    return refused(
      `No engine of the Swarm has the image ${base_image}. Its operator loads it on one of them, or changes MUSTER_DOCKER_BASE_IMAGE.`,
    )
  }

  /** Renews the time of use of its layers. */
  async #isStored(image: BaseImage | null): Promise<boolean> {
    if (image === null) return false
    const found = await Promise.all(image.layers.map(({ hex }) => this.#options.served.blob(hex)))
    return found.every((blob) => blob !== null)
  }

  async #copy(hex: string, kind: ImageKind, fetch: (path: string) => Promise<void>): Promise<BaseImage> {
    const id = hex.slice(0, ID_LENGTH)
    if (this.#known?.id === id && (await this.#isStored(this.#known))) return this.#known
    const { served, folder } = this.#options
    const temporary = await mkdtemp(join(folder, '.base-'))
    try {
      const path = join(temporary, 'image.tar')
      await fetch(path)
      const image = await openImage(path, kind, temporary)
      try {
        const layers = await storeLayers(served, image)
        this.#known = { id, layers, env: Object.entries(image.config.env).map(([name, value]) => `${name}=${value}`) }
      } finally {
        await image.close()
      }
      return this.#known
    } finally {
      await rm(temporary, { recursive: true, force: true })
    }
  }
}

const refused = (message: string): RefusedStart => ({ refused: 'no_build', message })
