// Images of builds for a Swarm. The runner checks each build, stores its layers and serves them (../../registry/); the
// engine of a lobby's node pulls them by digest. A container image keeps its layers. An archive becomes an image: the layers
// of the base image, and one with the build in /build. An image of an allowed registry was pulled and checked by the runner
// before, so engines need neither access to that registry nor its credentials.
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { ImageStart } from '../../../objects/container-image/config.ts'
import { openImage } from '../../../objects/container-image/image.ts'
import type { ImageKind } from '../../../objects/container-image/manifest.ts'
import { syncFolder } from '../../../objects/sync-folder.ts'
import { makeManifest } from '../../build-manifest.ts'
import type { Copies, ImageStore } from '../../images/image-store.ts'
import type { ImageTarget } from '../../images/unpack-image.ts'
import type { ImageServer } from '../../registry/image-server.ts'
import type { ImageSettings } from '../../registry/served-images.ts'
import { platformFilter, platformLabel } from '../docker/container.ts'
import { ignoreDone } from '../docker/engine.ts'
import type { EngineImage } from '../docker/image-programs.ts'
import type { RefusedStart } from '../docker/start-container.ts'
import type { RunSpec } from '../driver.ts'
import { BUILD_MOUNT } from '../driver.ts'
import { type BaseImage, type BaseImageOptions, BaseImages } from './base-images.ts'
import { layerOfFolder } from './build-layer.ts'
import type { EngineNode } from './engine-node.ts'
import { storeLayers } from './store-layers.ts'

const PARTIAL = '.partial-'
const IMAGE_LABEL = 'muster.image'
/** Names of images: of a container image its build, of an archive the build and the base image. */
const ARCHIVE_PREFIX = 'archive-'
/** Architectures of Node in the words of container images. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }
/** How long an engine may take to pull an image. */
const PULL_MS_MAX = 15 * 60_000
/** Characters of the engine's response that an error shows. */
const SHOWN_LENGTH_MAX = 500

/** What a lobby starts from. `reference`: by digest. `auth`: the header with the node's credential. */
export type PulledImage = EngineImage & { reference: string; auth: Readonly<Record<string, string>> }

type Options = BaseImageOptions & {
  server: ImageServer
  /** Where engines reach the server. */
  registry: string
  platform: string
  builds_folder: string
  now: () => number
}

export class RegistryImages implements ImageStore {
  readonly kind = 'engine'
  readonly #options: Options
  readonly #bases: BaseImages
  /** By name: what is being made, or pulled by a node. */
  readonly #work = new Map<string, Promise<unknown>>()

  constructor(options: Options) {
    this.#options = options
    this.#bases = new BaseImages(options)
  }

  isThere(build_id: string): boolean {
    return this.#options.served.find(build_id) !== null
  }

