// Images of builds in the container engine. Each is checked as the process driver checks it, and given to the engine once:
// its layers as they are, and a config of our own, with labels that name the platform and the build. The engine never
// pulls it. The build has an empty folder with a manifest, as a sign that the engine has its image; without that folder
// the image is removed.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, type FileHandle, mkdtemp, open, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { PassThrough } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { pack } from 'tar-stream'
import type { ImageStart } from '../../../objects/container-image/config.ts'
import { type Layer, type OpenedImage, openImage } from '../../../objects/container-image/image.ts'
import type { ImageKind } from '../../../objects/container-image/manifest.ts'
import { syncFolder } from '../../../objects/sync-folder.ts'
import { makeManifest } from '../../build-manifest.ts'
import type { Copies, ImageStore } from '../../images/image-store.ts'
import type { ImageTarget } from '../../images/unpack-image.ts'
import type { ExitReason } from '../driver.ts'
import { platformFilter, platformLabel } from './container.ts'
import { type EngineClient, ignoreDone } from './engine.ts'
import type { EngineImage } from './image-programs.ts'

const BUILD_LABEL = 'muster.build_id'
const PARTIAL = '.partial-'
/** Architectures of Node in the words of container images. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }
/** Characters of the engine's response that an error shows. */
const SHOWN_LENGTH_MAX = 500

type Listed = { Id: string; Labels: Readonly<Record<string, string>> | null }

export class EngineImages implements ImageStore {
  readonly kind = 'engine'
  readonly #engine: EngineClient
  readonly #platform: string
  readonly #now: () => number
  /** Ids of the engine, by build. As of the last sweep. */
  #ids = new Map<string, string>()
  readonly #loading = new Set<string>()

  private constructor(engine: EngineClient, platform: string, now: () => number) {
    this.#engine = engine
    this.#platform = platform
    this.#now = now
  }

  static async open(engine: EngineClient, platform: string, now: () => number): Promise<EngineImages> {
    const images = new EngineImages(engine, platform, now)
    images.#ids = await images.#list()
    return images
  }

  isThere(build_id: string): boolean {
    return this.#ids.has(build_id)
  }

  /** The image of a build, as a start needs it. */
  async find(build_id: string): Promise<EngineImage | { refused: ExitReason; message: string }> {
    type Found = { Id: string; Config?: { WorkingDir?: string } | null }
    const id = this.#ids.get(build_id)
    const found = id === undefined ? null : await this.#engine.find<Found>(`/images/${id}/json`)
    if (found !== null) return { id: found.Id, env: [], working_folder: found.Config?.WorkingDir || '/' }
    this.#ids.delete(build_id)
    const message = 'The container engine has lost the image of the build. The next lobby gives it to the engine again.'
    return { refused: 'no_build', message }
  }

  async unpack(path: string, kind: ImageKind, start: ImageStart, place: ImageTarget): Promise<void> {
    const build_id = basename(place.target)
    const folder = dirname(place.target)
    this.#loading.add(build_id)
    const partial = await mkdtemp(join(folder, `${PARTIAL}${build_id}-`))
    try {
      await this.#load(path, kind, start, folder, build_id)
      const ids = await this.#list()
      if (!ids.has(build_id)) throw new Error('The container engine has taken an image, and does not list it.')
      this.#ids = ids
      await writeFile(place.image_path, JSON.stringify({ start, layers: null }), { mode: 0o600, flush: true })
      await chmod(partial, 0o755)
      await makeManifest(partial, [], place.manifest_path)
      await rename(partial, place.target)
      await syncFolder(folder)
    } finally {
      this.#loading.delete(build_id)
      await rm(partial, { recursive: true, force: true })
    }
  }

  async sweep({ folderOf }: Copies): Promise<void> {
    this.#ids = await this.#list()
    for (const [build_id, id] of this.#ids) {
      if (this.#loading.has(build_id) || existsSync(folderOf(build_id))) continue
      // Refused while a container uses it.
      await this.#engine.call('DELETE', `/images/${id}`).catch(ignoreDone)
      this.#ids.delete(build_id)
    }
  }

  async #list(): Promise<Map<string, string>> {
    const found = await this.#engine.call<Listed[]>('GET', '/images/json', { query: platformFilter(this.#platform) })
    return new Map(
      found.flatMap(({ Id, Labels }): [string, string][] => {
        const build_id = Labels?.[BUILD_LABEL]
        return build_id === undefined ? [] : [[build_id, Id]]
      }),
    )
  }

