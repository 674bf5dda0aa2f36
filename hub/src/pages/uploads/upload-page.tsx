// The page of uploaded builds or sites: files are dropped, sent, continued after an interruption, listed and deleted.
import type { Operation } from '@musterhost/contract'
import { type ReactNode, useState } from 'react'
import { gameLink, HOME } from '../../links.ts'
import { type PagedRead, PagesEnd } from '../../parts/data-table.tsx'
import { TextField } from '../../parts/fields.tsx'
import { Notice, Pending, type Read } from '../../parts/notice.tsx'
import { Page, Section } from '../../parts/page.tsx'
import { showToast } from '../../toasts.ts'
import { useGame } from '../game/game.ts'
import { DropZone, type DropZoneProps, UploadBars } from './drop-zone.tsx'
import type { LocalFile } from './local-files.ts'
import { type UploadedRow, type UploadRemoval, UploadTable } from './upload-table.tsx'
import { type Announced, useUpload } from './use-upload.ts'

/** Uploads of one page of the list. */
export const UPLOADS_PAGE = 100
const NAME_LENGTH_MAX = 128

type Props<O extends Operation> = {
  noun: 'build' | 'site'
  title: string
  lead: string
  name_hint: string
  drop: Omit<DropZoneProps, 'onFiles'>
  read: Read & PagedRead
  rows: readonly UploadedRow[]
  may_upload: boolean
  may_delete: boolean
  removal: UploadRemoval<O>
  copyAs: ReactNode
  /** Why these files cannot be uploaded. */
  refusalOf?: (files: readonly LocalFile[]) => string | null
  /** Prepares an upload of the files under a name, which is empty when the person gave none. */
  announce: (files: readonly LocalFile[], name: string, part_bytes: number) => Promise<Announced>
}

export function UploadPage<O extends Operation>(props: Props<O>) {
  const { noun, title, lead, read, rows, may_upload, may_delete, removal, copyAs } = props
  const { game } = useGame()
  const upload = useUpload(`The ${noun} is uploaded.`)
  const [continued, setContinued] = useState<UploadedRow | null>(null)
  return (
    <Page
      title={title}
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
      ]}
      lead={lead}
    >
      {may_upload ? (
        <UploadSection {...props} upload={upload} continued={continued} onContinued={() => setContinued(null)} />
      ) : null}
      <Section title={`Uploaded ${noun}s`} actions={copyAs}>
        <Pending read={read} />
        <UploadTable
          label={title}
          rows={rows}
          may_change={may_delete}
          removal={removal}
          onContinue={(row) => {
            upload.reset()
            setContinued(row)
          }}
        />
        <PagesEnd read={read} shown={rows.length} one={noun} />
      </Section>
    </Page>
  )
}

type SectionProps = Pick<Props<Operation>, 'noun' | 'name_hint' | 'drop' | 'refusalOf' | 'announce'> & {
  upload: ReturnType<typeof useUpload>
  /** The interrupted upload that the next files belong to. */
  continued: UploadedRow | null
  onContinued: () => void
}

function UploadSection(props: SectionProps) {
  const { noun, name_hint, drop, refusalOf, announce, upload, continued, onContinued } = props
  const [name, setName] = useState('')
  const [files, setFiles] = useState<readonly LocalFile[]>([])
  function take(chosen: LocalFile[]): void {
    const refusal = refusalOf?.(chosen) ?? null
    if (refusal !== null) {
      showToast('bad', refusal)
      return
    }
    setFiles(chosen)
    if (continued === null) {
      void upload.start(chosen, (part_bytes) => announce(chosen, name, part_bytes))
      return
    }
    void upload.continueUpload(continued.upload_id, chosen)
    onContinued()
  }
  return (
    <Section title={continued === null ? `Upload a ${noun}` : `Continue ${continued.display_name}`}>
      {upload.state.kind === 'none' ? (
        <div className="flex flex-col gap-3 p-4">
          {continued === null ? (
            <div className="max-w-md">
              <TextField label="Name" hint={name_hint} maxLength={NAME_LENGTH_MAX} value={name} onChange={setName} />
            </div>
          ) : (
            <Notice>
              Choose the same {drop.is_folder ? 'folder' : 'file'} again: only what has not arrived is sent.
            </Notice>
          )}
          <DropZone {...drop} onFiles={take} />
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
  )
}
