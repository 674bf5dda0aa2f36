// The steps of a deploy, from the records of its version, its lobbies and the live lobbies: what is done, and what it waits for.
import type { getGameVersionById, LogsLobbySummary, ResponseOf } from '@musterhost/contract'
import { bytes, duration, plural } from '../../parts/numbers.ts'
import { exitText } from '../lobbies/past-lobby.tsx'

export type StepState = 'done' | 'now' | 'waits' | 'failed'
export type DeployStep = { id: string; state: StepState; text: string; detail?: string }

type Config = ResponseOf<typeof getGameVersionById>['version']['config']
export type Stored = { id: string; display_name: string; content_length: number }

/** The site and the builds of a version. Those without a record are left out. */
export function storedOf(config: Config, sites: readonly Stored[], builds: readonly Stored[]) {
  const { docker, game_modes = {} } = config.matchmaker ?? {}
  const used = new Set([docker, ...Object.values(game_modes).map((mode) => mode.docker)].map((one) => one?.image_id))
  return {
    site: sites.find(({ id }) => id === config.cdn?.site_id),
    builds: builds.filter(({ id }) => used.has(id)),
  }
}

/** What the version brings. It cannot be created before its config is right and its uploads are complete. */
export function versionSteps(config: Config, stored: ReturnType<typeof storedOf>): DeployStep[] {
  const { site, builds } = stored
  const sizeOf = ({ display_name, content_length }: Stored): string => `${display_name}, ${bytes(content_length)}`
  return [
    { id: 'config', state: 'done', text: 'The config is checked.' },
    ...(config.cdn?.site_id === undefined
      ? []
      : [step('site', 'done', 'The site is served with all of its files.', site === undefined ? '' : sizeOf(site))]),
    ...(config.matchmaker === undefined
      ? []
      : [step('build', 'done', 'The build is stored.', builds.map(sizeOf).join('; '))]),
  ]
}

type LobbySteps = { deploy_ts: string; first_ready_ts: string | undefined; lobbies: readonly LogsLobbySummary[] }

/** `lobbies`: those created since the deploy, in any order. */
export function lobbySteps({ deploy_ts, first_ready_ts, lobbies }: LobbySteps): DeployStep[] {
  const ready_ts = first_ready_ts ?? earliest(lobbies.map((lobby) => lobby.ready_ts))
  const started = lobbies.filter(({ start_ts }) => start_ts !== undefined)
  const is_starting = lobbies.some(({ status }) => status.stopped === undefined)
  const failure = failureOf(lobbies)
  const before = is_starting ? 'now' : failure === '' ? 'waits' : 'failed'
  const first_ms = Math.min(...started.map(({ create_ts, start_ts }) => Date.parse(start_ts!) - Date.parse(create_ts)))
  return [
    started.length > 0 || ready_ts !== undefined
      ? step(
          'start',
          'done',
          'A runner unpacked the build and started a server.',
          started.length > 0 ? took(first_ms) : '',
        )
      : step('start', before, 'A runner unpacks the build and starts the first server.', failure),
    ready_ts === undefined
      ? step(
          'ready',
          started.length > 0 ? before : 'waits',
          'The first server becomes ready.',
          started.length > 0 ? failure : '',
        )
      : step(
          'ready',
          'done',
          'The first server is ready.',
          took(Date.parse(ready_ts) - Date.parse(deploy_ts), 'the deploy'),
        ),
  ]
}

/** `old`: the lobbies of other versions; undefined while they are not known. */
export function drainStep(old: { lobbies: number; players: number } | undefined): DeployStep {
  const text = 'The lobbies of older versions end.'
  if (old === undefined) return step('old', 'waits', text, 'They are counted.')
  if (old.lobbies === 0) return step('old', 'done', 'No lobby of an older version runs.', '')
  const lobbies = plural(old.lobbies, 'lobby', 'lobbies')
  return step('old', 'now', text, `${lobbies} with ${plural(old.players, 'player')} left.`)
}

function step(id: string, state: StepState, text: string, detail: string): DeployStep {
  return { id, state, text, ...(detail === '' ? {} : { detail }) }
}

function took(ms: number, since = 'its request'): string {
  return `${duration(Math.max(0, ms))} after ${since}`
}

function failureOf(lobbies: readonly LogsLobbySummary[]): string {
  const failed = lobbies.flatMap(({ status: { stopped } }) => (stopped?.failed === true ? [stopped] : []))
  const last = failed.toSorted((a, b) => Date.parse(b.stop_ts) - Date.parse(a.stop_ts))[0]
  if (last === undefined) return ''
  return `${plural(failed.length, 'server')} failed. The last: ${exitText(last.exit_code, last.exit_reason)}.`
}

function earliest(times: readonly (string | undefined)[]): string | undefined {
  return times.filter((ts) => ts !== undefined).toSorted((a, b) => Date.parse(a) - Date.parse(b))[0]
}
