// The last deploys of several namespaces: the version, the caller, and whether it worked.
import type { getOverview, ResponseOf } from '@musterhost/contract'
import { Link } from '@tanstack/react-router'
import { gameLink, namespaceLink, versionLink } from '../../links.ts'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Badge, type Tone } from '../../parts/notice.tsx'
import { Ago } from '../../parts/time.tsx'

type Overview = ResponseOf<typeof getOverview>
type OverviewDeploy = Overview['deploys'][number]

const OUTCOMES: Record<OverviewDeploy['outcome'], { tone: Tone; text: string }> = {
  ready: { tone: 'good', text: 'worked' },
  failed: { tone: 'bad', text: 'failed' },
  unknown: { tone: 'plain', text: 'no lobby' },
}

function Outcome({ deploy: { outcome, rolled_back_ts } }: { deploy: OverviewDeploy }) {
  const { tone, text } = OUTCOMES[outcome]
  return (
    <span className="flex flex-wrap gap-1">
      <Badge tone={tone}>{text}</Badge>
      {rolled_back_ts === undefined ? null : <Badge tone="warn">rolled back</Badge>}
    </span>
  )
}

/** `games`: names of the games, for lists of several games. */
export function DeployTable({
  deploys,
  namespaces,
  games,
}: {
  deploys: readonly OverviewDeploy[]
  namespaces: Overview['namespaces']
  games?: ReadonlyMap<string, string>
}) {
  const of_game: Column<OverviewDeploy>[] =
    games === undefined
      ? []
      : [
          {
            id: 'game',
            title: 'Game',
            cell: ({ game_id }) => <Link to={gameLink(game_id)}>{games.get(game_id) ?? 'deleted'}</Link>,
          },
        ]
  const names = new Map(namespaces.map((namespace) => [namespace.namespace_id, namespace.display_name]))
  return (
    <DataTable
      label="Last deploys"
      rows={deploys}
      rowId={(deploy) => deploy.deploy_id}
      empty="Nothing was deployed yet."
      columns={[
        { id: 'time', title: 'When', cell: ({ deploy_ts }) => <Ago ts={deploy_ts} /> },
        ...of_game,
        {
          id: 'version',
          title: 'Version',
          cell: ({ game_id, version_id, version_display_name }) => (
            <Link to={versionLink(game_id, version_id)}>{version_display_name}</Link>
          ),
        },
        {
          id: 'namespace',
          is_secondary: true,
          title: 'Namespace',
          cell: ({ game_id, namespace_id }) => (
            <Link to={namespaceLink(game_id, namespace_id)}>{names.get(namespace_id) ?? 'deleted'}</Link>
          ),
        },
        { id: 'outcome', title: 'Outcome', cell: (deploy) => <Outcome deploy={deploy} /> },
        { id: 'message', is_secondary: true, title: 'Message', is_text: true, cell: ({ message }) => message ?? '' },
        { id: 'by', is_secondary: true, title: 'By', cell: ({ deployed_by }) => deployed_by.name ?? deployed_by.kind },
      ]}
    />
  )
}
