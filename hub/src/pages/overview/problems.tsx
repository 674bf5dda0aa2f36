// What is wrong, each with the button that fixes it.
import type { getOverview, ResponseOf } from '@musterhost/contract'
import { Link } from '@tanstack/react-router'
import { lazy, Suspense, useState } from 'react'
import { getGameById } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { gameLink, groupLink, namespaceLink, platformLink } from '../../links.ts'
import { Button, LinkButton } from '../../parts/button.tsx'
import { Notice } from '../../parts/notice.tsx'
import { Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'

type Problem = ResponseOf<typeof getOverview>['problems'][number]

const DeployDialog = lazy(() => import('../game/deploy-dialog.tsx'))

/** `games`: names of the games, for lists of several games. */
export function Problems({ problems, games }: { problems: readonly Problem[]; games?: ReadonlyMap<string, string> }) {
  if (problems.length === 0) return null
  return (
    <Section title="Problems" is_bare>
      <ul className="flex flex-col gap-2">
        {problems.map((problem) => (
          <li key={keyOf(problem)}>
            <Notice tone={problem.severity === 'error' ? 'bad' : 'warn'} actions={<Remedy problem={problem} />}>
              <p className="flex flex-wrap items-center gap-2">
                <span className={`text-xs font-semibold ${problem.severity === 'error' ? 'text-bad' : 'text-warn'}`}>
                  {problem.severity}
                </span>
                <GameName problem={problem} games={games} />
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

function GameName({
  problem: { game_id },
  games,
}: {
  problem: Problem
  games: ReadonlyMap<string, string> | undefined
}) {
  const name = game_id === undefined ? undefined : games?.get(game_id)
  if (game_id === undefined || name === undefined) return null
  return (
    <Link to={gameLink(game_id)} className="text-ink">
      {name}
    </Link>
  )
}

/** Two failing jobs of one role differ in their titles only. */
function keyOf({ kind, title, group_id, namespace_id, version_id, domain, quota, role, region }: Problem): string {
  return [kind, title, group_id, namespace_id, version_id, domain, quota, role, region].join(' ')
}

function Remedy({ problem }: { problem: Problem }) {
  const { remedy } = problem
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
  const way = wayTo(problem)
  if (way === null) return null
  return (
    <LinkButton to={way.to} search={(way.search ?? {}) as never}>
      {way.text}
    </LinkButton>
  )
}

type Way = { to: string; search?: Record<string, string>; text: string }

/** The page that mends the problem, with only the records that it is about. Null when it names no game or group. */
function wayTo({ kind, group_id, remedy: { game_id, namespace_id, page } }: Problem): Way | null {
  if (kind === 'role_away') return { to: platformLink(), text: 'Show the processes' }
  if (page === 'checks') return { to: platformLink(), text: 'Run the checks' }
  if (page === 'notices') {
    const to = game_id !== undefined ? gameLink(game_id, 'notices') : null
    const of_group = group_id === undefined ? platformLink('notices') : groupLink(group_id, 'notices')
    return { to: to ?? of_group, text: 'Show the targets' }
  }
  if (page === 'backups') return { to: platformLink('backups'), text: 'Show the backups' }
  if (page === 'jobs') return { to: platformLink('jobs'), text: 'Show the jobs' }
  if (kind === 'quota_near') return group_id === undefined ? null : { to: groupLink(group_id), text: 'Show the quotas' }
  if (game_id === undefined || namespace_id === undefined) return null
  const settings = namespaceLink(game_id, namespace_id, 'settings')
  switch (kind) {
    case 'domain_unproven':
      return { to: settings, text: 'Show the DNS record' }
    case 'certificate_expiring':
      return { to: settings, text: 'Show the domain' }
    case 'lobby_limit_near':
      return { to: settings, text: 'Show the limits' }
    case 'lobbies_stalled':
      return {
        to: namespaceLink(game_id, namespace_id, 'lobbies'),
        search: { state: 'stalled' },
        text: 'Show the stalled lobbies',
      }
    case 'captcha_provider_failing':
      return {
        to: gameLink(game_id, 'rays'),
        search: { code: 'CAPTCHA_PROVIDER_FAILED', namespace: namespace_id },
        text: 'Show the failed requests',
      }
    default:
      return { to: namespaceLink(game_id, namespace_id), text: 'Show the namespace' }
  }
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
