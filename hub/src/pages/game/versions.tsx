// The versions of a game: where each runs, and the difference of any two.
import type { listGameVersions as listVersions, ResponseOf } from '@musterhost/contract'
import { Link } from '@tanstack/react-router'
import { createGameVersion, listGameVersions } from '../../api/operations.gen.ts'
import { useEntries, usePages } from '../../api/queries.ts'
import { gameLink, HOME, namespaceLink, versionLink } from '../../links.ts'
import { LinkButton } from '../../parts/button.tsx'
import { ShortId } from '../../parts/copy.tsx'
import { DataTable, PagesEnd } from '../../parts/data-table.tsx'
import { SelectField } from '../../parts/fields.tsx'
import { Pending } from '../../parts/notice.tsx'
import { Empty, Page, Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { useUrlState } from '../../shell/url-state.ts'
import { Difference } from './deploy-dialog.tsx'
import { useGame, useMay } from './game.ts'

/** Versions of one page of the list. */
const VERSIONS_PAGE = 100

type Version = ResponseOf<typeof listVersions>['versions'][number]

export default function Versions() {
  const { game } = useGame()
  const params = { game_id: game.game_id }
  const query = { limit: VERSIONS_PAGE }
  const read = usePages(listGameVersions, { params, query }, ({ versions, is_cut }) => {
    const last = versions.at(-1)
    return is_cut && last !== undefined ? { params, query: { ...query, before_version_id: last.version_id } } : null
  })
  const versions = useEntries(read.data?.pages, (page) => page.versions)
  const may = useMay()
  return (
    <Page
      title="Versions"
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
      ]}
      lead="A version is a config with its build and its site. It never changes: to change a namespace, deploy another version to it."
      actions={
        may(createGameVersion) ? (
          <LinkButton kind="primary" to={gameLink(game.game_id, 'versions/new')}>
            New version
          </LinkButton>
        ) : undefined
      }
    >
      <Section title="All versions">
        <Pending read={read} />
        {read.data === undefined ? null : (
          <DataTable
            label="Versions"
            rows={versions}
            rowId={(version) => version.version_id}
            empty="There is no version."
            columns={[
              {
                id: 'name',
                title: 'Version',
                sortBy: (version) => version.display_name,
                cell: (version) => (
                  <Link to={versionLink(game.game_id, version.version_id)}>{version.display_name}</Link>
                ),
                width: 18,
              },
              { id: 'runs', title: 'Runs in', cell: (version) => <RunsIn version={version} /> },
              {
                id: 'created',
                title: 'Created',
                sortBy: (version) => version.create_ts,
                cell: (version) => <Ago ts={version.create_ts} />,
                width: 12,
              },
              {
                id: 'id',
                is_secondary: true,
                title: 'Id',
                cell: (version) => <ShortId id={version.version_id} />,
                width: 8,
              },
            ]}
          />
        )}
        <PagesEnd read={read} shown={versions.length} one="version" />
      </Section>
      <Compare versions={versions} />
    </Page>
  )
}

function RunsIn({ version }: { version: Version }) {
  const { game } = useGame()
  const namespaces = game.namespaces.filter(({ version_id }) => version_id === version.version_id)
  return (
    <span className="flex flex-wrap gap-2">
      {namespaces.map(({ namespace_id, display_name }) => (
        <Link key={namespace_id} to={namespaceLink(game.game_id, namespace_id)}>
          {display_name}
        </Link>
      ))}
    </span>
  )
}

/** The chosen versions are in the address, so a link shows the same difference. */
function Compare({ versions }: { versions: readonly Version[] }) {
  const { game } = useGame()
  const [chosen, change] = useUrlState(['from', 'to'])
  const [newest, before] = versions
  const from_id = chosen.from || before?.version_id
  const to_id = chosen.to || newest?.version_id
  const options = versions.map(({ version_id, display_name }) => ({ value: version_id, text: display_name }))
  return (
    <Section title="Difference">
      {from_id === undefined || to_id === undefined ? (
        <Empty>With two versions, their difference is shown here.</Empty>
      ) : (
        <div className="flex flex-col gap-3 p-4">
          <div className="flex flex-wrap gap-3">
            <SelectField
              label="From"
              value={from_id}
              options={options}
              onChange={(value) => change({ from: value, to: to_id }, { is_step: false })}
            />
            <SelectField
              label="To"
              value={to_id}
              options={options}
              onChange={(value) => change({ from: from_id, to: value }, { is_step: false })}
            />
          </div>
          <Difference game_id={game.game_id} from_id={from_id} to_id={to_id} />
        </div>
      )}
    </Section>
  )
}
