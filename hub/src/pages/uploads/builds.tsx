// The builds of a game: archives of its server, uploaded by dropping a file.
import { call } from '../../api/call.ts'
import { createGameBuild, deleteGameBuild, listGameBuilds } from '../../api/operations.gen.ts'
import { useEntries, usePages } from '../../api/queries.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { useGame, useMay } from '../game/game.ts'
import type { LocalFile } from './local-files.ts'
import { prepareFile } from './transfer.ts'
import { UPLOADS_PAGE, UploadPage } from './upload-page.tsx'
import type { Announced } from './use-upload.ts'

/** Smaller files are not sent in parts. */
const PARTS_BYTES_MIN = 5 * 1024 * 1024
const DIGITS_OF_TAG = 6

export default function Builds() {
  const { game } = useGame()
  const may = useMay()
  const params = { game_id: game.game_id }
  const query = { limit: UPLOADS_PAGE }
  const read = usePages(listGameBuilds, { params, query }, ({ builds, is_cut }) => {
    const last = builds.at(-1)
    return is_cut && last !== undefined ? { params, query: { ...query, before_build_id: last.build_id } } : null
  })
  const builds = useEntries(read.data?.pages, (page) => page.builds)

  async function announce([archive]: readonly LocalFile[], name: string, part_bytes: number): Promise<Announced> {
    const { file } = archive!
    const in_parts = file.size >= PARTS_BYTES_MIN
    const body = {
      display_name: name === '' ? file.name : name,
      image_tag: `${game.name_id}:hub-${tagNumber()}`,
      image_file: await prepareFile(archive!),
      multipart_upload: in_parts,
      ...(in_parts ? { part_bytes } : {}),
    }
    const made = await call(createGameBuild, { params, body })
    const { image_presigned_request: one, image_presigned_requests: parts = [] } = made
    return { upload_id: made.upload_id, parts: one === undefined ? parts : [one] }
  }

  return (
    <UploadPage
      noun="build"
      title="Builds"
      lead="A build is the server of a game, as an archive. The game modes of a version name it."
      name_hint="Optional. Default: the name of the file."
      drop={{
        label: 'Drop the archive of the server here: .tar.gz or .zip',
        is_folder: false,
        accept: '.gz,.tgz,.zip',
      }}
      read={read}
      rows={builds.map((build) => ({ ...build, id: build.build_id }))}
      may_upload={may(createGameBuild)}
      may_delete={may(deleteGameBuild)}
      removal={{
        operation: deleteGameBuild,
        inputOf: (build_id) => ({ params: { ...params, build_id } }),
        muster: 'builds delete',
      }}
      copyAs={<CopyAs operation={listGameBuilds} input={{ params }} muster="builds" />}
      refusalOf={(files) =>
        files.length === 1
          ? null
          : 'Drop one archive: a .tar.gz or a .zip with the server. `muster deploy` packs a folder itself.'
      }
      announce={announce}
    />
  )
}

/** Image tags are unique in a game: the time in base 36 with random digits after it. */
function tagNumber(): string {
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1))
  return `${Date.now().toString(36)}${random.toString(36).padStart(DIGITS_OF_TAG, '0')}`
}
