// What is wrong, each with the button that fixes it.
import type { getOverview, ResponseOf } from '@muster/contract'
import { lazy, Suspense, useState } from 'react'
import { getGameById } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { gameLink, groupLink, namespaceLink, platformLink } from '../../links.ts'
import { Button, LinkButton } from '../../parts/button.tsx'
import { Badge, Notice } from '../../parts/notice.tsx'
import { Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'

export type Problem = ResponseOf<typeof getOverview>['problems'][number]

const DeployDialog = lazy(() => import('../game/deploy-dialog.tsx'))

export function Problems({ problems }: { problems: readonly Problem[] }) {
  if (problems.length === 0) return null
  return (
    <Section title="Problems" is_bare>
      <ul className="flex flex-col gap-2">
        {problems.map((problem) => (
          <li key={keyOf(problem)}>
            <Notice tone={problem.severity === 'error' ? 'bad' : 'warn'} actions={<Remedy problem={problem} />}>
              <p className="flex flex-wrap items-center gap-2">
                <Badge tone={problem.severity === 'error' ? 'bad' : 'warn'}>{problem.severity}</Badge>
                <strong>{problem.title}</strong>
                {problem.since_ts === undefined ? null : (
                  <span className="text-xs">
                    <Ago ts={problem.since_ts} />
                  </span>
                )}
              </p>
              <p className="mt-1">{problem.text}</p>
            </Notice>
          </li>
        ))}
      </ul>
    </Section>
  )
}

function keyOf({ kind, group_id, namespace_id, version_id, domain, quota, role, region }: Problem): string {
  return [kind, group_id, namespace_id, version_id, domain, quota, role, region].join(' ')
}

function Remedy({ problem }: { problem: Problem }) {
  const { remedy, group_id } = problem
  const [is_open, setOpen] = useState(false)
  const { game_id, namespace_id, version_id } = remedy
  if (remedy.kind === 'roll_back' && game_id !== undefined && namespace_id !== undefined && version_id !== undefined) {
    return (
      <>
        <Button kind="primary" onClick={() => setOpen(true)}>
          Roll back to {remedy.version_display_name ?? 'the last version'}
        </Button>
        {is_open ? (
          <Suspense>
            <RollBack
              game_id={game_id}
              namespace_id={namespace_id}
              version_id={version_id}
              onClose={() => setOpen(false)}
            />
          </Suspense>
        ) : null}
      </>
    )
  }
  const to = pageOf(remedy, group_id)
  if (to === null) return null
  return <LinkButton to={to}>{remedy.kind === 'prove_domain' ? 'Show the DNS record' : 'Show details'}</LinkButton>
}

/** Null when the hub has no page about it. */
function pageOf({ kind, page, game_id, namespace_id }: Problem['remedy'], group_id: string | undefined): string | null {
  const of_namespace = (tab: string): string | null =>
    game_id === undefined || namespace_id === undefined ? null : namespaceLink(game_id, namespace_id, tab)
  if (kind === 'prove_domain' || page === 'domains' || page === 'limits') return of_namespace('settings')
  if (page === 'lobbies') return of_namespace('lobbies')
  if (page === 'rays') return game_id === undefined ? null : gameLink(game_id, 'rays')
  if (page === 'quotas') return group_id === undefined ? null : groupLink(group_id)
  if (page === 'processes' || page === 'checks') return platformLink()
  return null
}

type RollBackProps = { game_id: string; namespace_id: string; version_id: string; onClose: () => void }

function RollBack({ game_id, namespace_id, version_id, onClose }: RollBackProps) {
  const { data } = useCall(getGameById, { params: { game_id } })
  const namespace = data?.game.namespaces.find((one) => one.namespace_id === namespace_id)
  if (data === undefined || namespace === undefined) return null
  return (
    <DeployDialog
      game_id={game_id}
      namespace={namespace}
      versions={data.game.versions}
      version_id={version_id}
      is_rollback
      onClose={onClose}
    />
  )
}
