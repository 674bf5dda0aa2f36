// A container image without a container engine. `checkImage` reads the whole file and writes nothing; `openImage` gives the
// runner the layers. Both verify every digest, so what was checked is what is unpacked.
import { createHash } from 'node:crypto'
import { ARCHIVE_LIMITS, type ArchiveLimits, type CheckedFile } from '../archive/archive.ts'
import { createMeter, type Meter } from '../archive/meter.ts'
import { compressionOf, decompressed } from './compression.ts'
import { type ImageConfig, type ImageStart, type ImageUser, readImageConfig, resolveUser } from './config.ts'
import { ImageFile } from './image-file.ts'
import { type EntryBudget, type LayerEntry, readLayer } from './layer.ts'
import { findImage, type ImageKind, type LayerBlob } from './manifest.ts'
import { imageRefused, ofLayer } from './refusal.ts'

/** Bytes of /etc/passwd or /etc/group of an image. A longer file is ignored. */
const USERS_BYTES_MAX = 1024 ** 2
const USER_FILES = ['etc/passwd', 'etc/group'] as const

export type ImageLimits = Pick<ArchiveLimits, 'bytes_max' | 'ratio_max' | 'ratio_free_bytes' | 'entries_max'>

/** Called with each piece of the tar of a layer, in order. */
type OnBytes = (chunk: Buffer) => Promise<void>
/** `number`: from 1. `name`: of its blob. */
export type Layer = {
  number: number
  name: string
  diff_id: string
  entries: (onBytes?: OnBytes) => AsyncGenerator<LayerEntry>
}

export type OpenedImage = { config: ImageConfig; layers: Layer[]; close: () => Promise<void> }

/** `spool_folder`: on the disk, for a compressed file. Throws ApiError ARCHIVE_INVALID. */
export async function openImage(
  path: string,
  kind: ImageKind,
  spool_folder: string,
  limits: Partial<ImageLimits> = {},
): Promise<OpenedImage> {
  const all = { ...ARCHIVE_LIMITS, ...limits }
  const file = await ImageFile.open(path, spool_folder, createMeter(all))
  try {
    const found = await findImage(file, kind)
    const config = readImageConfig(found.config)
    if (found.layers.length === 0) throw imageRefused('no_layers')
    if (found.layers.length !== config.diff_ids.length) throw imageRefused('layer_count')
    const shared = { file, meter: createMeter(all), budget: { entries_left: all.entries_max } }
    const layers = found.layers.map((blob, index) => layerOf(shared, blob, index + 1, config.diff_ids[index]!))
    return { config, layers, close: () => file.close() }
  } catch (error) {
    await file.close()
    throw error
  }
}

/** Reads the whole image. `onFile` is called for each file and link of each layer. */
export async function checkImage(
  path: string,
  kind: ImageKind,
  spool_folder: string,
  {
    limits = {},
    onFile = () => undefined,
  }: { limits?: Partial<ImageLimits>; onFile?: (file: CheckedFile) => void } = {},
): Promise<ImageStart> {
  const image = await openImage(path, kind, spool_folder, limits)
  try {
    const users = new UserFiles()
    for (const layer of image.layers) {
      for await (const entry of layer.entries()) {
        if (entry.kind === 'file') {
          await users.take(entry)
          onFile({ path: entry.path, is_executable: (entry.access.mode & 0o111) !== 0, fault: null })
        } else users.note(entry)
      }
      users.endLayer()
    }
    return startOf(image.config, users.resolve(image.config.user))
  } finally {
    await image.close()
  }
}

function startOf({ user: _, diff_ids: __, ...config }: ImageConfig, user: ImageUser): ImageStart {
  return { ...config, ...user }
}

/** The last content of the files that name users and groups. Whiteouts of a layer concern lower layers only. */
class UserFiles {
  #lower = new Map<string, string>()
  #own = new Map<string, string>()

  /** Reads the file to its end. */
  async take({ path, body }: { path: string; body: AsyncIterable<Uint8Array> }): Promise<void> {
    const chunks: Uint8Array[] = []
    let bytes = 0
    for await (const chunk of body) {
      bytes += chunk.length
      if (isUserFile(path) && bytes <= USERS_BYTES_MAX) chunks.push(chunk)
    }
    if (isUserFile(path)) this.#own.set(path, bytes <= USERS_BYTES_MAX ? Buffer.concat(chunks).toString() : '')
  }

  note({ kind, path }: Exclude<LayerEntry, { kind: 'file' }>): void {
    if (kind === 'directory') return
    this.#lower.delete(path)
    if (path === 'etc' || (path === '' && kind === 'opaque')) this.#lower.clear()
  }

  endLayer(): void {
    this.#lower = new Map([...this.#lower, ...this.#own])
    this.#own = new Map()
  }

  resolve(user: string): ImageUser {
    const [passwd, group] = USER_FILES.map((path) => this.#lower.get(path) ?? '')
    return resolveUser(user, passwd!, group!)
  }
}

function isUserFile(path: string): boolean {
  return (USER_FILES as readonly string[]).includes(path)
}

function layerOf(
  { file, meter, budget }: { file: ImageFile; meter: Meter; budget: EntryBudget },
  { blob, sha256 }: LayerBlob,
  number: number,
  diff_id: string,
): Layer {
  async function* verified(): AsyncGenerator<Buffer> {
    const hash = createHash('sha256')
    for await (const chunk of file.read(blob)) {
      hash.update(chunk)
      meter.wentIn(chunk.length)
      yield chunk
    }
    if (sha256 !== null && hash.digest('hex') !== sha256) throw imageRefused('digest', blob.name)
  }
  return {
    number,
    name: blob.name,
    diff_id,
    async *entries(onBytes) {
      try {
        const compression = compressionOf(await file.head(blob), blob.name)
        const bytes = decompressed(verified(), compression)
        yield* readLayer(onBytes === undefined ? bytes : passedTo(onBytes, bytes), diff_id, meter, budget)
      } catch (error) {
        throw ofLayer(error, { number, name: blob.name })
      }
    },
  }
}

async function* passedTo(onBytes: OnBytes, bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of bytes) {
    await onBytes(chunk)
    yield chunk
  }
}
