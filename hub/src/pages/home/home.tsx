// Home: what is wrong, what runs now, and what was deployed last. A new group sees its first steps.
import type { getOverview, ResponseOf } from '@musterhost/contract'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { createGame, getOverview as getOverviewOperation } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { gameLink, groupLink } from '../../links.ts'
import { Button } from '../../parts/button.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { type Figure, Figures } from '../../parts/figures.tsx'
import { Notice, Pending } from '../../parts/notice.tsx'
import { count } from '../../parts/numbers.ts'
import { Page, Section } from '../../parts/page.tsx'
import { usePageActions } from '../../shell/page-actions.ts'
import { mayCall, usePerson } from '../../shell/person.tsx'
import { DeployTable } from '../overview/deploy-table.tsx'
import { NamespaceTable } from '../overview/namespace-table.tsx'
import { nowFigures } from '../overview/now-figures.ts'
import { Problems } from '../overview/problems.tsx'
import { FirstSteps } from './first-steps.tsx'
import { NewGameDialog, NewGroupDialog } from './new-records.tsx'

type Overview = ResponseOf<typeof getOverview>

const OVERVIEW_EVERY_MS = 5_000

export default function Home() {
  const overview = useCall(getOverviewOperation, {}, { every_ms: OVERVIEW_EVERY_MS })
  const [opened, setOpened] = useState<'game' | 'group' | null>(null)
  const { is_admin } = usePerson()
  const { data } = overview
  const groups = (data?.groups ?? []).filter(({ role }) => mayCall(is_admin ? 'owner' : (role ?? null), createGame))
  usePageActions([
    { id: 'new-group', title: 'New group', run: () => setOpened('group') },
    ...(groups.length > 0 ? [{ id: 'new-game', title: 'New game', run: () => setOpened('game') }] : []),
  ])
  return (
    <Page
      title="Home"
      actions={
        <>
          <Button onClick={() => setOpened('group')}>New group</Button>
          {groups.length > 0 ? (
            <Button kind="primary" onClick={() => setOpened('game')}>
              New game
            </Button>
          ) : null}
        </>
      }
    >
      <Pending read={overview} />
      {data === undefined ? null : <Content overview={data} />}
      {opened === 'game' ? <NewGameDialog groups={groups} onClose={() => setOpened(null)} /> : null}
      {opened === 'group' ? <NewGroupDialog onClose={() => setOpened(null)} /> : null}
    </Page>
  )
}

function figuresOf({ games, problems }: Overview): Figure[] {
  return [
    ...nowFigures(games),
    { name: 'Games', value: count(games.length) },
    { name: 'Problems', value: count(problems.length), is_bad: problems.some(({ severity }) => severity === 'error') },
  ]
}

function Content({ overview }: { overview: Overview }) {
  const { problems, groups, games, namespaces, deploys, is_cut } = overview
  const names = new Map(games.map((game) => [game.game_id, game.display_name]))
  const new_groups = groups.filter(({ first_steps }) => !first_steps.has_player)
  return (
    <>
      {games.length > 0 || problems.length > 0 ? <Figures label="Now" figures={figuresOf(overview)} /> : null}
      {problems.length > 0 ? (
        <Problems problems={problems} games={names} />
      ) : games.length > 0 ? (
        <Notice tone="good">Nothing is wrong.</Notice>
      ) : null}
      {groups.length === 0 ? (
        <Notice>Create a group first: the people who develop a game together. Or ask its owner for an invite.</Notice>
      ) : null}
      {new_groups.slice(0, 1).map((group) => (
        <FirstSteps key={group.group_id} group={group} games={games} namespaces={namespaces} />
      ))}
      {games.length === 0 ? null : (
        <>
          <Section title="Namespaces">
            <NamespaceTable namespaces={namespaces} games={names} />
          </Section>
          <Section title="Last deploys">
            <DeployTable deploys={deploys} namespaces={namespaces} games={names} />
          </Section>
          <Section title="Games">
            <Games overview={overview} />
          </Section>
        </>
      )}
      {is_cut ? <Notice>Not everything is shown: open a group to see the rest of it.</Notice> : null}
    </>
  )
}

function Games({ overview: { games, groups } }: { overview: Overview }) {
  const names = new Map(groups.map((group) => [group.group_id, group.display_name]))
  return (
    <DataTable
      label="Games"
      rows={games}
      rowId={(game) => game.game_id}
      empty="There is no game yet."
      columns={[
        {
          id: 'name',
          title: 'Game',
          sortBy: (game) => game.display_name,
          cell: (game) => <Link to={gameLink(game.game_id)}>{game.display_name}</Link>,
        },
        {
          id: 'group',
          title: 'Group',
          sortBy: (game) => names.get(game.group_id),
          cell: (game) => <Link to={groupLink(game.group_id)}>{names.get(game.group_id)}</Link>,
        },
        {
          id: 'players',
          title: 'Players',
          is_number: true,
          sortBy: (game) => game.player_count,
          cell: (game) => count(game.player_count),
        },
        {
          id: 'lobbies',
          title: 'Lobbies',
          is_number: true,
          sortBy: (game) => game.lobby_count,
          cell: (game) => count(game.lobby_count),
        },
      ]}
    />
  )
}
