// Finds the one image of a file: its config and its layers, from the manifest of `docker save` or from an OCI layout. Every
// blob that a digest names is compared with it: documents here, layers when they are read (layer.ts).
import type { ApiError } from '@musterhost/contract'
import type { ImageFile, TarBlob } from './image-file.ts'
import { imageRefused } from './refusal.ts'

/** Layers of one image, as in container engines. */
const LAYERS_MAX = 127
/** Descriptors in one index: an image has one for each platform, and attestations. */
const DESCRIPTORS_MAX = 256
/** Indexes on the way to a manifest. */
export const INDEX_DEPTH_MAX = 3
/** Platforms of an image that an error names. */
const PLATFORMS_SHOWN_MAX = 8
/** Characters of one of them. */
const PLATFORM_LENGTH_MAX = 64
/** Architectures of Node in the words of container images. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }

export type ImageKind = 'docker_image' | 'oci_bundle'
/** `sha256`: of the stored blob; null when only the config names the layer's hash. */
export type LayerBlob = { blob: TarBlob; sha256: string | null }
export type FoundImage = { config: Record<string, unknown>; layers: LayerBlob[] }

export type Document = Record<string, unknown>
export type Descriptor = { media_type: string; digest: string; size: number; platform: Document | null }

export const INDEX_TYPES = new Set([
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
])
export const MANIFEST_TYPES = new Set([
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
])
const CONFIG_TYPES = new Set([
  'application/vnd.oci.image.config.v1+json',
  'application/vnd.docker.container.image.v1+json',
])
const LAYER_TYPES = new Set([
  'application/vnd.oci.image.layer.v1.tar',
  'application/vnd.oci.image.layer.v1.tar+gzip',
  'application/vnd.oci.image.layer.v1.tar+zstd',
  'application/vnd.docker.image.rootfs.diff.tar',
  'application/vnd.docker.image.rootfs.diff.tar.gzip',
  'application/vnd.docker.image.rootfs.diff.tar.zstd',
])

export function findImage(file: ImageFile, kind: ImageKind): Promise<FoundImage> {
  return kind === 'docker_image' ? findDockerImage(file) : findOciImage(file)
}

async function findDockerImage(file: ImageFile): Promise<FoundImage> {
  const found = file.find('manifest.json')
  if (found === null) {
    // Newer stores of images save an OCI layout only.
    if (file.find('index.json') !== null) return findOciImage(file)
    throw imageRefused('no_manifest')
  }
  const { value: images } = await file.document(found)
  if (!Array.isArray(images) || images.length === 0) throw imageRefused('no_image', 'manifest.json')
  if (images.length > 1) throw imageRefused('several_images', 'manifest.json')
  const image = documentOf(images[0], 'manifest.json')
  const config_blob = namedBlob(file, textOf(image.Config, 'manifest.json'))
  const layers = arrayOf(image.Layers, LAYERS_MAX, 'manifest.json').map((name) =>
    namedBlob(file, textOf(name, 'manifest.json')),
  )
  const { value, sha256 } = await file.document(config_blob.blob)
  if (config_blob.sha256 !== null && config_blob.sha256 !== sha256) throw imageRefused('digest', config_blob.blob.name)
  const config = documentOf(value, config_blob.blob.name)
  requirePlatform(config, config_blob.blob.name)
  return { config, layers }
}

/** Names with a digest are `blobs/sha256/<hex>`, `<hex>.json` and `<hex>.tar`. `<hex>/layer.tar` is named by an id. */
function namedBlob(file: ImageFile, name: string): LayerBlob {
  const blob = file.find(name)
  if (blob === null) throw imageRefused('missing_blob', name)
  return { blob, sha256: /^(?:blobs\/sha256\/)?([0-9a-f]{64})(?:\.json)?$/.exec(name)?.[1] ?? null }
}

async function findOciImage(file: ImageFile): Promise<FoundImage> {
  const index = file.find('index.json')
  if (index === null) throw imageRefused('no_index')
  let document = documentOf((await file.document(index)).value, 'index.json')
  let name = 'index.json'
  for (let depth = 0; depth < INDEX_DEPTH_MAX; depth++) {
    const descriptor = chooseDescriptor(document, name)
    document = await verifiedDocument(file, descriptor)
    name = descriptor.digest
    if (MANIFEST_TYPES.has(descriptor.media_type)) return await imageOf(file, document, name)
    if (!INDEX_TYPES.has(descriptor.media_type)) throw imageRefused('media_type', descriptor.media_type)
  }
  throw imageRefused('too_deep', name)
}

async function imageOf(file: ImageFile, manifest: Document, name: string): Promise<FoundImage> {
  const parts = partsOf(manifest, name)
  const config = await verifiedDocument(file, parts.config)
  requirePlatform(config, parts.config.digest)
  const layers = parts.layers.map((layer): LayerBlob => ({ blob: blobOf(file, layer), sha256: hexOf(layer) }))
  return { config, layers }
}

