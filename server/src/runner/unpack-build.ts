// Unpacks the stored archive of a build. The archive's hash is compared with the recorded one before a parser reads its
// first byte. The unpacked files are read back before their folder gets its final name.
import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { ApiError } from '@musterhost/contract'
import type { Context } from '../context.ts'
import { unpackArchive } from '../objects/archive/archive.ts'
import type { ImageStart, ImageUser } from '../objects/container-image/config.ts'
import { checkImage } from '../objects/container-image/image.ts'
import type { ImageKind } from '../objects/container-image/manifest.ts'
import { ObjectDamaged, type Recorded, soundBytes } from '../objects/damage.ts'
import { makeManifest } from './build-manifest.ts'
import type { ImageStore } from './images/image-store.ts'
import type { ImageTarget } from './images/unpack-image.ts'
import { pullImage } from './registry/pull-image.ts'

/** Prefix of archives that are being joined from parts, in the folder of the builds. */
export const JOINED_ARCHIVE = '.archive-'
const UNCHECKED_IMAGE =
  'The image was uploaded to an older release, which did not check it. Upload it again as a new build.'

type Kind = 'archive' | ImageKind
type Part = Recorded & { kind: Kind; image: ImageStart | null; is_complete: boolean; path: string; is_marked: boolean }

/** An unpacked build. `user`: null for the image's own user, and for archives. */
export type BuildCopy = { build_id: string; user: ImageUser | null }

/**
 * Unpacks the build into `target`, an image for `user` or for its own user, and writes its manifest to `manifest_path`. Throws ObjectDamaged (without reading an
 * archive that is marked as damaged), ApiError ARCHIVE_INVALID, or the system's error.
 */
export async function unpackBuild(
  ctx: Context,
  { build_id, user }: BuildCopy,
  destination: ImageTarget,
  images: ImageStore,
): Promise<void> {
  const parts = await readParts(ctx, build_id)
  const { kind, image } = parts[0]!
  const build = { kind, image: image === null ? null : { ...image, ...user } }
  const local = parts.length === 1 ? ctx.objects.localPath(parts[0]!.object_key) : null
  if (local !== null) {
    for await (const _ of soundBytes(ctx.objects, parts[0]!));
    await unpackFile(local, build, destination, images)
    return
  }
  const joined = join(dirname(destination.target), `${JOINED_ARCHIVE}${basename(destination.target)}`)
  try {
    await pipeline(Readable.from(bytesOf(ctx, parts)), createWriteStream(joined, { mode: 0o600 }))
    await unpackFile(joined, build, destination, images)
  } finally {
    await rm(joined, { force: true })
  }
}

/** The same for an image of a registry, which is pulled first. */
export async function unpackPulled(
  ctx: Context,
  { build_id, user }: BuildCopy,
  name: string,
  destination: ImageTarget,
  images: ImageStore,
  closing: AbortSignal,
): Promise<void> {
  const folder = dirname(destination.target)
  const path = join(folder, `${JOINED_ARCHIVE}${basename(destination.target)}`)
  const started_ms = ctx.elapsed()
  try {
    await pullImage(ctx.config, name, path, closing)
    ctx.log.info({ build_id, image: name, pull_ms: ctx.elapsed() - started_ms }, 'image pulled from its registry')
    const image = await checkImage(path, 'oci_bundle', folder)
    await images.unpack(path, 'oci_bundle', { ...image, ...user }, destination)
  } finally {
    await rm(path, { force: true })
  }
}

async function unpackFile(
  path: string,
  { kind, image }: Pick<Part, 'kind' | 'image'>,
  destination: ImageTarget,
  images: ImageStore,
): Promise<void> {
  if (kind === 'archive') {
    await unpackArchive({ path }, destination.target, {
      accept: (folder, files) => makeManifest(folder, files, destination.manifest_path),
    })
  } else if (image !== null) await images.unpack(path, kind, image, destination)
  else throw new ApiError('ARCHIVE_INVALID', {}, { message: UNCHECKED_IMAGE })
}

async function readParts(ctx: Context, build_id: string): Promise<Part[]> {
  const { rows } = await ctx.pool.query<Part & { content_length: string }>(
    `select b.kind, b.image, u.complete_ts is not null as is_complete, f.path, f.object_key, f.content_length, f.sha256,
       d.object_key is not null as is_marked
     from builds b
     join uploads u on u.upload_id = b.upload_id
     join upload_files f on f.upload_id = b.upload_id
     left join damaged_objects d on d.object_key = f.object_key
     where b.build_id = $1
     order by f.path, f.byte_offset`,
    [build_id],
  )
  const [first] = rows
  const invalid = (message: string): ApiError => new ApiError('ARCHIVE_INVALID', { build_id }, { message })
  if (first === undefined) throw invalid('There is no such build.')
  if (!first.is_complete) throw invalid('The upload of the build is not complete.')
  if (rows.some(({ path }) => path !== first.path)) throw invalid('The build is not one file.')
  const marked = rows.find(({ is_marked }) => is_marked)
  if (marked !== undefined) throw new ObjectDamaged(marked.object_key, 'bytes')
  return rows.map((row) => ({ ...row, content_length: Number(row.content_length) }))
}

async function* bytesOf(ctx: Context, parts: readonly Part[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield* soundBytes(ctx.objects, part)
}
