// Checks the file of a build when its upload completes, by the rules by which the runner will unpack it.
import type { Context } from '../../context.ts'
import { checkArchive } from '../../objects/archive/archive.ts'
import type { ImageStart } from '../../objects/container-image/config.ts'
import { checkImage } from '../../objects/container-image/image.ts'
import type { ImageKind } from '../../objects/container-image/manifest.ts'
import { createFileList } from './file-list.ts'
import type { Part, WholeFile } from './join-parts.ts'

/** `file_list`: null where it is too long, and for an image. `image`: null for an archive. */
export type CheckedBuild = { file_list: string | null; image: ImageStart | null }

/** A build has one file. Throws ARCHIVE_INVALID. */
export async function checkBuild(
  ctx: Context,
  kind: 'archive' | ImageKind,
  [first]: readonly Part[],
  [joined]: readonly WholeFile[],
): Promise<CheckedBuild> {
  const path = ctx.objects.localPath((joined ?? first!).object_key)
  if (path === null) throw new Error('A build can only be checked on a local disk.')
  if (kind !== 'archive') return { file_list: null, image: await checkImage(path, kind, ctx.config.data_dir) }
  const file_list = createFileList()
  await checkArchive(path, {}, file_list.add)
  return { file_list: file_list.text(), image: null }
}
