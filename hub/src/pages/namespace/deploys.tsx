// A namespace: the version that runs, and the history of what was deployed to it.
import type { getGameNamespaceVersionHistoryList, ResponseOf } from '@musterhost/contract'
import { Link } from '@tanstack/react-router'
import { lazy, Suspense, useState } from 'react'
import {
  getGameNamespaceVersionHistoryList as getHistory,
  setMatchmakerVersionDraining,
  updateGameNamespaceVersion,
} from '../../api/operations.gen.ts'
import { useEntries, usePages } from '../../api/queries.ts'
import { gameLink, HOME, versionLink } from '../../links.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable, ListEnd } from '../../parts/data-table.tsx'
import { Badge, Notice, Pending } from '../../parts/notice.tsx'
import { duration } from '../../parts/numbers.ts'
import { Page, Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { usePageActions } from '../../shell/page-actions.ts'
import { useMay, versionName } from '../game/game.ts'
import { DeployProgress } from './deploy-progress.tsx'
import { useNamespace } from './namespace.ts'
import { Rollout } from './rollout.tsx'
import { OpenSite } from './site-address.tsx'

const DeployDialog = lazy(() => import('../game/deploy-dialog.tsx'))

type Deploy = ResponseOf<typeof getGameNamespaceVersionHistoryList>['versions'][number]

const HISTORY_EVERY_MS = 5_000
const HISTORY_QUERY = { limit: 50 }

/** What is deployed in the dialog: a version of choice, or one of the history. */
type Opened = { kind: 'deploy' } | { kind: 'roll_back'; version_id: string } | { kind: 'drain'; version_id: string }

export default function Deploys() {
  const { game, namespace, params } = useNamespace()
  const may = useMay()
  const [opened, setOpened] = useState<Opened | null>(null)
  const may_deploy = may(updateGameNamespaceVersion)
  const history = useHistory()
  const deploys = useEntries(history.data?.pages, (page) => page.versions)
  const last_good = lastGood(deploys, namespace.version_id)
  const rollBack =
    last_good === undefined ? undefined : () => setOpened({ kind: 'roll_back', version_id: last_good.version_id })
  usePageActions(
    may_deploy
      ? [
          { id: 'deploy', title: `Deploy to ${namespace.display_name}`, run: () => setOpened({ kind: 'deploy' }) },
          ...(rollBack === undefined
            ? []
            : [{ id: 'roll-back', title: `Roll back ${namespace.display_name}`, run: rollBack }]),
        ]
      : [],
  )
  return (
    <Page
      title={namespace.display_name}
      mark={<Badge>{versionName(game, namespace.version_id)}</Badge>}
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
      ]}
      actions={
        <>
          <OpenSite />
          {rollBack === undefined || !may_deploy ? null : (
            <Button onClick={rollBack}>Roll back to {versionName(game, last_good?.version_id ?? '')}</Button>
          )}
          {may_deploy ? (
            <Button kind="primary" onClick={() => setOpened({ kind: 'deploy' })}>
              Deploy a version
            </Button>
          ) : null}
        </>
      }
    >
      <ExpiryLine />
      <Rollout />
      {deploys[0] === undefined ? null : <DeployProgress key={deploys[0].deploy_id} deploy={deploys[0]} />}
      <Section
        title="Deploys"
        actions={
          <CopyAs
            operation={getHistory}
            input={{ params, query: HISTORY_QUERY }}
            muster={`versions --namespace ${namespace.name_id}`}
          />
        }
      >
        <Pending read={history} />
        <DeployHistory deploys={deploys} may_deploy={may_deploy} onOpen={setOpened} />
        <ListEnd
          shown={deploys.length}
          noun={deploys.length === 1 ? 'deploy' : 'deploys'}
          has_more={history.hasNextPage}
          is_loading={history.isFetchingNextPage}
          onMore={() => void history.fetchNextPage()}
        />
      </Section>
      {opened === null ? null : <OpenedDialog opened={opened} onClose={() => setOpened(null)} />}
    </Page>
  )
}

function useHistory() {
  const { params } = useNamespace()
  return usePages(
    getHistory,
    { params, query: HISTORY_QUERY },
    ({ versions, is_cut }) => {
      const anchor = versions.at(-1)?.deploy_id
      return is_cut && anchor !== undefined ? { params, query: { ...HISTORY_QUERY, anchor } } : null
    },
    { every_ms: HISTORY_EVERY_MS },
  )
}

