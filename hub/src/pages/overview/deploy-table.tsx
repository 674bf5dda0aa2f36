// The last deploys of several namespaces: the version, the caller, and whether it worked.
import type { getOverview, ResponseOf } from '@musterhost/contract'
import { Link } from '@tanstack/react-router'
import { namespaceLink, versionLink } from '../../links.ts'
import { DataTable } from '../../parts/data-table.tsx'
import { Badge, type Tone } from '../../parts/notice.tsx'
import { Ago } from '../../parts/time.tsx'

type Overview = ResponseOf<typeof getOverview>
export type OverviewDeploy = Overview['deploys'][number]

const OUTCOMES: Record<OverviewDeploy['outcome'], { tone: Tone; text: string }> = {
  ready: { tone: 'good', text: 'worked' },
  failed: { tone: 'bad', text: 'failed' },
  unknown: { tone: 'plain', text: 'no lobby' },
}

function Outcome({ outcome }: { outcome: OverviewDeploy['outcome'] }) {
  const { tone, text } = OUTCOMES[outcome]
  return <Badge tone={tone}>{text}</Badge>
}

export function DeployTable({
  deploys,
  namespaces,
}: {
  deploys: readonly OverviewDeploy[]
  namespaces: Overview['namespaces']
}) {
  const names = new Map(namespaces.map((namespace) => [namespace.namespace_id, namespace.display_name]))
  return (
    <DataTable
      label="Last deploys"
      rows={deploys}
      rowId={(deploy) => deploy.deploy_id}
      empty="Nothing was deployed yet."
      columns={[
        { id: 'time', title: 'When', cell: ({ deploy_ts }) => <Ago ts={deploy_ts} /> },
        {
          id: 'version',
          title: 'Version',
          cell: ({ game_id, version_id, version_display_name }) => (
            <Link to={versionLink(game_id, version_id)}>{version_display_name}</Link>
          ),
        },
        {
          id: 'namespace',
          title: 'Namespace',
          cell: ({ game_id, namespace_id }) => (
            <Link to={namespaceLink(game_id, namespace_id)}>{names.get(namespace_id) ?? 'deleted'}</Link>
          ),
        },
        { id: 'outcome', title: 'Outcome', cell: ({ outcome }) => <Outcome outcome={outcome} /> },
        { id: 'message', title: 'Message', is_text: true, cell: ({ message }) => message ?? '' },
        { id: 'by', title: 'By', cell: ({ deployed_by }) => deployed_by.name ?? deployed_by.kind },
      ]}
    />
  )
}
