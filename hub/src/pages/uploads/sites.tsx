// The sites of a game: uploaded by dropping a folder.
import type { listGameCdnSites, ResponseOf } from '@muster/contract'
import { useState } from 'react'
import { call } from '../../api/call.ts'
import {
  createGameCdnSite,
  deleteGameCdnSite,
  listGameCdnSites as listSites,
  reserveVersionName,
} from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { gameLink, HOME } from '../../links.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { TextField } from '../../parts/fields.tsx'
import { Notice, Pending } from '../../parts/notice.tsx'
import { Page, Section } from '../../parts/page.tsx'
import { useGame, useMay } from '../game/game.ts'
import { DropZone, UploadBars } from './drop-zone.tsx'
import type { LocalFile } from './local-files.ts'
import { prepareFile } from './transfer.ts'
import { UploadTable } from './upload-table.tsx'
import { useUpload } from './use-upload.ts'

type Site = ResponseOf<typeof listGameCdnSites>['sites'][number]

export default function Sites() {
  const { game } = useGame()
  const may = useMay()
  const params = { game_id: game.game_id }
  const read = useCall(listSites, { params })
  const upload = useUpload('The site is uploaded.')
  const [name, setName] = useState('')
  const [files, setFiles] = useState<readonly LocalFile[]>([])
  const [continued, setContinued] = useState<Site | null>(null)

  function take(chosen: LocalFile[]): void {
    setFiles(chosen)
    if (continued !== null) {
      void upload.continueUpload(continued.upload_id, chosen)
      setContinued(null)
      return
    }
    void upload.start(chosen, async () => {
      const display_name = name === '' ? (await call(reserveVersionName, { params })).version_display_name : name
      const prepared = []
      for (const file of chosen) prepared.push(await prepareFile(file))
      const body = { display_name, files: prepared, multipart_upload: true }
      const { upload_id, presigned_requests } = await call(createGameCdnSite, { params, body })
      return { upload_id, parts: presigned_requests }
    })
  }

  return (
    <Page
      title="Sites"
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
      ]}
      lead="A site is the web page of a game. A version names it, and the namespaces of that version serve it."
    >
      {may(createGameCdnSite) ? (
        <Section title={continued === null ? 'Upload a site' : `Continue ${continued.display_name}`}>
          {upload.state.kind === 'none' ? (
            <div className="flex flex-col gap-3 p-4">
              {continued === null ? (
                <div className="max-w-md">
                  <TextField label="Name" hint="Optional." maxLength={128} value={name} onChange={setName} />
                </div>
              ) : (
                <Notice>Choose the same folder again: only what has not arrived is sent.</Notice>
              )}
              <DropZone label="Drop the folder with the index.html of the site here" is_folder onFiles={take} />
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
      <Section title="Uploaded sites" actions={<CopyAs operation={listSites} input={{ params }} muster="sites" />}>
        <Pending read={read} />
        <UploadTable
          label="Sites"
          rows={(read.data?.sites ?? []).map((site) => ({ ...site, id: site.site_id }))}
          may_change={may(deleteGameCdnSite)}
          removal={{
            operation: deleteGameCdnSite,
            inputOf: (site_id) => ({ params: { ...params, site_id } }),
            muster: 'sites delete',
          }}
          onContinue={(id) => {
            upload.reset()
            setContinued(read.data?.sites.find(({ site_id }) => site_id === id) ?? null)
          }}
        />
        {read.data?.is_cut === true ? <Notice>Only the newest sites are shown.</Notice> : null}
      </Section>
    </Page>
  )
}
