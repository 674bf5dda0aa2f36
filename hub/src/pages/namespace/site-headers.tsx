// Headers that the deployed version adds to files of the site. They are part of its config, so a new version changes them.
import { createGameVersion, getGameVersionById } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { gameLink } from '../../links.ts'
import { LinkButton } from '../../parts/button.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { Pending } from '../../parts/notice.tsx'
import { Section } from '../../parts/page.tsx'
import { useMay } from '../game/game.ts'
import { useNamespace } from './namespace.ts'

type Header = { id: string; glob: string; priority: number; name: string; value: string }

export function SiteHeaders() {
  const { game, namespace } = useNamespace()
  const may = useMay()
  const { version_id } = namespace
  const read = useCall(getGameVersionById, { params: { game_id: game.game_id, version_id } })
  const routes = read.data?.version.config.cdn?.routes ?? []
  const headers: Header[] = routes.flatMap(({ glob, priority, middlewares }, at) =>
    middlewares
      .flatMap(({ kind }) => kind.custom_headers.headers)
      .map(({ name, value }, index) => ({ id: `${at} ${index}`, glob, priority, name, value })),
  )
  return (
    <Section
      title="Headers of the site"
      lead="The deployed version adds them to responses with these files. Where routes set the same header, the highest priority wins."
      actions={
        may(createGameVersion) ? (
          <LinkButton to={gameLink(game.game_id, 'versions/new')} search={{ from: version_id } as never}>
            Change them in a new version
          </LinkButton>
        ) : undefined
      }
    >
      <Pending read={read} />
      {read.data === undefined ? null : (
        <DataTable
          label="Headers of the site"
          rows={headers}
          rowId={({ id }) => id}
          empty="The version adds no header. In its config, cdn.routes has them."
          columns={[
            { id: 'files', title: 'Files', cell: ({ glob }) => <code>{glob}</code> },
            { id: 'name', title: 'Header', cell: ({ name }) => <code>{name}</code> },
            { id: 'value', title: 'Value', is_text: true, cell: ({ value }) => <code>{value}</code> },
            { id: 'priority', title: 'Priority', is_number: true, cell: ({ priority }) => priority },
          ]}
        />
      )}
    </Section>
  )
}
