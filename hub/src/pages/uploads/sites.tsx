// The sites of a game: uploaded by dropping a folder.
import { call } from '../../api/call.ts'
import { createGameCdnSite, deleteGameCdnSite, listGameCdnSites, reserveVersionName } from '../../api/operations.gen.ts'
import { useEntries, usePages } from '../../api/queries.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { useGame, useMay } from '../game/game.ts'
import type { LocalFile } from './local-files.ts'
import { prepareFile } from './transfer.ts'
import { UPLOADS_PAGE, UploadPage } from './upload-page.tsx'
import type { Announced } from './use-upload.ts'

export default function Sites() {
  const { game } = useGame()
  const may = useMay()
  const params = { game_id: game.game_id }
  const query = { limit: UPLOADS_PAGE }
  const read = usePages(listGameCdnSites, { params, query }, ({ sites, is_cut }) => {
    const last = sites.at(-1)
    return is_cut && last !== undefined ? { params, query: { ...query, before_site_id: last.site_id } } : null
  })
  const sites = useEntries(read.data?.pages, (page) => page.sites)

  async function announce(files: readonly LocalFile[], name: string, part_bytes: number): Promise<Announced> {
    const display_name = name === '' ? (await call(reserveVersionName, { params })).version_display_name : name
    const prepared = []
    for (const file of files) prepared.push(await prepareFile(file))
    const body = { display_name, files: prepared, multipart_upload: true, part_bytes }
    const { upload_id, presigned_requests } = await call(createGameCdnSite, { params, body })
    return { upload_id, parts: presigned_requests }
  }

  return (
    <UploadPage
      noun="site"
      title="Sites"
      lead="A site is the web page of a game. A version names it, and the namespaces of that version serve it."
      name_hint="Optional."
      drop={{ label: 'Drop the folder with the index.html of the site here', is_folder: true }}
      read={read}
      rows={sites.map((site) => ({ ...site, id: site.site_id }))}
      may_upload={may(createGameCdnSite)}
      may_delete={may(deleteGameCdnSite)}
      removal={{
        operation: deleteGameCdnSite,
        inputOf: (site_id) => ({ params: { ...params, site_id } }),
        muster: 'sites delete',
      }}
      copyAs={<CopyAs operation={listGameCdnSites} input={{ params }} muster="sites" />}
      announce={announce}
    />
  )
}
