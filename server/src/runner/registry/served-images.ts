// Images that the platform serves to container engines, in the data folder. `blobs/HEX` has the bytes that a digest names:
// layers as plain tar files, configs and manifests. `images/NAME.json` says which blobs belong to an image. It is written
// last, so an image is complete or absent. An engine pulls by the digest of the manifest and checks every byte itself.
import { createHash, hash } from 'node:crypto'
import { createWriteStream, existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { finished, pipeline } from 'node:stream/promises'
import { syncFolder } from '../../objects/sync-folder.ts'

export const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json'
const CONFIG_TYPE = 'application/vnd.oci.image.config.v1+json'
/** Its digest is also the id of the layer in the config. */
const LAYER_TYPE = 'application/vnd.oci.image.layer.v1.tar'
const PARTIAL = '.partial-'
/** A blob that no image names is kept for this time after its last use: an image may be in the making. */
const UNUSED_KEPT_MS = 3_600_000

/** `hex`: SHA-256. */
export type Blob = { hex: string; size: number }
/** `manifest`: names the image. `layers`: of the tar files, bottom first. */
export type ServedImage = { manifest: string; config: Blob; layers: Blob[] }
/** The config without its layers. */
export type ImageSettings = { architecture: string; os: string; created: string; config: object }

export class ServedImages {
  readonly #folder: string
  readonly #now: () => number
  /** By name. */
  readonly #images: Map<string, ServedImage>
  #partials = 0

  private constructor(folder: string, now: () => number, images: Map<string, ServedImage>) {
    this.#folder = folder
    this.#now = now
    this.#images = images
  }

  /** Removes what a killed runner left. */
  static async open(folder: string, now: () => number): Promise<ServedImages> {
    for (const name of ['blobs', 'images']) {
      await mkdir(join(folder, name), { recursive: true, mode: 0o700 })
      for (const file of await readdir(join(folder, name))) {
        if (file.startsWith(PARTIAL)) await rm(join(folder, name, file))
      }
    }
    const images = new Map<string, ServedImage>()
    for (const file of await readdir(join(folder, 'images'))) {
      const image = JSON.parse(await readFile(join(folder, 'images', file), 'utf8')) as ServedImage
      images.set(file.slice(0, -'.json'.length), image)
    }
    return new ServedImages(folder, now, images)
  }

  find(name: string): ServedImage | null {
    return this.#images.get(name) ?? null
  }

  names(): string[] {
    return [...this.#images.keys()]
  }

  pathOf(hex: string): string {
    return join(this.#folder, 'blobs', hex)
  }

  /** A blob that is there already, with its time of use renewed; null when it is missing. */
  async blob(hex: string): Promise<Blob | null> {
    const path = this.pathOf(hex)
    if (!existsSync(path)) return null
    const now = new Date(this.#now())
    await utimes(path, now, now)
    return { hex, size: (await stat(path)).size }
  }

  /** Stores the bytes that `write` passes on. Throws, and stores nothing, when it throws. */
  async store(write: (onBytes: (chunk: Buffer) => Promise<void>) => Promise<void>): Promise<Blob> {
    const partial = join(this.#folder, 'blobs', `${PARTIAL}${this.#partials++}`)
    const file = createWriteStream(partial, { mode: 0o600, flush: true })
    const sum = createHash('sha256')
    let size = 0
    // A failed write is thrown by the next one, or at the end.
    file.on('error', () => undefined)
    try {
      await write(async (chunk) => {
        if (file.errored !== null) throw file.errored
        sum.update(chunk)
        size += chunk.length
        if (!file.write(chunk)) await drained(file)
      })
      file.end()
      await finished(file)
      const hex = sum.digest('hex')
      await rename(partial, this.pathOf(hex))
      return { hex, size }
    } catch (error) {
      file.destroy()
      await rm(partial, { force: true })
      throw error
    }
  }

  async storeStream(source: Readable): Promise<Blob> {
    return this.store((onBytes) =>
      pipeline(source, async (chunks: AsyncIterable<Buffer>) => {
        for await (const chunk of chunks) await onBytes(chunk)
      }),
    )
  }

  /** Makes an image of layers that are stored, under a name. */
  async add(name: string, settings: ImageSettings, layers: readonly Blob[]): Promise<ServedImage> {
    const { created } = settings
    const config = await this.#storeDocument({
      ...settings,
      rootfs: { type: 'layers', diff_ids: layers.map(({ hex }) => `sha256:${hex}`) },
      history: layers.map(() => ({ created, created_by: 'muster' })),
    })
    const manifest = await this.#storeDocument({
      schemaVersion: 2,
      mediaType: MANIFEST_TYPE,
      config: descriptor(CONFIG_TYPE, config),
      layers: layers.map((layer) => descriptor(LAYER_TYPE, layer)),
    })
    await syncFolder(join(this.#folder, 'blobs'))
    const image: ServedImage = { manifest: manifest.hex, config, layers: [...layers] }
    const path = join(this.#folder, 'images', `${name}.json`)
    const partial = join(this.#folder, 'images', `${PARTIAL}${this.#partials++}`)
    await writeFile(partial, JSON.stringify(image), { mode: 0o600, flush: true })
    await rename(partial, path)
    await syncFolder(join(this.#folder, 'images'))
    this.#images.set(name, image)
    return image
  }

  async remove(name: string): Promise<void> {
    this.#images.delete(name)
    await rm(join(this.#folder, 'images', `${name}.json`), { force: true })
  }

  /** Removes blobs that no image has. */
  async sweep(): Promise<void> {
    const used = new Set([...this.#images.values()].flatMap(blobsOf))
    for (const hex of await readdir(join(this.#folder, 'blobs'))) {
      if (used.has(hex) || hex.startsWith(PARTIAL)) continue
      const { mtimeMs } = await stat(this.pathOf(hex))
      if (this.#now() - mtimeMs > UNUSED_KEPT_MS) await rm(this.pathOf(hex))
    }
  }

  async #storeDocument(document: object): Promise<Blob> {
    const bytes = Buffer.from(JSON.stringify(document))
    return (await this.blob(hash('sha256', bytes))) ?? (await this.store((onBytes) => onBytes(bytes)))
  }
}

/** The digests of everything that belongs to an image. */
export function blobsOf({ manifest, config, layers }: ServedImage): string[] {
  return [manifest, config.hex, ...layers.map(({ hex }) => hex)]
}

const descriptor = (mediaType: string, { hex, size }: Blob): object => ({ mediaType, digest: `sha256:${hex}`, size })

/** A write error ends the wait too: `finished` reports it later. */
function drained(file: NodeJS.WritableStream): Promise<void> {
  return new Promise((resolve, reject) => {
    file.once('drain', done)
    file.once('error', failed)
    function done(): void {
      file.removeListener('error', failed)
      resolve()
    }
    function failed(error: Error): void {
      file.removeListener('drain', done)
      reject(error)
    }
  })
}
