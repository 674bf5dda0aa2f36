// Pulls a container image from a registry into a file: an OCI image layout as a tar, which is then checked and unpacked like
// an uploaded one. The manifest names the size of every part, so an image that is too large is refused before its layers.
import { createHash, hash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { ApiError, isAllowedImage, parseRegistryImage } from '@musterhost/contract'
import { pack } from 'tar-stream'
import type { Config } from '../../config/config.ts'
import { ARCHIVE_LIMITS } from '../../objects/archive/archive.ts'
import {
  chooseDescriptor,
  type Descriptor,
  type Document,
  documentOf,
  hexOf,
  INDEX_DEPTH_MAX,
  INDEX_TYPES,
  MANIFEST_TYPES,
  partsOf,
} from '../../objects/container-image/manifest.ts'
import { type Credentials, readCredentials } from './registry-auth.ts'
import { pullRefused, RegistryClient } from './registry-client.ts'

/** From the first request to the last byte. */
const PULL_MS_MAX = 15 * 60_000
/** Bytes of all compressed parts of an image. */
const PULL_BYTES_MAX = ARCHIVE_LIMITS.bytes_max
const MANIFEST_BYTES_MAX = 4 * 1024 ** 2

export type Registries = Pick<Config, 'registries' | 'registry_auth_file'>

/** The id under which a machine keeps an image of a registry: it depends on the name alone. Has the form of a UUID. */
export function registryBuildId(name: string): string {
  const hex = hash('sha256', name)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** Writes the image to `path`. Throws ApiError ARCHIVE_INVALID with a sentence for the developer, or the system's error. */
export async function pullImage(
  registries: Registries,
  name: string,
  path: string,
  closing: AbortSignal,
  ms_max = PULL_MS_MAX,
): Promise<void> {
  const image = parseRegistryImage(name)
  if ('reason' in image) throw pullRefused(image.message)
  const { host, repository, digest } = image
  const allowed = registries.registries.find((registry) => isAllowedImage(image, [registry]))
  if (allowed === undefined) {
    throw pullRefused(
      `This machine does not allow images of ${host}/${repository}. Its operator sets MUSTER_REGISTRIES.`,
    )
  }
  const signal = AbortSignal.any([AbortSignal.timeout(ms_max), closing])
  const credentials = await credentialsOf(registries.registry_auth_file, host)
  const client = new RegistryClient({ host, origin: allowed.origin, repository, credentials }, signal)
  try {
    const manifest = await findManifest(client, digest)
    const parts = partsOf(manifest.document, manifest.descriptor.digest)
    const bytes = [parts.config, ...parts.layers].reduce((sum, { size }) => sum + size, 0)
    if (bytes > PULL_BYTES_MAX) {
      throw pullRefused(`The image ${name} has ${bytes} bytes, and an image has at most ${PULL_BYTES_MAX}.`)
    }
    await writeLayout(client, manifest, [parts.config, ...parts.layers], path)
  } catch (error) {
    await rm(path, { force: true })
    if (!signal.aborted || error instanceof ApiError) throw error
    if (closing.aborted) throw pullRefused('The runner was stopped while it pulled the image. Start the lobby again.')
    throw pullRefused(`The image ${name} was not pulled within ${ms_max / 1_000} s. Try again later.`)
  }
}

async function credentialsOf(file: string | null, host: string): Promise<Credentials | null> {
  try {
    return await readCredentials(file, host)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw pullRefused(`The file of MUSTER_REGISTRY_AUTH cannot be read: ${reason}. Its operator corrects it.`)
  }
}

type Manifest = { descriptor: { mediaType: string; digest: string; size: number }; bytes: Buffer; document: Document }

/** The manifest for this machine. An index names one for each platform. */
async function findManifest(client: RegistryClient, first: string): Promise<Manifest> {
  let digest = first
  for (let depth = 0; depth <= INDEX_DEPTH_MAX; depth++) {
    const { media_type, bytes } = await client.manifest(digest, MANIFEST_BYTES_MAX)
    requireDigest(hash('sha256', bytes), digest)
    const document = parse(bytes, digest)
    if (MANIFEST_TYPES.has(media_type)) {
      return { descriptor: { mediaType: media_type, digest, size: bytes.length }, bytes, document }
    }
    if (!INDEX_TYPES.has(media_type)) throw pullRefused(`The registry has no container image as ${digest}.`)
    digest = chooseDescriptor(document, digest).digest
  }
  throw pullRefused(`The image ${first} has more than ${INDEX_DEPTH_MAX} indexes on the way to its manifest.`)
}

function parse(bytes: Buffer, name: string): Document {
  try {
    return documentOf(JSON.parse(bytes.toString()), name)
  } catch (error) {
    if (error instanceof SyntaxError) throw pullRefused(`The manifest ${name} is not JSON.`)
    throw error
  }
}

function requireDigest(sha256: string, digest: string): void {
  if (sha256 !== hexOf({ digest })) throw pullRefused(`The registry sent other bytes than ${digest} names.`)
}

async function writeLayout(
  client: RegistryClient,
  manifest: Manifest,
  parts: readonly Descriptor[],
  path: string,
): Promise<void> {
  const layout = pack()
  const writing = pipeline(Readable.from(layout), createWriteStream(path, { mode: 0o600 }))
  // The entries report the same failure.
  writing.catch(() => undefined)
  try {
    layout.entry({ name: 'oci-layout' }, '{"imageLayoutVersion":"1.0.0"}')
    layout.entry({ name: 'index.json' }, JSON.stringify({ schemaVersion: 2, manifests: [manifest.descriptor] }))
    layout.entry({ name: blobPath(manifest.descriptor) }, manifest.bytes)
    const written = new Set([manifest.descriptor.digest])
    for (const part of parts) {
      // An image may have the same layer twice.
      if (written.has(part.digest)) continue
      written.add(part.digest)
      await pipeline(verified(client, part), layout.entry({ name: blobPath(part), size: part.size }))
    }
    layout.finalize()
    await writing
  } catch (error) {
    layout.destroy()
    throw error
  }
}

const blobPath = (part: Pick<Descriptor, 'digest'>): string => `blobs/sha256/${hexOf(part)}`

async function* verified(client: RegistryClient, { digest, size }: Descriptor): AsyncGenerator<Uint8Array> {
  const sum = createHash('sha256')
  let bytes = 0
  for await (const chunk of client.blob(digest)) {
    bytes += chunk.length
    if (bytes > size) break
    sum.update(chunk)
    yield chunk
  }
  if (bytes !== size) throw pullRefused(`The registry sent other bytes than ${digest} names.`)
  requireDigest(sum.digest('hex'), digest)
}