/** What an image consists of, by its manifest. `name`: of the manifest. */
export function partsOf(manifest: Document, name: string): { config: Descriptor; layers: Descriptor[] } {
  const config = descriptorOf(manifest.config, name)
  if (!CONFIG_TYPES.has(config.media_type)) throw imageRefused('media_type', config.media_type)
  const layers = arrayOf(manifest.layers, LAYERS_MAX, name).map((item) => descriptorOf(item, name))
  const unknown = layers.find(({ media_type }) => !LAYER_TYPES.has(media_type))
  if (unknown !== undefined) throw imageRefused('media_type', unknown.media_type)
  return { config, layers }
}

/** The manifest for this machine, of those that are images. A platform of `unknown` marks attestations. */
export function chooseDescriptor(index: Document, name: string): Descriptor {
  const descriptors = arrayOf(index.manifests, DESCRIPTORS_MAX, name, 'too_long').map((item) =>
    descriptorOf(item, name),
  )
  const images = descriptors.filter(({ platform }) => platform?.os !== 'unknown')
  if (images.length === 0) throw imageRefused('no_image', name)
  const fitting = images.filter(({ platform }) => platform === null || isOurPlatform(platform))
  if (fitting.length === 0)
    throw wrongPlatform(
      name,
      images.flatMap(({ platform }) => (platform === null ? [] : [platform])),
    )
  // Several names of one image have the same digest.
  if (new Set(fitting.map(({ digest }) => digest)).size > 1) throw imageRefused('several_images', name)
  return fitting[0]!
}

async function verifiedDocument(file: ImageFile, descriptor: Descriptor): Promise<Document> {
  const { value, sha256 } = await file.document(blobOf(file, descriptor))
  if (sha256 !== hexOf(descriptor)) throw imageRefused('digest', descriptor.digest)
  return documentOf(value, descriptor.digest)
}

function blobOf(file: ImageFile, descriptor: Descriptor): TarBlob {
  const blob = file.find(`blobs/sha256/${hexOf(descriptor)}`)
  if (blob === null) throw imageRefused('missing_blob', descriptor.digest)
  if (blob.content_length !== descriptor.size) throw imageRefused('size', descriptor.digest)
  return blob
}

export function hexOf({ digest }: Pick<Descriptor, 'digest'>): string {
  const hex = /^sha256:([0-9a-f]{64})$/.exec(digest)?.[1]
  if (hex === undefined) throw imageRefused('digest_algorithm', digest)
  return hex
}

function requirePlatform(config: Document, name: string): void {
  if (!isOurPlatform(config)) throw wrongPlatform(name, [config])
}

/** Names what the image has, what this machine is, and the option that builds for it. */
function wrongPlatform(name: string, platforms: readonly Document[]): ApiError {
  const own = `linux/${ARCHITECTURES[process.arch] ?? process.arch}`
  const names = [...new Set(platforms.map(platformName))]
  const shown = names.length > PLATFORMS_SHOWN_MAX ? [...names.slice(0, PLATFORMS_SHOWN_MAX), 'others'] : names
  const has = shown.length === 0 ? 'no platform' : `${shown.join(', ')} only`
  return imageRefused('platform', name, `It has ${has}; this machine is ${own}: build with --platform ${own}.`)
}

function platformName({ os, architecture, variant }: Document): string {
  const parts = [os, architecture, variant].flatMap((part) => (typeof part === 'string' && part !== '' ? [part] : []))
  return (
    parts
      .join('/')
      .slice(0, PLATFORM_LENGTH_MAX)
      .replaceAll(/[^a-zA-Z0-9/._-]/g, '?') || 'an unknown platform'
  )
}

function isOurPlatform({ os, architecture }: Document): boolean {
  return os === 'linux' && architecture === ARCHITECTURES[process.arch]
}

function descriptorOf(value: unknown, name: string): Descriptor {
  const { mediaType, digest, size, platform } = documentOf(value, name)
  if (typeof digest !== 'string' || typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) {
    throw imageRefused('not_json', name)
  }
  return {
    media_type: textOf(mediaType, name),
    digest,
    size,
    platform: platform === undefined || platform === null ? null : documentOf(platform, name),
  }
}

export function documentOf(value: unknown, name: string): Document {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw imageRefused('not_json', name)
  return value as Document
}

export function textOf(value: unknown, name: string): string {
  if (typeof value !== 'string') throw imageRefused('not_json', name)
  return value
}

function arrayOf(
  value: unknown,
  length_max: number,
  name: string,
  fault: 'too_many_layers' | 'too_long' = 'too_many_layers',
) {
  if (!Array.isArray(value)) throw imageRefused('not_json', name)
  if (value.length > length_max) throw imageRefused(fault, name)
  return value as unknown[]
}
