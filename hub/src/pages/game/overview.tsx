// A game at a glance: its namespaces and its versions.
import { Link } from '@tanstack/react-router'
import { HOME, namespaceLink } from '../../links.ts'
import { ShortId } from '../../parts/copy.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { Page, Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { useGame, versionName } from './game.ts'

export default function GameOverview() {
  const { game } = useGame()
  return (
    <Page title={game.display_name} crumbs={[{ text: 'Home', to: HOME }]} mark={<ShortId id={game.game_id} />}>
      <Section title="Namespaces">
        <DataTable
          label="Namespaces"
          rows={game.namespaces}
          rowId={(namespace) => namespace.namespace_id}
          empty="This game has no namespace."
          columns={[
            {
              id: 'name',
              title: 'Namespace',
              sortBy: (namespace) => namespace.display_name,
              cell: (namespace) => (
                <Link to={namespaceLink(game.game_id, namespace.namespace_id)}>{namespace.display_name}</Link>
              ),
            },
            { id: 'version', title: 'Version', cell: (namespace) => versionName(game, namespace.version_id) },
            { id: 'created', title: 'Created', cell: (namespace) => <Ago ts={namespace.create_ts} /> },
          ]}
        />
      </Section>
    </Page>
  )
}
