// The builds of a game: archives of its server, uploaded by dropping a file.
import type { listGameBuilds, ResponseOf } from '@muster/contract'
import { useState } from 'react'
import { call } from '../../api/call.ts'
import { createGameBuild, deleteGameBuild, listGameBuilds as listBuilds } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { gameLink, HOME } from '../../links.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { TextField } from '../../parts/fields.tsx'
import { Notice, Pending } from '../../parts/notice.tsx'
import { Page, Section } from '../../parts/page.tsx'
import { showToast } from '../../toasts.ts'
import { useGame, useMay } from '../game/game.ts'
import { DropZone, UploadBars } from './drop-zone.tsx'
import type { LocalFile } from './local-files.ts'
import { prepareFile } from './transfer.ts'
import { UploadTable } from './upload-table.tsx'
import { useUpload } from './use-upload.ts'

type Build = ResponseOf<typeof listGameBuilds>['builds'][number]

/** Smaller files are not sent in parts. */
const PARTS_BYTES_MIN = 5 * 1024 * 1024
const DIGITS_OF_TAG = 6

export default function Builds() {
  const { game } = useGame()
  const may = useMay()
  const params = { game_id: game.game_id }
  const read = useCall(listBuilds, { params })
  const upload = useUpload('The build is uploaded.')
  const [name, setName] = useState('')
  const [files, setFiles] = useState<readonly LocalFile[]>([])
  const [continued, setContinued] = useState<Build | null>(null)

  function take(chosen: LocalFile[]): void {
    const [archive] = chosen
    if (archive === undefined || chosen.length > 1) {
      showToast('bad', 'Drop one archive: a .tar.gz or a .zip with the server. `muster deploy` packs a folder itself.')
      return
    }
    setFiles(chosen)
    if (continued !== null) {
      void upload.continueUpload(continued.upload_id, chosen)
      setContinued(null)
      return
    }
    void upload.start(chosen, async () => {
      const multipart_upload = archive.file.size >= PARTS_BYTES_MIN
      const body = {
        display_name: name === '' ? archive.file.name : name,
        image_tag: `${game.name_id}:hub-${tagNumber()}`,
        image_file: await prepareFile(archive),
        multipart_upload,
      }
      const made = await call(createGameBuild, { params, body })
      const { image_presigned_request: one, image_presigned_requests: parts = [] } = made
      return { upload_id: made.upload_id, parts: one === undefined ? parts : [one] }
    })
  }

  return (
    <Page
      title="Builds"
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
      ]}
      lead="A build is the server of a game, as an archive. The game modes of a version name it."
    >
      {may(createGameBuild) ? (
        <Section title={continued === null ? 'Upload a build' : `Continue ${continued.display_name}`}>
          {upload.state.kind === 'none' ? (
            <div className="flex flex-col gap-3 p-4">
              {continued === null ? (
                <div className="max-w-md">
                  <TextField
                    label="Name"
                    hint="Optional. Default: the name of the file."
                    maxLength={128}
                    value={name}
                    onChange={setName}
                  />
                </div>
              ) : (
                <Notice>Choose the same file again: only what has not arrived is sent.</Notice>
              )}
              <DropZone
                label="Drop the archive of the server here: .tar.gz or .zip"
                is_folder={false}
                accept=".gz,.tgz,.zip"
                onFiles={take}
              />
            </div>
          ) : (
            <UploadBars
              state={upload.state}
              onPause={upload.pause}
              onContinue={(upload_id) => void upload.continueUpload(upload_id, files)}
              onClose={upload.reset}
            />
          )}
        </Section>
      ) : null}
      <Section title="Uploaded builds" actions={<CopyAs operation={listBuilds} input={{ params }} muster="builds" />}>
        <Pending read={read} />
        <UploadTable
          label="Builds"
          rows={(read.data?.builds ?? []).map((build) => ({ ...build, id: build.build_id }))}
          may_change={may(deleteGameBuild)}
          removal={{
            operation: deleteGameBuild,
            inputOf: (build_id) => ({ params: { ...params, build_id } }),
            muster: 'builds delete',
          }}
          onContinue={(id) => {
            upload.reset()
            setContinued(read.data?.builds.find(({ build_id }) => build_id === id) ?? null)
          }}
        />
        {read.data?.is_cut === true ? <Notice>Only the newest builds are shown.</Notice> : null}
      </Section>
    </Page>
  )
}

/** Image tags are unique in a game: the time in base 36 with random digits after it. */
function tagNumber(): string {
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1))
  return `${Date.now().toString(36)}${random.toString(36).padStart(DIGITS_OF_TAG, '0')}`
}
