// The logo or the banner of a game.
import type { gameLogoUploadComplete, gameLogoUploadPrepare } from '@musterhost/contract'
import { call } from '../../api/call.ts'
import type { Described } from '../../api/describe.ts'
import { Section } from '../../parts/page.tsx'
import { useGame } from '../game/game.ts'
import { DropZone, UploadBars } from './drop-zone.tsx'
import type { LocalFile } from './local-files.ts'
import { sendOne } from './transfer.ts'
import { useUpload } from './use-upload.ts'

/** The same pictures as on their own host, from the origin of the hub. */
const MEDIA_PREFIX = '/media'

type Props = {
  what: 'logo' | 'banner'
  url: string | undefined
  limit: string
  prepare: Described<typeof gameLogoUploadPrepare>
  complete: Described<typeof gameLogoUploadComplete>
}

export function PictureForm({ what, url, limit, prepare, complete }: Props) {
  const { game } = useGame()
  const params = { game_id: game.game_id }
  const upload = useUpload(`The ${what} is uploaded.`)
  function take([picture]: LocalFile[]): void {
    if (picture === undefined) return
    const { file } = picture
    const mime = file.type === '' ? {} : { mime: file.type }
    void upload.runStep([picture], async (transfer) => {
      const body = { path: file.name, content_length: file.size, ...mime }
      const { upload_id, presigned_request } = await call(prepare, { params, body })
      transfer.onAnnounced(upload_id)
      await sendOne({ ...presigned_request, path: picture.path }, file, transfer)
      await call(complete, { params: { ...params, upload_id } })
    })
  }
  return (
    <Section title={what === 'logo' ? 'Logo' : 'Banner'} lead={`PNG, JPEG, GIF or WebP, ${limit}.`}>
      <div className="flex flex-col gap-3 p-4">
        {url === undefined ? (
          <p className="text-soft">The game has no {what}.</p>
        ) : (
          <img
            src={`${MEDIA_PREFIX}${new URL(url).pathname}`}
            alt={`The ${what}`}
            className="max-h-48 max-w-full self-start rounded-md border border-line bg-code object-contain"
          />
        )}
        {upload.state.kind === 'none' || upload.state.kind === 'complete' ? (
          <DropZone label={`Drop the ${what} here`} is_folder={false} accept="image/*" onFiles={take} />
        ) : (
          <UploadBars state={upload.state} onPause={upload.pause} onContinue={upload.reset} onClose={upload.reset} />
        )}
      </div>
    </Section>
  )
}