  async unpack(path: string, kind: ImageKind, start: ImageStart, place: ImageTarget): Promise<void> {
    const build_id = basename(place.target)
    const folder = dirname(place.target)
    const partial = await mkdtemp(join(folder, `${PARTIAL}${build_id}-`))
    try {
      const image = await openImage(path, kind, folder)
      try {
        const layers = await storeLayers(this.#options.served, image)
        const config = { WorkingDir: start.working_folder }
        await this.#options.served.add(build_id, this.#settings(build_id, config), layers)
      } finally {
        await image.close()
      }
      await writeFile(place.image_path, JSON.stringify({ start, layers: null }), { mode: 0o600, flush: true })
      await chmod(partial, 0o755)
      await makeManifest(partial, [], place.manifest_path)
      await rename(partial, place.target)
      await syncFolder(folder)
    } finally {
      await rm(partial, { recursive: true, force: true })
    }
  }

  /** The image of a build, on this node. */
  async pull(node: EngineNode, { image, build_folder }: RunSpec): Promise<PulledImage | RefusedStart> {
    const name = image ? (image.build_id ?? '') : await this.#nameOfArchive(build_folder)
    if (typeof name !== 'string') return name
    const served = this.#options.served.find(name)
    if (served === null) {
      const message = 'The platform has lost the image of the build. The next lobby makes it again.'
      return { refused: 'no_build', message }
    }
    const { registry } = this.#options
    const [repository, digest] = [`${registry}/${name}`, `sha256:${served.manifest}`]
    const reference = `${repository}@${digest}`
    const auth = this.#authOf(node, name)
    const found =
      (await findImage(node, reference)) ??
      (await this.#once(`${node.node_id} ${name}`, () => pullOn(node, { repository, digest, reference, auth })))
    const { Env, WorkingDir } = found.Config ?? {}
    return { id: found.Id, env: image ? [] : (Env ?? []), working_folder: WorkingDir || '/', reference, auth }
  }

  async sweep({ folderOf }: Copies): Promise<void> {
    const { served } = this.#options
    for (const name of served.names()) {
      if (!this.#isKept(name, folderOf)) await served.remove(name)
    }
    await served.sweep()
    for (const node of this.#options.nodes) if (node.is_here) await this.#sweepNode(node)
  }

  close(): void {
    this.#bases.close()
  }

  /** Engines list what they have: an image that is no longer served is removed, unless a container uses it. */
  async #sweepNode({ engine }: EngineNode): Promise<void> {
    type Listed = { Id: string; Labels: Readonly<Record<string, string>> | null }
    const query = platformFilter(this.#options.platform)
    for (const { Id, Labels } of await engine.call<Listed[]>('GET', '/images/json', { query })) {
      if (this.#options.served.find(Labels?.[IMAGE_LABEL] ?? '') !== null) continue
      await engine.call('DELETE', `/images/${Id}`).catch(ignoreDone)
    }
  }

  /** An image that is being made has no folder yet, and its name is not listed either. */
  #isKept(name: string, folderOf: Copies['folderOf']): boolean {
    if (!name.startsWith(ARCHIVE_PREFIX)) return existsSync(folderOf(name))
    return existsSync(join(this.#options.builds_folder, name.slice(ARCHIVE_PREFIX.length, name.lastIndexOf('-'))))
  }

  /** Makes the image of an archive unless it was made before. */
  async #nameOfArchive(build_folder: string): Promise<string | RefusedStart> {
    const base = await this.#bases.find()
    if ('refused' in base) return base
    const name = `${ARCHIVE_PREFIX}${basename(build_folder)}-${base.id}`
    if (this.#options.served.find(name) === null) {
      await this.#once(name, () => this.#addArchive(name, build_folder, base))
    }
    return name
  }

  async #addArchive(name: string, build_folder: string, { layers, env }: BaseImage): Promise<void> {
    const { served } = this.#options
    const layer = await served.storeStream(layerOfFolder(build_folder))
    await served.add(name, this.#settings(name, { WorkingDir: BUILD_MOUNT, Env: env }), [...layers, layer])
  }

  #settings(name: string, config: object): ImageSettings {
    return {
      architecture: ARCHITECTURES[process.arch] ?? process.arch,
      os: 'linux',
      created: new Date(this.#options.now()).toISOString(),
      config: { ...config, Labels: { ...platformLabel(this.#options.platform), [IMAGE_LABEL]: name } },
    }
  }

  #authOf({ node_id }: EngineNode, name: string): Readonly<Record<string, string>> {
    const { server, registry } = this.#options
    const auth = { ...server.credentialFor(node_id, name), serveraddress: registry }
    // Engines want the alphabet of URLs, and the padding too.
    const encoded = Buffer.from(JSON.stringify(auth)).toString('base64')
    return { 'X-Registry-Auth': encoded.replaceAll('+', '-').replaceAll('/', '_') }
  }

  /** One at a time for each key. */
  #once<T>(key: string, work: () => Promise<T>): Promise<T> {
    const known = this.#work.get(key)
    if (known !== undefined) return known as Promise<T>
    const working = work().finally(() => this.#work.delete(key))
    this.#work.set(key, working)
    return working
  }
}

type FoundImage = { Id: string; Config?: { Env?: string[] | null; WorkingDir?: string } | null }

function findImage({ engine }: EngineNode, reference: string): Promise<FoundImage | null> {
  return engine.find<FoundImage>(`/images/${reference}/json`)
}

async function pullOn(
  node: EngineNode,
  {
    repository,
    digest,
    reference,
    auth,
  }: { repository: string; digest: string } & Pick<PulledImage, 'reference' | 'auth'>,
): Promise<FoundImage> {
  const query = { fromImage: repository, tag: digest }
  const pulled = await node.engine.text('POST', '/images/create', { query, headers: auth, ms_max: PULL_MS_MAX })
  // A failure is in a response of status 200, as a line of JSON with `error`.
  const failure = pulled.split('\n').find((line) => line.includes('"error"'))
  const found = failure === undefined ? await findImage(node, reference) : null
  if (found !== null) return found
  const reason = (failure ?? 'it does not list the image').slice(0, SHOWN_LENGTH_MAX)
  throw new Error(`The engine of the node ${node.node_id} cannot pull an image: ${reason}`)
}