  async #load(path: string, kind: ImageKind, start: ImageStart, folder: string, build_id: string): Promise<void> {
    const image = await openImage(path, kind, folder)
    const upload = pack()
    // Until the request is sent, a failure has no other listener.
    upload.on('error', () => undefined)
    try {
      const body = upload.pipe(new PassThrough())
      const sending = this.#engine.send('POST', '/images/load', { quiet: '1' }, body)
      const writing = writeImage(upload, image, folder, this.#configOf(image, start, build_id))
      // A layer that is refused ends the request, and a request that fails ends the writing.
      writing.catch((error: Error) => body.destroy(error))
      const [response, written] = await Promise.allSettled([
        sending.catch((error: unknown) => {
          upload.destroy()
          throw error
        }),
        writing,
      ])
      if (response.status === 'rejected' && !upload.destroyed) throw response.reason
      if (written.status === 'rejected') throw written.reason
      if (response.status === 'rejected') throw response.reason
      requireLoaded(response.value)
    } finally {
      await image.close()
    }
  }

  /** What the server starts with is decided at each start, so only the working folder is that of the image. */
  #configOf({ config }: OpenedImage, start: ImageStart, build_id: string): { name: string; config: object } {
    const created = new Date(this.#now()).toISOString()
    const diff_ids = config.diff_ids.map((hex) => `sha256:${hex}`)
    return {
      name: `${this.#platform}/build:${build_id}`,
      config: {
        created,
        architecture: ARCHITECTURES[process.arch],
        os: 'linux',
        config: {
          WorkingDir: start.working_folder,
          Labels: { ...platformLabel(this.#platform), [BUILD_LABEL]: build_id },
        },
        rootfs: { type: 'layers', diff_ids },
        history: diff_ids.map(() => ({ created, created_by: 'muster' })),
      },
    }
  }
}

/** In the form of `docker save`. A layer is checked whole before its first byte is sent. */
async function writeImage(
  upload: ReturnType<typeof pack>,
  image: OpenedImage,
  folder: string,
  { name, config }: { name: string; config: object },
): Promise<void> {
  const text = JSON.stringify(config)
  const config_name = `${createHash('sha256').update(text).digest('hex')}.json`
  const names = image.layers.map(({ number }) => `${number}/layer.tar`)
  upload.entry({ name: config_name }, text)
  for (const [index, layer] of image.layers.entries()) {
    const spooled = await spool(layer, folder)
    try {
      const { size } = await spooled.stat()
      const entry = upload.entry({ name: names[index]!, size })
      await pipeline(spooled.createReadStream({ start: 0, autoClose: false }), entry)
    } finally {
      await spooled.close()
    }
  }
  upload.entry({ name: 'manifest.json' }, JSON.stringify([{ Config: config_name, RepoTags: [name], Layers: names }]))
  upload.finalize()
}

/** The tar of a layer, in a file without a name, so that a crash leaves nothing. */
async function spool(layer: Layer, folder: string): Promise<FileHandle> {
  const path = join(folder, `${PARTIAL}layer-${process.hrtime.bigint()}`)
  const spooled = await open(path, 'wx+', 0o600)
  await rm(path)
  try {
    for await (const entry of layer.entries((chunk) => spooled.appendFile(chunk))) {
      if (entry.kind === 'file') for await (const _ of entry.body);
    }
    return spooled
  } catch (error) {
    await spooled.close()
    throw error
  }
}

/** The engine reports a failure in a response of status 200, as a line of JSON with `error`. */
function requireLoaded(response: string): void {
  for (const line of response.split('\n').filter((text) => text.includes('"error"'))) {
    throw new Error(`The container engine refused an image: ${line.slice(0, SHOWN_LENGTH_MAX)}`)
  }
}
