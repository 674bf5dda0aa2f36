// A game at a glance: its namespaces with players and lobbies now and over the last hour, its last deploys and its problems.
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { createGameNamespace, getOverview } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { groupLink, HOME } from '../../links.ts'
import { Button } from '../../parts/button.tsx'
import { ShortId } from '../../parts/copy.tsx'
import { Figures } from '../../parts/figures.tsx'
import { Pending } from '../../parts/notice.tsx'
import { count } from '../../parts/numbers.ts'
import { Page, Section } from '../../parts/page.tsx'
import { usePageActions } from '../../shell/page-actions.ts'
import { DeployTable } from '../overview/deploy-table.tsx'
import { NamespaceTable } from '../overview/namespace-table.tsx'
import { nowFigures } from '../overview/now-figures.ts'
import { Problems } from '../overview/problems.tsx'
import { useGame, useMay } from './game.ts'
import { NewNamespaceDialog } from './new-namespace.tsx'

const OVERVIEW_EVERY_MS = 5_000

export default function GameOverview() {
  const { game } = useGame()
  const may = useMay()
  const [is_new, setNew] = useState(false)
  const query = { group_id: game.developer_group_id }
  const overview = useCall(getOverview, { query }, { every_ms: OVERVIEW_EVERY_MS })
  const of_game = <R extends { game_id?: string | undefined }>(records: readonly R[] | undefined): R[] =>
    (records ?? []).filter((record) => record.game_id === game.game_id)
  const problems = of_game(overview.data?.problems)
  const group = overview.data?.groups.find(({ group_id }) => group_id === game.developer_group_id)
  const may_create = may(createGameNamespace)
  usePageActions(may_create ? [{ id: 'new-namespace', title: 'New namespace', run: () => setNew(true) }] : [])
  return (
    <Page
      title={game.display_name}
      crumbs={[
        { text: 'Home', to: HOME },
        { text: group?.display_name ?? 'Group', to: groupLink(game.developer_group_id) },
      ]}
      mark={<ShortId id={game.game_id} />}
      actions={may_create ? <Button onClick={() => setNew(true)}>New namespace</Button> : undefined}
    >
      <Pending read={overview} />
      {overview.data === undefined ? null : (
        <Figures
          label="Now"
          figures={[
            ...nowFigures(of_game(overview.data.namespaces)),
            {
              name: 'Problems',
              value: count(problems.length),
              is_bad: problems.some(({ severity }) => severity === 'error'),
            },
          ]}
        />
      )}
      <Problems problems={problems} />
      <Section title="Namespaces">
        <NamespaceTable namespaces={of_game(overview.data?.namespaces)} />
      </Section>
      <Section title="Last deploys">
        <DeployTable deploys={of_game(overview.data?.deploys)} namespaces={of_game(overview.data?.namespaces)} />
      </Section>
      <p className="text-xs text-soft">
        Short name <code>{game.name_id}</code>.{' '}
        <Link to={groupLink(game.developer_group_id, 'billing')}>Usage and cost of its group</Link>
      </p>
      {is_new ? <NewNamespaceDialog onClose={() => setNew(false)} /> : null}
    </Page>
  )
}