/** The newest deploy of another version that became ready, and was not rolled back the last time. */
function lastGood(deploys: readonly Deploy[], current_id: string): Deploy | undefined {
  const newest = new Map(deploys.toReversed().map((deploy) => [deploy.version_id, deploy]))
  return deploys.find(
    ({ version_id, first_ready_ts }) =>
      version_id !== current_id && first_ready_ts !== undefined && newest.get(version_id)?.rolled_back_ts === undefined,
  )
}

function OpenedDialog({ opened, onClose }: { opened: Opened; onClose: () => void }) {
  const { game, namespace } = useNamespace()
  if (opened.kind === 'drain') return <DrainDialog version_id={opened.version_id} onClose={onClose} />
  return (
    <Suspense>
      <DeployDialog
        game_id={game.game_id}
        namespace={namespace}
        versions={game.versions}
        {...(opened.kind === 'roll_back' ? { version_id: opened.version_id, is_rollback: true } : {})}
        onClose={onClose}
      />
    </Suspense>
  )
}

function ExpiryLine() {
  const { namespace } = useNamespace()
  const { expire_ts } = namespace
  if (expire_ts === undefined) return null
  return (
    <Notice tone="warn">
      This namespace expires <Ago ts={expire_ts} />: then its lobbies stop, and it is deleted.
    </Notice>
  )
}

type HistoryProps = { deploys: readonly Deploy[]; may_deploy: boolean; onOpen: (opened: Opened) => void }

function DeployHistory({ deploys, may_deploy, onOpen }: HistoryProps) {
  const { game, namespace } = useNamespace()
  const current = deploys[0]
  const columns: Column<Deploy>[] = [
    {
      id: 'version',
      title: 'Version',
      cell: ({ version_id }) => <Link to={versionLink(game.game_id, version_id)}>{versionName(game, version_id)}</Link>,
    },
    {
      id: 'state',
      title: 'State',
      cell: (deploy) => {
        const has_worked = deploy.first_ready_ts !== undefined
        if (deploy === current) return <Badge tone={has_worked ? 'good' : 'plain'}>deployed</Badge>
        return (
          <span className="flex flex-wrap gap-1">
            {has_worked ? <Badge>worked</Badge> : null}
            {deploy.rolled_back_ts === undefined ? null : <Badge tone="warn">rolled back</Badge>}
          </span>
        )
      },
    },
    { id: 'time', title: 'Deployed', cell: ({ deploy_ts }) => <Ago ts={deploy_ts} /> },
    {
      id: 'first',
      is_secondary: true,
      title: 'First lobby after',
      is_number: true,
      cell: (deploy) => {
        const { deploy_ts, first_ready_ts } = deploy
        if (first_ready_ts !== undefined) return duration(Date.parse(first_ready_ts) - Date.parse(deploy_ts))
        return deploy === current ? <span className="text-soft">none yet</span> : ''
      },
    },
    { id: 'message', is_secondary: true, title: 'Message', is_text: true, cell: ({ message }) => message ?? '' },
    { id: 'by', is_secondary: true, title: 'By', cell: ({ deployed_by }) => deployed_by.name ?? deployed_by.kind },
  ]
  if (may_deploy) {
    columns.push({
      id: 'actions',
      title: 'Actions',
      cell: ({ version_id }) =>
        version_id === namespace.version_id ? null : (
          <span className="flex flex-wrap gap-x-1">
            <Button kind="quiet" onClick={() => onOpen({ kind: 'roll_back', version_id })}>
              Roll back
            </Button>
            <Button kind="quiet" onClick={() => onOpen({ kind: 'drain', version_id })}>
              Drain
            </Button>
          </span>
        ),
    })
  }
  return (
    <DataTable
      label="Deploys"
      rows={deploys}
      rowId={(deploy) => deploy.deploy_id}
      columns={columns}
      empty="Nothing was deployed yet."
    />
  )
}

function DrainDialog({ version_id, onClose }: { version_id: string; onClose: () => void }) {
  const { game, params, namespace } = useNamespace()
  const name = versionName(game, version_id)
  return (
    <ActionDialog
      operation={setMatchmakerVersionDraining}
      input={{ params: { ...params, version_id }, body: { is_draining: true } }}
      words={{ title: `Drain ${name}`, submit: 'Drain', done: `${name} drains in ${namespace.display_name}.` }}
      muster={`drain ${name} --namespace ${namespace.name_id}`}
      onClose={onClose}
    >
      <p>The lobbies of {name} take no new players and stop when they are empty. Connected players keep playing.</p>
    </ActionDialog>
  )
}
