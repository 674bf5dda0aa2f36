// Unpacks the stored archive of a build. The archive's hash is compared with the recorded one before a parser reads its
// first byte. The unpacked files are read back before their folder gets its final name.
import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { ApiError } from '@muster/contract'
import type { Context } from '../context.ts'
import { unpackArchive } from '../objects/archive/archive.ts'
import type { ImageStart, ImageUser } from '../objects/container-image/config.ts'
import type { ImageKind } from '../objects/container-image/manifest.ts'
import { ObjectDamaged, type Recorded, soundBytes } from '../objects/damage.ts'
import { makeManifest } from './build-manifest.ts'
import type { LayerCache } from './images/layer-cache.ts'
import { unpackImage } from './images/unpack-image.ts'

/** Prefix of archives that are being joined from parts, in the folder of the builds. */
export const JOINED_ARCHIVE = '.archive-'
const UNCHECKED_IMAGE =
  'The image was uploaded to an older release, which did not check it. Upload it again as a new build.'

type Kind = 'archive' | ImageKind
type Part = Recorded & { kind: Kind; image: ImageStart | null; is_complete: boolean; path: string; is_marked: boolean }

/** An unpacked build. `user`: null for the image's own user, and for archives. */
export type BuildCopy = { build_id: string; user: ImageUser | null }

/** `image_path`: for what is kept about an image. */
type Target = { target: string; manifest_path: string; image_path: string }

/**
 * Unpacks the build into `target`, an image for `user` or for its own user, and writes its manifest to `manifest_path`. Throws ObjectDamaged (without reading an
 * archive that is marked as damaged), ApiError ARCHIVE_INVALID, or the system's error.
 */
export async function unpackBuild(
  ctx: Context,
  { build_id, user }: BuildCopy,
  place: Target,
  layers: LayerCache,
): Promise<void> {
  const parts = await readParts(ctx, build_id)
  const { kind, image } = parts[0]!
  const build = { kind, image: image === null ? null : { ...image, ...user } }
  const local = parts.length === 1 ? ctx.objects.localPath(parts[0]!.object_key) : null
  if (local !== null) {
    for await (const _ of soundBytes(ctx.objects, parts[0]!));
    await unpackFile(local, build, place, layers)
    return
  }
  const joined = join(dirname(place.target), `${JOINED_ARCHIVE}${basename(place.target)}`)
  try {
    await pipeline(Readable.from(bytesOf(ctx, parts)), createWriteStream(joined, { mode: 0o600 }))
    await unpackFile(joined, build, place, layers)
  } finally {
    await rm(joined, { force: true })
  }
}

async function unpackFile(
  path: string,
  { kind, image }: Pick<Part, 'kind' | 'image'>,
  place: Target,
  layers: LayerCache,
): Promise<void> {
  if (kind === 'archive') {
    await unpackArchive({ path }, place.target, {
      accept: (folder, files) => makeManifest(folder, files, place.manifest_path),
    })
  } else if (image !== null) await unpackImage(path, kind, image, layers, place)
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
