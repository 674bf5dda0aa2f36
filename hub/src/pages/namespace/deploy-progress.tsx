// The progress of the newest deploy of a namespace, live: from its files to the end of the last lobby of an older version.
import type { getGameNamespaceVersionHistoryList, ResponseOf } from '@musterhost/contract'
import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import { getGameVersionById, listGameBuilds, listGameCdnSites, listNamespaceLobbies } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { namespaceLink } from '../../links.ts'
import { Section } from '../../parts/page.tsx'
import { Age, useNow } from '../../parts/time.tsx'
import { versionName } from '../game/game.ts'
import { useLiveLobbies } from '../lobbies/live-lobbies.ts'
import { FeedMark } from '../lobbies/lobby-parts.tsx'
import { type DeployStep, drainStep, lobbySteps, type StepState, storedOf, versionSteps } from './deploy-steps.ts'
import { useNamespace } from './namespace.ts'

type Deploy = ResponseOf<typeof getGameNamespaceVersionHistoryList>['versions'][number]

const LOBBIES_EVERY_MS = 2_000
/** A deploy that is complete is shown for this long. */
const SHOWN_MS = 3_600_000

export function DeployProgress({ deploy }: { deploy: Deploy }) {
  const { game, params } = useNamespace()
  const is_recent = useNow() - Date.parse(deploy.deploy_ts) < SHOWN_MS
  const { live, revision } = useLiveLobbies(params.game_id, params.namespace_id)
  const steps = useSteps(deploy, is_recent)
  const old = useMemo(() => {
    void revision
    const outdated = [...live.lobbies.values()].filter((lobby) => lobby.is_outdated)
    const players = outdated.reduce((sum, lobby) => sum + lobby.total_player_count, 0)
    return live.is_loaded ? { lobbies: outdated.length, players } : undefined
  }, [live, revision])
  if (steps === null) return null
  const all = [...steps, drainStep(old)]
  const is_complete = all.every(({ state, id }) => state === 'done' || (id === 'old' && old === undefined))
  if (is_complete && !is_recent) return null
  return (
    <Section
      title={`Deploy of ${versionName(game, deploy.version_id)}`}
      actions={
        <>
          <span className="text-soft">{is_complete ? 'complete' : <Age since={deploy.deploy_ts} />}</span>
          <FeedMark live={live} />
        </>
      }
    >
      <ol className="flex flex-col gap-2 p-4">
        {all.map((step) => (
          <StepLine key={step.id} step={step} />
        ))}
      </ol>
    </Section>
  )
}

/** Null while the version loads, and when it has neither a site nor lobbies. */
function useSteps(deploy: Deploy, is_recent: boolean): DeployStep[] | null {
  const { game, params } = useNamespace()
  const { deploy_ts, version_id, first_ready_ts } = deploy
  const { game_id } = game
  const version = useCall(getGameVersionById, { params: { game_id, version_id } })
  const config = version.data?.version.version_id === version_id ? version.data.version.config : undefined
  const is_waiting = config?.matchmaker !== undefined && first_ready_ts === undefined
  const sites = useCall(listGameCdnSites, { params: { game_id } }, { enabled: config?.cdn?.site_id !== undefined })
  const builds = useCall(listGameBuilds, { params: { game_id } }, { enabled: config?.matchmaker !== undefined })
  const lobbies = useCall(
    listNamespaceLobbies,
    { params },
    { enabled: is_waiting || is_recent, ...(is_waiting ? { every_ms: LOBBIES_EVERY_MS } : {}) },
  )
  if (config === undefined || (config.cdn?.site_id === undefined && config.matchmaker === undefined)) return null
  const stored = storedOf(
    config,
    (sites.data?.sites ?? []).map((site) => ({ ...site, id: site.site_id })),
    (builds.data?.builds ?? []).map((build) => ({ ...build, id: build.build_id })),
  )
  const own = (lobbies.data?.lobbies ?? []).filter((one) => Date.parse(one.create_ts) >= Date.parse(deploy_ts))
  return [
    ...versionSteps(config, stored),
    ...(config.matchmaker === undefined ? [] : lobbySteps({ deploy_ts, first_ready_ts, lobbies: own })),
  ]
}

const MARKS: Record<StepState, { mark: string; className: string; word: string }> = {
  done: { mark: '✓', className: 'text-good', word: 'done' },
  now: { mark: '◐', className: 'text-accent', word: 'now' },
  waits: { mark: '○', className: 'text-soft', word: 'not yet' },
  failed: { mark: '✗', className: 'text-bad', word: 'failed' },
}

function StepLine({ step: { id, state, text, detail } }: { step: DeployStep }) {
  const { mark, className, word } = MARKS[state]
  return (
    <li className="grid grid-cols-[1.5rem_minmax(0,1fr)] gap-x-2">
      <span aria-hidden="true" className={className}>
        {mark}
      </span>
      <div className="flex flex-wrap items-baseline gap-x-3 gap-y-1">
        <p className={state === 'now' || state === 'failed' ? 'font-medium' : 'text-soft'}>
          {text}
          <span className="sr-only"> ({word})</span>
        </p>
        {detail === undefined ? null : (
          <span className={`numbers text-xs wrap-anywhere ${state === 'failed' ? 'text-bad' : 'text-soft'}`}>
            {detail}
          </span>
        )}
        <StepLink id={id} state={state} />
      </div>
    </li>
  )
}

/** The page that shows more of a step, or lets it happen. */
function StepLink({ id, state }: { id: string; state: StepState }) {
  const { params } = useNamespace()
  const to = (tab: string): string => namespaceLink(params.game_id, params.namespace_id, tab)
  if (id === 'start' && state === 'waits') {
    return (
      <>
        <span className="text-xs text-soft">It begins when a player asks for a seat.</span>
        <Link to={to('playground')} className="text-xs">
          Ask for one in the playground
        </Link>
      </>
    )
  }
  if ((id === 'start' || id === 'ready') && state === 'failed') {
    return (
      <Link to={to('lobbies/history')} className="text-xs" search={{ outcome: 'failed' } as never}>
        Show the failed lobbies
      </Link>
    )
  }
  if (id === 'old' && state === 'now') {
    return (
      <Link to={to('lobbies')} className="text-xs" search={{ state: 'outdated' } as never}>
        Show them
      </Link>
    )
  }
  return null
}
