// Checks the file of a build when its upload completes, by the rules by which the runner will unpack it.
import type { Context } from '../../context.ts'
import { checkArchive } from '../../objects/archive/archive.ts'
import type { ImageStart } from '../../objects/container-image/config.ts'
import { checkImage } from '../../objects/container-image/image.ts'
import type { ImageKind } from '../../objects/container-image/manifest.ts'
import type { Recorded } from '../../objects/damage.ts'
import { withLocalFile } from '../../objects/local-file.ts'
import { transferFolder } from '../../objects/open.ts'
import { requireDisk } from './disk.ts'
import { createFileList } from './file-list.ts'

/** `file_list`: null where it is too long, and for an image. `image`: null for an archive. */
export type CheckedBuild = { file_list: string | null; image: ImageStart | null }

/** Throws ARCHIVE_INVALID, and ObjectDamaged when a store without local files returns other bytes than recorded. */
export async function checkBuild(ctx: Context, kind: 'archive' | ImageKind, file: Recorded): Promise<CheckedBuild> {
  const { data_dir } = ctx.config
  if (ctx.objects.localPath(file.object_key) === null) await requireDisk(ctx, file.content_length)
  return withLocalFile(ctx.objects, file, transferFolder(data_dir), async (path) => {
    if (kind !== 'archive') return { file_list: null, image: await checkImage(path, kind, data_dir) }
    const file_list = createFileList()
    await checkArchive(path, {}, file_list.add)
    return { file_list: file_list.text(), image: null }
  })
}
